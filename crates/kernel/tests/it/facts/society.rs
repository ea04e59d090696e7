//! Many runs, the limits they share, their children and the box of their dead letters, with a relay that loses acknowledgements.
//!
//! What one entity says to another is delivered at least once: in order from one to the other, and the next only after the one before is settled.

mod held;

use super::saved::a_snapshot_restores_the_state;
use super::talk::Talk;
use crate::support::*;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseResult, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::time::Duration;
use steadfast_kernel::limit::Limit;
use steadfast_kernel::run::{Phase, Stage};
use steadfast_kernel::{
    Command, Decision, DropLetter, Effect, Entity, EntityId, Entry, Envelope, Event, Limiting, Origin, Parent, Payload, Proposal, Recovery,
    Refusal, RetryFrom, RetryRun, Run, RunId, RunOptions, StartRun, Status, StepId, TakeTurn,
};

/// What happens in a society.
#[derive(Clone, Debug)]
enum Op {
    /// A run begins that needs a slot of those limits.
    Start { run: usize, limits: Vec<&'static str>, slots: Option<u32>, manual: bool },
    /// One of the runs takes a turn.
    Turn(Index, Move),
    /// Somebody wants something of one of the runs.
    Want(Index, Verb),
    /// The next message of somebody to somebody is delivered; without an acknowledgement it comes again.
    Deliver { which: Index, settled: bool },
    /// Everything that was said is heard.
    Heal,
    /// A person throws a letter away, or one that never was.
    Drop { which: Index, real: bool },
    /// Every process dies, and all that is left is what the store has.
    Crash,
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Complete,
    Fail,
    Poison,
    Do {
        undoable: bool,
    },
    Sleep,
    Undo,
    Continue,
    /// A child: by an id of its own, by one that it always has, or by one that another run may have.
    Child {
        id: u8,
        limited: bool,
        detached: bool,
    },
    TakeChild,
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Cancel,
    Terminate,
    Pause,
    Resume,
    Interrupt,
    Retry,
    RetryFromStart,
}

#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// How many slots each limit has, unless a run says otherwise.
    slots: u32,
    ops: Vec<Op>,
}

pub(crate) fn plot() -> impl Strategy<Value = Plot> {
    let limits = prop_oneof![Just(vec![]), Just(vec!["a"]), Just(vec!["a"]), Just(vec!["b"]), Just(vec!["a", "b", "a"])];
    let start = (0..3_usize, limits, proptest::bool::weighted(0.2));
    let moved = prop_oneof![
        3 => Just(Move::Complete),
        2 => Just(Move::Fail),
        2 => Just(Move::Poison),
        2 => any::<bool>().prop_map(|undoable| Move::Do { undoable }),
        1 => Just(Move::Sleep),
        3 => Just(Move::Undo),
        1 => Just(Move::Continue),
        6 => (0..4_u8, any::<bool>(), proptest::bool::weighted(0.2)).prop_map(|(id, limited, detached)| Move::Child { id, limited, detached }),
        3 => Just(Move::TakeChild),
    ];
    let verb = prop_oneof![
        2 => Just(Verb::Cancel),
        1 => Just(Verb::Terminate),
        1 => Just(Verb::Pause),
        2 => Just(Verb::Resume),
        1 => Just(Verb::Interrupt),
        5 => Just(Verb::Retry),
        2 => Just(Verb::RetryFromStart),
    ];
    let op = prop_oneof![
        3 => start.prop_map(|(run, limits, manual)| Op::Start { run, limits, slots: None, manual }),
        10 => (any::<Index>(), moved).prop_map(|(run, moved)| Op::Turn(run, moved)),
        6 => (any::<Index>(), verb).prop_map(|(run, verb)| Op::Want(run, verb)),
        12 => (any::<Index>(), proptest::bool::weighted(0.7)).prop_map(|(which, settled)| Op::Deliver { which, settled }),
        1 => (any::<Index>(), proptest::bool::weighted(0.7)).prop_map(|(which, real)| Op::Drop { which, real }),
        1 => Just(Op::Crash),
        2 => Just(Op::Heal),
    ];
    let changing = proptest::option::weighted(0.3, 1..4_u32);
    (1..3_u32, changing, prop::collection::vec(op, 0..120)).prop_map(|(slots, changing, mut ops)| {
        let starts = ops.iter_mut().filter_map(|op| if let Op::Start { slots, .. } = op { Some(slots) } else { None });
        starts.skip(1).step_by(2).for_each(|slots| *slots = changing); // some say something else, or none does
        Plot { slots, ops }
    })
}

