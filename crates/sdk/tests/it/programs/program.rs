//! Random programs: what a workflow may do, as data, made from a seed and made smaller when one fails.

use serde::{Deserialize, Serialize};
use std::fmt;
use steadfast_kernel::random::{Seed, Stream};

/// How many nodes a program has at the most.
const NODES_MAX: u64 = 20;
/// How often its nodes are visited at the most, loops and copies counted.
const VISITS_MAX: usize = 60;
/// How deep its sequences are nested at the most.
const DEPTH_MAX: u32 = 4;

/// Few names, so that branches share them; one is that of a branch which the engine makes itself.
const STEPS: [&str; 2] = ["a", "b"];
const SIGNALS: [&str; 2] = ["s", "t"];
const BRANCHES: [&str; 2] = ["a", "join"];

/// Nodes that are executed one after another.
pub(super) type Body = Vec<Node>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Node {
    Step(Step),
    Sleep(u64),
    Signal {
        name: String,
        within: Option<u64>,
    },
    /// Two to four branches, all of them awaited.
    Join(Vec<Body>),
    /// Two or three branches, the first one counts.
    Race(Vec<Body>),
    /// The same as so many branches.
    All(usize, Body),
    /// The same so many times.
    Loop(usize, Body),
    Branch(String, Body),
    /// A number is drawn.
    Random,
    /// A failure of it is caught.
    Try(Body),
    Fail,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) name: String,
    /// So many attempts fail and may be repeated.
    pub(super) transient: u32,
    /// The attempt after those fails for good.
    pub(super) fails: bool,
    /// How long an attempt takes, in milliseconds.
    pub(super) takes: u64,
    /// If it can be undone: so many attempts to do so fail.
    pub(super) undo: Option<u32>,
}

/// A program, as the input of the workflow that executes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Program(pub(super) Body);

/// Chance from a seed and a name.
pub(super) struct Dice(Stream);

impl Dice {
    pub(super) fn new(seed: u64, name: &str) -> Self {
        Dice(Stream::new(&run_seed(seed), "", name))
    }

    /// A number from 0, below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn one_of<T: Clone>(&mut self, these: &[T]) -> T {
        these[self.below(these.len() as u64) as usize].clone()
    }
}

/// The seed of the run that executes the program of that seed: its chance is repeated with it.
pub(super) fn run_seed(seed: u64) -> Seed {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Seed(bytes)
}

impl Program {
    /// The program of that seed.
    pub(super) fn generate(seed: u64) -> Self {
        let mut dice = Dice::new(seed, "program");
        loop {
            let mut budget = 1 + dice.below(NODES_MAX);
            let program = Program(body(&mut dice, &mut budget, 0));
            if program.visits() <= VISITS_MAX {
                return program;
            }
        }
    }

    /// How often its nodes are visited at the most.
    fn visits(&self) -> usize {
        self.count(&|_| true)
    }

    /// How many waits for signals of that name there are at the most.
    pub(super) fn waits_for(&self, signal: &str) -> usize {
        self.count(&|node| matches!(node, Node::Signal { name, .. } if name == signal))
    }

    fn count(&self, what: &dyn Fn(&Node) -> bool) -> usize {
        self.0.iter().map(|node| count(node, what)).sum()
    }

    /// Programs that are a little smaller, the boldest first.
    pub(super) fn smaller(&self) -> Vec<Program> {
        smaller_bodies(&self.0).into_iter().map(Program).collect()
    }
}

/// The names of signals.
pub(super) fn signals() -> [&'static str; 2] {
    SIGNALS
}

fn count(node: &Node, what: &dyn Fn(&Node) -> bool) -> usize {
    let inside = |bodies: &[Body]| bodies.iter().flatten().map(|node| count(node, what)).sum::<usize>();
    usize::from(what(node))
        + match node {
            Node::Join(bodies) | Node::Race(bodies) => inside(bodies),
            Node::All(times, body) | Node::Loop(times, body) => times * inside(std::slice::from_ref(body)),
            Node::Branch(_, body) | Node::Try(body) => inside(std::slice::from_ref(body)),
            _ => 0,
        }
}

fn body(dice: &mut Dice, budget: &mut u64, depth: u32) -> Body {
    let length = 1 + dice.below(if depth == 0 { 6 } else { 3 });
    let mut nodes = Body::new();
    while nodes.is_empty() || (*budget > 0 && (nodes.len() as u64) < length) {
        *budget = budget.saturating_sub(1);
        nodes.push(node(dice, budget, depth));
    }
    nodes
}

fn node(dice: &mut Dice, budget: &mut u64, depth: u32) -> Node {
    let nests = depth < DEPTH_MAX && *budget > 0;
    let mut bodies = |dice: &mut Dice, most: u64| {
        let branches = 2 + dice.below(most - 1);
        (0..branches).map(|_| body(dice, budget, depth + 1)).collect()
    };
    match dice.below(if nests { 100 } else { 60 }) {
        0..44 => Node::Step(step(dice)),
        44..50 => Node::Sleep(dice.one_of(&[0, 5, 10, 20, 100])),
        50..55 => signal(dice),
        55..59 => Node::Random,
        59 => Node::Fail,
        60..71 => Node::Join(bodies(dice, 4)),
        71..82 => Node::Race(bodies(dice, 3)),
        82..87 => Node::All(1 + dice.below(3) as usize, body(dice, budget, depth + 1)),
        87..92 => Node::Loop(1 + dice.below(3) as usize, body(dice, budget, depth + 1)),
        92..96 => Node::Branch(dice.one_of(&BRANCHES).into(), body(dice, budget, depth + 1)),
        _ => Node::Try(body(dice, budget, depth + 1)),
    }
}

