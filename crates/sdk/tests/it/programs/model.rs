//! What a program may have seen, by plain recursion over it: no engine, and no order but that of the program.
//!
//! Where the program leaves no choice, the model leaves none: outputs, failures and draws are compared exactly. The winner of a race, whether a
//! signal came in time and which one it was are taken from the trail.

use super::code::{ATTEMPTS, down, refused, shown};
use super::program::{Body, Node, Program, Step};
use super::trail::{Place, Trail, What};
use std::collections::BTreeSet;
use steadfast_kernel::random::{Seed, Stream};

/// Says why that trail cannot be that of the program, if so. `sent` tells the name of the signal that said something.
pub(super) fn check(program: &Program, seed: Seed, trail: &Trail, sent: &dyn Fn(u64) -> Option<String>) -> Result<(), String> {
    let mut model = Model { seed, sent, taken: BTreeSet::new(), ticks: BTreeSet::new() };
    model.body(&Place::default(), &program.0, trail)
}

struct Model<'a> {
    seed: Seed,
    sent: &'a dyn Fn(u64) -> Option<String>,
    taken: BTreeSet<u64>,
    ticks: BTreeSet<u32>,
}

/// The failure that a node must have ended with.
type Failed = Option<String>;

impl Model<'_> {
    fn body(&mut self, place: &Place, body: &Body, trail: &Trail) -> Result<(), String> {
        let mut last = None;
        let mut seen = trail.seen.iter();
        for node in body {
            let Some(seen) = seen.next() else { return Err(format!("nothing was seen of {node:?} in {trail:?}")) };
            if last.is_some_and(|(tick, at)| seen.tick < tick || seen.at < at) || !self.ticks.insert(seen.tick) {
                return Err(format!("seen out of order: {trail:?}"));
            }
            if last.is_some_and(|(_, at)| seen.at < at + lasts(node, &seen.what)) {
                return Err(format!("{node:?} was over too early: {trail:?}"));
            }
            last = Some((seen.tick, seen.at));
            let failed = self.node(place, node, &seen.what)?;
            if failed.is_some() {
                return same("the failure", &trail.failed, &failed).and_then(|()| nothing_more(trail, seen.tick));
            }
        }
        same("the failure", &trail.failed, &None)?;
        seen.next().map_or(Ok(()), |seen| Err(format!("more was seen than there is: {seen:?}")))
    }

    fn node(&mut self, place: &Place, node: &Node, what: &What) -> Result<Failed, String> {
        match (node, what) {
            (Node::Step(step), what) => match outcome(&place.step(&step.name), step) {
                Ok(output) => same("an output", what, &What::Output(output)).map(|()| None),
                Err(failure) => same("a failure", what, &What::Failed(failure.clone())).map(|()| Some(failure)),
            },
            (Node::Fail, what) => {
                let failure = shown("asked to fail", 0);
                same("a failure", what, &What::Failed(failure.clone())).map(|()| Some(failure))
            }
            (Node::Sleep(_), What::Slept) | (Node::Signal { within: Some(_), .. }, What::TooLate) => Ok(None),
            (Node::Signal { name, .. }, What::Signal(said)) => self.signal(name, *said).map(|()| None),
            (Node::Random, What::Drew(number)) => {
                let draws = u64::from(place.count("random", ""));
                let expected = Stream::new(&self.seed, &place.path, "random").at(draws - 1);
                same("a draw", number, &expected).map(|()| None)
            }
            (Node::Join(bodies), What::Each(trails)) => self.each(place.branches("join", bodies.len()), &refs(bodies), trails),
            (Node::All(times, body), What::Each(trails)) => self.each(place.branches("all", *times), &vec![body; *times], trails),
            (Node::Race(bodies), What::Won(index, trail)) => {
                let places = place.branches("race", bodies.len());
                let (Some(place), Some(body)) = (places.get(*index), bodies.get(*index)) else { return Err(format!("no branch {index}")) };
                self.body(place, body, trail).map(|()| trail.failed.clone())
            }
            (Node::Loop(times, body), What::Each(rounds)) => self.rounds(place, *times, body, rounds),
            (Node::Branch(name, body), What::Within(trail)) => self.body(&place.branch(name), body, trail).map(|()| trail.failed.clone()),
            (Node::Try(body), What::Within(trail)) => self.body(place, body, trail).map(|()| None),
            (node, what) => Err(format!("{node:?} cannot come to {what:?}")),
        }
    }

    /// Every branch goes its own way; the first failure in the order of branches is that of the whole.
    fn each(&mut self, places: Vec<Place>, bodies: &[&Body], trails: &[Trail]) -> Result<Failed, String> {
        same("the number of branches", &trails.len(), &bodies.len())?;
        for ((place, body), trail) in places.iter().zip(bodies).zip(trails) {
            self.body(place, body, trail)?;
        }
        Ok(trails.iter().find_map(|trail| trail.failed.clone()))
    }

    fn rounds(&mut self, place: &Place, times: usize, body: &Body, rounds: &[Trail]) -> Result<Failed, String> {
        for round in rounds {
            self.body(place, body, round)?;
        }
        let failed = rounds.iter().position(|round| round.failed.is_some());
        same("the number of rounds", &rounds.len(), &failed.map_or(times, |index| index + 1))?;
        Ok(failed.and_then(|index| rounds[index].failed.clone()))
    }

    fn signal(&mut self, name: &str, said: u64) -> Result<(), String> {
        same("the name of a signal", &(self.sent)(said).as_deref(), &Some(name))?;
        if self.taken.insert(said) { Ok(()) } else { Err(format!("the signal {said} was taken twice")) }
    }
}

/// How long it takes at the least, in microseconds.
fn lasts(node: &Node, what: &What) -> i64 {
    match (node, what) {
        (Node::Sleep(millis), _) | (Node::Signal { within: Some(millis), .. }, What::TooLate) => *millis as i64 * 1000,
        _ => 0,
    }
}

/// What a step comes to: its output, or the failure after all that it may try.
fn outcome(id: &str, step: &Step) -> Result<String, String> {
    if step.transient >= ATTEMPTS {
        return Err(shown(&format!("gave up after {ATTEMPTS} of {ATTEMPTS} attempts: {}", down(id)), ATTEMPTS));
    }
    if step.fails { Err(shown(&refused(id), step.transient + 1)) } else { Ok(id.into()) }
}

fn refs(bodies: &[Body]) -> Vec<&Body> {
    bodies.iter().collect()
}

fn nothing_more(trail: &Trail, tick: u32) -> Result<(), String> {
    same("the last thing seen", &trail.seen.last().map(|seen| seen.tick), &Some(tick))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, it must be {expected:?}")) }
}