/// Who was asked, and what came of it.
type Asked = (EntityId, Result<Decision, Refusal>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Society {
    talk: Talk,
    slots: u32,
}

impl Deref for Society {
    type Target = Talk;

    fn deref(&self) -> &Talk {
        &self.talk
    }
}

impl DerefMut for Society {
    fn deref_mut(&mut self) -> &mut Talk {
        &mut self.talk
    }
}

impl Society {
    fn new(plot: &Plot) -> Self {
        Society { talk: Talk::new(at(1000)), slots: plot.slots }
    }

    fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.entities
            .values()
            .filter_map(|entity| if let Entity::Limit(limit) = entity { Some(limit) } else { None })
    }

    /// Delivers a message; it is settled only when what comes back of it was heard.
    fn deliver(&mut self, envelope: &Envelope, settled: bool) -> Result<Decision, TestCaseError> {
        let Ok(decided) = self.tell(&envelope.to, Command::Hear(Box::new(envelope.clone())))? else {
            return Err(TestCaseError::fail("a message is refused"));
        };
        for effect in &decided.effects {
            if let Effect::Bounce(back) = effect {
                prop_assert!(self.tell(&back.to, Command::Hear(back.clone()))?.is_ok());
            }
        }
        if settled {
            self.settle(&envelope.from, envelope.seq);
        }
        Ok(decided)
    }

    /// Everything that was said is heard, some of it twice, and what is called off ends.
    fn heal(&mut self) -> TestCaseResult {
        for round in 0.. {
            prop_assert!(round < 10_000, "they never stop talking");
            let of_a_host = |run: &&Run| run.is_called_off() && matches!(run.status(), Status::Running | Status::Compensating);
            let hosted = self.runs().find(of_a_host).cloned();
            if let Some(envelope) = self.heads().into_iter().next() {
                self.deliver(&envelope, round % 3 != 0)?;
            } else if let Some(run) = hosted {
                let event = match &run.open().expect("an open run").stage {
                    Stage::Running if !run.has_undoable() => Event::RunCancelled,
                    _ => self.moves(&run, Move::Undo).remove(0),
                };
                let turn = self.turn(&run, vec![event]);
                prop_assert!(self.tell(&EntityId::from(&run.id), turn)?.is_ok());
            } else {
                break;
            }
        }
        Ok(())
    }

    fn turn(&self, run: &Run, events: Vec<Event>) -> Command {
        let proposals = events.into_iter().map(|event| Proposal { at: self.now, event }).collect();
        Command::TakeTurn(TakeTurn {
            epoch: run.epoch,
            proposals,
            in_flight: 0,
            asked: 0,
            unanswered: vec![],
            abandoned: vec![],
            asks_again: true,
        })
    }

    /// One thing happens; what was decided, if anything was asked.
    fn happens(&mut self, op: &Op) -> Result<Option<Asked>, TestCaseError> {
        self.now = self.now.saturating_add(Duration::from_millis(1));
        let (id, command) = match op {
            Op::Start { run, limits, slots, manual } => {
                let run = other_run(&format!("r-{run}"));
                let recovery = if *manual { Recovery::Manual } else { Recovery::Automatic };
                let options = RunOptions { limits: self.limiting(limits, *slots), recovery, ..RunOptions::default() };
                (EntityId::from(&run), Command::StartRun(StartRun { run, options, ..start_run() }))
            }
            Op::Turn(which, moved) => {
                let runs: Vec<_> = self.runs().collect();
                let Some(run) = (!runs.is_empty()).then(|| *which.get(&runs)) else { return Ok(None) };
                (EntityId::from(&run.id), self.turn(run, self.moves(run, *moved)))
            }
            Op::Want(which, verb) => {
                let runs: Vec<_> = self.runs().collect();
                let Some(run) = (!runs.is_empty()).then(|| *which.get(&runs)) else { return Ok(None) };
                (EntityId::from(&run.id), wanted(*verb))
            }
            Op::Deliver { which, settled } => {
                let heads = self.heads();
                let Some(envelope) = (!heads.is_empty()).then(|| which.get(&heads).clone()) else { return Ok(None) };
                let decided = self.deliver(&envelope, *settled)?;
                return Ok(Some((envelope.to, Ok(decided))));
            }
            Op::Drop { which, real } => {
                let letters = self.letters();
                let letter = if letters.is_empty() || !real { 999 } else { *which.get(&letters.into_keys().collect::<Vec<_>>()) };
                (letter_box(), Command::DropLetter(DropLetter { letter, origin: Origin::default() }))
            }
            Op::Crash => {
                self.crash()?;
                return Ok(None);
            }
            Op::Heal => {
                self.heal()?;
                return Ok(None);
            }
        };
        let before = self.clone();
        let decided = self.tell(&id, command)?;
        prop_assert!(decided.is_ok() || *self == before, "a refusal leaves a trace");
        Ok(Some((id, decided)))
    }

    fn limiting(&self, keys: &[&str], slots: Option<u32>) -> Vec<Limiting> {
        keys.iter()
            .map(|key| Limiting { key: limit_key(key), slots: slots.unwrap_or(self.slots) })
            .collect()
    }

    fn letters(&self) -> BTreeMap<u64, (RunId, StepId)> {
        match self.entities.get(&letter_box()) {
            Some(Entity::Letters(letters)) => {
                letters.letters.iter().map(|(seq, (run, step, _))| (*seq, (run.clone(), step.clone()))).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    /// What the code of a run does next.
    fn moves(&self, run: &Run, moved: Move) -> Vec<Event> {
        let Some(open) = run.open() else { return vec![run_completed("18")] };
        if let (Stage::Compensating { .. }, Move::Undo | Move::Complete | Move::Fail) = (&open.stage, moved) {
            let undo = open.undoable.iter().next().map(|step| undo_completed(step.as_str(), 1));
            let end = if open.cancel_requested { Event::RunCancelled } else { run_failed(timeout()) };
            return vec![undo.unwrap_or(end)];
        }
        let fresh = |name: &str| {
            (1..)
                .map(|n| id(&format!("{name}#{n}")))
                .find(|step| !open.steps.contains_key(step))
                .expect("a name")
        };
        match moved {
            Move::Complete => vec![run_completed("18")],
            Move::Fail if open.undoable.is_empty() => vec![run_failed(timeout())],
            Move::Fail | Move::Undo => vec![run_compensating((!open.cancel_requested).then(timeout))],
            Move::Poison => vec![step_failed(fresh("poison").as_str(), 1, poison())],
            Move::Do { undoable } => {
                let (step, attempt, output) = (fresh("do"), 1, Payload::json("1"));
                vec![Event::StepCompleted { step, attempt, output, undoable }]
            }
            Move::Sleep => vec![timer_set("sleep#1", 99_000)],
            Move::Continue => vec![run_continued("18")],
            Move::Child { id: name, limited, detached } => vec![self.child(run, name, limited, detached)],
            Move::TakeChild => {
                let ended = open.children.iter().find(|(_, child)| child.ended && child.taken.is_none());
                ended.map(|(child, _)| child_taken(child.as_str())).into_iter().collect()
            }
        }
    }

    fn child(&self, run: &Run, name: u8, limited: bool, detached: bool) -> Event {
        let child = id(&format!("child:checkout#{name}"));
        let id = match name {
            0 => "r-0".to_string(), // which may be another run
            1 => format!("{}.one", run.id),
            _ => format!("{}.{name}.{}", run.id, run.generations.get(&child)),
        };
        let limits = if limited { self.limiting(&["a"], None) } else { vec![] };
        let parent = Some(Parent { run: run.id.clone(), child: child.clone(), detached });
        let options = RunOptions { limits, parent, ..RunOptions::default() };
        let (workflow, input) = (workflow("checkout"), Payload::json("17"));
        Event::ChildStarted { child, run: other_run(&id), workflow, input, deadline: None, options }
    }

    /// Everybody ends, and every slot comes back.
    fn ends(&mut self) -> TestCaseResult {
        loop {
            let open = self.runs().find(|run| run.open().is_some()).map(|run| run.id.clone());
            let Some(run) = open else { break };
            prop_assert!(self.tell(&run.into(), terminate())?.is_ok());
            self.heal()?;
        }
        for limit in self.limits() {
            prop_assert!(limit.members.is_empty() && limit.line.is_empty() && limit.held() == 0, "a slot of {} is lost", limit.key);
        }
        Ok(())
    }

    fn state(&self, id: &EntityId) -> Option<&Entity> {
        self.entities.get(id)
    }
}

fn letter_box() -> EntityId {
    EntityId::Letters(workflow("checkout"))
}

fn wanted(verb: Verb) -> Command {
    match verb {
        Verb::Cancel => cancel(),
        Verb::Terminate => terminate(),
        Verb::Pause => pause(),
        Verb::Resume => resume(),
        Verb::Interrupt => Command::InterruptRun,
        Verb::Retry => retry_run(),
        Verb::RetryFromStart => Command::RetryRun(RetryRun { input: None, ..retry_from(RetryFrom::Start) }),
    }
}

/// Plays a plot to its end; what was decided is told to `saw`, with the state before it.
pub(crate) fn play(plot: &Plot, mut saw: impl FnMut(&Society, &EntityId, &Result<Decision, Refusal>)) -> Result<Society, TestCaseError> {
    let mut society = Society::new(plot);
    for op in &plot.ops {
        let before = society.clone();
        if let Some((id, decided)) = society.happens(op)? {
            saw(&before, &id, &decided);
        }
        society.holds()?;
    }
    society.heal()?;
    society.holds()?;
    society.holds_when_healed()?;
    society.crash()?;
    society.ends()?;
    Ok(society)
}

proptest! {
    #[test]
    fn slots_children_and_letters_come_to_their_end(plot in plot()) {
        play(&plot, |_, _, _| {})?;
    }
}

#[test]
fn the_plots_reach_every_event_of_limits_and_letter_boxes() {
    let (mut seen, mut statuses) = (BTreeSet::new(), BTreeSet::new());
    let mut runner = TestRunner::deterministic();
    for _ in 0..200 {
        let plot = plot().new_tree(&mut runner).expect("a plot").current();
        let saw = |society: &Society, id: &EntityId, decided: &Result<Decision, Refusal>| {
            statuses.extend(society.state(id).and_then(Entity::run).map(Run::status));
            match decided {
                Ok(decision) => seen.extend(decision.entries.iter().map(|entry| entry.event.kind())),
                Err(refusal) => drop(seen.insert(refusal.code())),
            }
        };
        play(&plot, saw).expect("every fact holds");
    }
    let of_others = |kind: &&str| kind.starts_with("LETTER") || (kind.starts_with("SLOT") && *kind != "SLOT_ACQUIRED");
    let expected = ["LETTER_ADDED", "LETTER_DROPPED", "LETTER_REDRIVEN", "SLOT_GRANTED", "SLOT_RELEASED", "SLOT_REQUESTED"];
    assert_eq!(seen.iter().copied().filter(of_others).collect::<Vec<_>>(), expected);
    assert!(seen.contains("SF0115"), "a letter that is not there is not found");
    assert_eq!(statuses, Status::ALL.into_iter().collect(), "runs in every status");
}