fn step(dice: &mut Dice) -> Step {
    Step {
        name: dice.one_of(&STEPS).into(),
        transient: dice.one_of(&[0, 0, 0, 0, 1, 1, 2, 3]),
        fails: dice.percent(8),
        takes: dice.one_of(&[0, 0, 0, 5, 10, 10, 20, 50]), // often the same, so that several end at once
        undo: dice.percent(30).then(|| dice.one_of(&[0, 0, 1, 3])),
    }
}

fn signal(dice: &mut Dice) -> Node {
    let within = dice.percent(50).then(|| dice.one_of(&[0, 10, 50, 200]));
    Node::Signal { name: dice.one_of(&SIGNALS).into(), within }
}

fn smaller_bodies(body: &Body) -> Vec<Body> {
    let with = |index: usize, nodes: &[Node]| [&body[..index], nodes, &body[index + 1..]].concat();
    let without = (0..body.len()).map(|index| with(index, &[]));
    let inner = body.iter().enumerate().flat_map(|(index, node)| {
        let insides = insides(node).into_iter().map(move |inside| with(index, &inside));
        let nodes = smaller_nodes(node).into_iter().map(move |node| with(index, &[node]));
        insides.chain(nodes)
    });
    without.chain(inner).collect()
}

/// What may stand in the place of a node: each of its bodies.
fn insides(node: &Node) -> Vec<Body> {
    match node {
        Node::Join(bodies) | Node::Race(bodies) => bodies.clone(),
        Node::All(_, body) | Node::Loop(_, body) | Node::Branch(_, body) | Node::Try(body) => vec![body.clone()],
        _ => Vec::new(),
    }
}

fn smaller_nodes(node: &Node) -> Vec<Node> {
    let fewer = |bodies: &[Body], make: fn(Vec<Body>) -> Node| {
        let dropped = (0..bodies.len())
            .filter(|_| bodies.len() > 2)
            .map(|index| [&bodies[..index], &bodies[index + 1..]].concat());
        let shrunk = bodies.iter().enumerate().flat_map(|(index, body)| {
            let with = move |body: Body| [&bodies[..index], &[body], &bodies[index + 1..]].concat();
            smaller_bodies(body).into_iter().map(with)
        });
        dropped.chain(shrunk).map(make).collect()
    };
    let within = |body: &Body, make: &dyn Fn(Body) -> Node| smaller_bodies(body).into_iter().map(make).collect::<Vec<_>>();
    match node {
        Node::Step(step) => smaller_steps(step).into_iter().map(Node::Step).collect(),
        Node::Sleep(1..) => vec![Node::Sleep(0)],
        Node::Join(bodies) => fewer(bodies, Node::Join),
        Node::Race(bodies) => fewer(bodies, Node::Race),
        Node::All(times, body) => [vec![Node::All(1, body.clone())], within(body, &|body| Node::All(*times, body))].concat(),
        Node::Loop(times, body) => [vec![Node::Loop(1, body.clone())], within(body, &|body| Node::Loop(*times, body))].concat(),
        Node::Branch(name, body) => within(body, &|body| Node::Branch(name.clone(), body)),
        Node::Try(body) => within(body, &Node::Try),
        _ => Vec::new(),
    }
    .into_iter()
    .filter(|smaller| smaller != node)
    .collect()
}

fn smaller_steps(step: &Step) -> Vec<Step> {
    let simpler = [
        Step { transient: 0, ..step.clone() },
        Step { fails: false, ..step.clone() },
        Step { takes: 0, ..step.clone() },
        Step { undo: None, ..step.clone() },
    ];
    simpler.into_iter().filter(|simpler| simpler != step).collect()
}

/// One node per line, nested ones indented.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, &self.0, 1)
    }
}

fn show(f: &mut fmt::Formatter<'_>, body: &Body, depth: usize) -> fmt::Result {
    for node in body {
        let indent = "  ".repeat(depth);
        match node {
            Node::Join(bodies) | Node::Race(bodies) => {
                writeln!(f, "{indent}{}", if matches!(node, Node::Join(_)) { "Join" } else { "Race" })?;
                for body in bodies {
                    writeln!(f, "{indent}-")?;
                    show(f, body, depth + 1)?;
                }
            }
            Node::All(times, body) => writeln!(f, "{indent}All {times}").and_then(|()| show(f, body, depth + 1))?,
            Node::Loop(times, body) => writeln!(f, "{indent}Loop {times}").and_then(|()| show(f, body, depth + 1))?,
            Node::Branch(name, body) => writeln!(f, "{indent}Branch {name}").and_then(|()| show(f, body, depth + 1))?,
            Node::Try(body) => writeln!(f, "{indent}Try").and_then(|()| show(f, body, depth + 1))?,
            leaf => writeln!(f, "{indent}{leaf:?}")?,
        }
    }
    Ok(())
}
