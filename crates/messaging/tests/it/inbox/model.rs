//! The inbox does what a list would do that is searched from end to end.

use crate::inbox::start;
use bytes::Bytes;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_kernel::Failure;
use steadfast_messaging::inbox::{Finish, Inbox, Kind, Left, Seat, Settings, Ticket, Verdict};
use tokio::time::Instant;

type Outcome = Result<Bytes, Failure>;

/// Who waits, and with which digest of the request.
type Waiter = u32;

#[derive(Debug)]
struct Entry {
    caller: String,
    id: String,
    kind: Kind,
    digest: u64,
    /// In the order in which they came.
    waiters: Vec<Waiter>,
    taken: bool,
    finished: Option<(Instant, Outcome)>,
    /// It was looked at when room was needed, and its caller had little.
    spared: bool,
}

/// How many in a row are spared at once.
const SPARED_AT_ONCE: usize = 64;

/// What the model expects of a check.
#[derive(Debug, PartialEq)]
enum Expected {
    New,
    Waits,
    Dropped,
    Known(Outcome),
    Different,
    Full,
}

/// Entries that run, in the order in which they began, and those that are finished, in the order in which they did.
#[derive(Default)]
struct Model {
    running: Vec<Entry>,
    finished: Vec<Entry>,
    forgotten_early: u64,
}

impl Model {
    fn bytes(&self) -> usize {
        let entries = || self.running.iter().chain(&self.finished);
        let mut callers: Vec<&str> = entries().map(|entry| &*entry.caller).collect();
        callers.sort_unstable();
        callers.dedup();
        let callers: usize = callers.into_iter().map(str::len).sum();
        callers
            + entries()
                .map(|entry| entry.id.len() + entry.finished.as_ref().map_or(0, |(_, outcome)| length(outcome)))
                .sum::<usize>()
    }

    fn running_bytes(&self) -> usize {
        self.running.iter().map(|entry| entry.id.len()).sum()
    }

    fn expire(&mut self, settings: &Settings, now: Instant) {
        self.finished
            .retain(|entry| entry.finished.as_ref().is_some_and(|(at, _)| now < *at + settings.window));
    }

    fn has_little(&self, settings: &Settings, caller: &str) -> bool {
        let entries = || self.running.iter().chain(&self.finished);
        let callers = entries().map(|entry| &*entry.caller).collect::<BTreeSet<_>>().len();
        let (mut count, mut bytes) = (0, 0);
        for entry in entries().filter(|entry| entry.caller == caller) {
            count += 1;
            bytes += entry.id.len() + entry.finished.as_ref().map_or(0, |(_, outcome)| length(outcome));
        }
        callers > 1 && 2 * callers * count <= settings.entries_max && 2 * callers * bytes <= settings.bytes_max
    }

    fn forget_oldest(&mut self, settings: &Settings) -> bool {
        for _ in 0..SPARED_AT_ONCE {
            match self.finished.iter().position(|entry| !entry.spared) {
                Some(place) if self.has_little(settings, &self.finished[place].caller) => self.finished[place].spared = true,
                _ => break,
            }
        }
        let any = !self.finished.is_empty();
        if any {
            let first = self.finished.iter().position(|entry| !entry.spared).unwrap_or(0);
            self.finished.remove(first);
            self.forgotten_early += 1;
        }
        any
    }

    fn knows(&self, caller: &str, id: &str) -> bool {
        self.running.iter().chain(&self.finished).any(|entry| entry.caller == caller && entry.id == id)
    }

    fn check(&mut self, settings: &Settings, caller: &str, id: &str, kind: Kind, digest: u64, waiter: Waiter) -> Expected {
        let is = |entry: &&mut Entry| entry.caller == caller && entry.id == id;
        if let Some(entry) = self.running.iter_mut().chain(&mut self.finished).find(is) {
            return match &entry.finished {
                _ if (entry.kind, entry.digest) != (kind, digest) => Expected::Different,
                _ if kind == Kind::Tell && (entry.taken || entry.finished.is_some()) => Expected::Dropped,
                Some((_, outcome)) => Expected::Known(outcome.clone()),
                None if entry.waiters.len() >= settings.waiters_max => Expected::Full,
                None => {
                    entry.waiters.push(waiter);
                    Expected::Waits
                }
            };
        }
        let length = caller.len() + id.len();
        if self.running.len() >= settings.entries_max || self.running_bytes() + length > settings.bytes_max {
            return Expected::Full;
        }
        while self.running.len() + self.finished.len() >= settings.entries_max || self.bytes() + length > settings.bytes_max {
            if !self.forget_oldest(settings) {
                return Expected::Full;
            }
        }
        self.running.push(Entry {
            caller: caller.into(),
            id: id.into(),
            kind,
            digest,
            waiters: vec![waiter],
            taken: false,
            finished: None,
            spared: false,
        });
        Expected::New
    }

    fn finish(&mut self, settings: &Settings, place: usize, outcome: Finish, now: Instant) -> Vec<Waiter> {
        let mut entry = self.running.remove(place);
        let waiters = std::mem::take(&mut entry.waiters);
        let Finish::Keep(outcome) = outcome else { return waiters };
        if self.running_bytes() + length(&outcome) > settings.bytes_max {
            self.forgotten_early += 1;
            return waiters;
        }
        entry.finished = Some((now, if entry.kind == Kind::Tell { Ok(Bytes::new()) } else { outcome }));
        self.finished.push(entry);
        while self.bytes() > settings.bytes_max && self.forget_oldest(settings) {}
        waiters
    }

    /// Nothing if that is no tell.
    fn taken(&mut self, place: usize) -> Option<Vec<Waiter>> {
        let entry = self.running.get_mut(place).filter(|entry| entry.kind == Kind::Tell)?;
        entry.taken = true;
        Some(std::mem::take(&mut entry.waiters))
    }

    fn leave(&mut self, waiter: Waiter) -> Option<Left<Waiter>> {
        let entry = self.running.iter_mut().find(|entry| entry.waiters.contains(&waiter))?;
        entry.waiters.retain(|other| *other != waiter);
        Some(Left { waiter, nobody: entry.waiters.is_empty() })
    }
}

fn length(outcome: &Outcome) -> usize {
    match outcome {
        Ok(bytes) => bytes.len(),
        Err(failure) => size_of::<Failure>() + failure.message.len(),
    }
}

/// Both of them, told the same.
struct Twins {
    settings: Settings,
    inbox: Inbox<Waiter>,
    model: Model,
    /// In the model's order.
    tickets: Vec<Ticket>,
    seats: Vec<(Waiter, Seat)>,
    now: Instant,
    waiters: Waiter,
}

impl Twins {
    fn new(settings: Settings) -> Self {
        let (inbox, model) = (Inbox::new(settings.clone()), Model::default());
        Twins { settings, inbox, model, tickets: Vec::new(), seats: Vec::new(), now: start(), waiters: 0 }
    }

    /// A request is delivered where it may run, or where only those that are known are dealt with.
    fn check(&mut self, caller: &str, id: &str, kind: Kind, digest: u64, may_run: bool) {
        self.inbox.fetch([(caller, id), ("nobody", id)]); // which changes nothing
        self.waiters += 1;
        let waiter = self.waiters;
        self.model.expire(&self.settings, self.now);
        if !may_run && !self.model.knows(caller, id) {
            let verdict = self.inbox.check_known(caller, id, kind, digest, waiter, self.now);
            assert!(matches!(verdict, Err(who) if who == waiter), "{caller} {id} {kind:?} {digest}: {verdict:?}");
            return;
        }
        let expected = self.model.check(&self.settings, caller, id, kind, digest, waiter);
        let verdict = match may_run {
            true => self.inbox.check(caller, id, kind, digest, waiter, self.now),
            false => self.inbox.check_known(caller, id, kind, digest, waiter, self.now).unwrap(),
        };
        let (verdict, who) = match verdict {
            Verdict::New(ticket, seat) => {
                self.tickets.push(ticket);
                self.seats.push((waiter, seat));
                (Expected::New, waiter)
            }
            Verdict::Waits(seat) => {
                self.seats.push((waiter, seat));
                (Expected::Waits, waiter)
            }
            Verdict::Dropped(who) => (Expected::Dropped, who),
            Verdict::Known(outcome, who) => (Expected::Known(outcome), who),
            Verdict::Different(who) => (Expected::Different, who),
            Verdict::Full(who, _) => (Expected::Full, who),
        };
        assert_eq!((verdict, who), (expected, waiter), "{caller} {id} {kind:?} {digest}");
    }

    fn finish(&mut self, place: usize, outcome: Finish) {
        self.model.expire(&self.settings, self.now);
        let expected = self.model.finish(&self.settings, place, outcome.clone(), self.now);
        let mut told: Vec<_> = self.inbox.finish(self.tickets.remove(place), outcome, self.now).into_iter().collect();
        told.sort_unstable();
        assert_eq!(told, expected);
    }

    fn taken(&mut self, place: usize) {
        if let Some(expected) = self.model.taken(place) {
            let mut told: Vec<_> = self.inbox.taken(&self.tickets[place]).into_iter().collect();
            told.sort_unstable();
            assert_eq!(told, expected);
        }
    }

    fn leave(&mut self, place: usize) {
        let (waiter, seat) = self.seats[place];
        assert_eq!(self.inbox.leave(seat), self.model.leave(waiter));
    }

    /// What is over may be there for a while, so it is dropped first.
    fn compare(&mut self) {
        self.model.expire(&self.settings, self.now);
        self.inbox.sweep(self.now, usize::MAX);
        let (counts, model) = (self.inbox.counts(), &self.model);
        let theirs = (model.running.len(), model.finished.len(), model.bytes(), model.forgotten_early);
        assert_eq!((counts.running, counts.finished, counts.bytes, counts.forgotten_early), theirs);
        assert!(counts.running + counts.finished <= self.settings.entries_max && counts.bytes <= self.settings.bytes_max);
    }

    fn step(&mut self, chance: &mut ChaCha8Rng) {
        let draw = chance.random_range(0..100);
        match draw {
            0..55 => {
                let caller = ["a", "bob", "caroline"][chance.random_range(0..3)];
                let id = "x".repeat(if chance.random_range(0..20) == 0 { 50 } else { 1 }) + &chance.random_range(0..12).to_string();
                let kind = if chance.random_range(0..3) == 0 { Kind::Tell } else { Kind::Call };
                self.check(caller, &id, kind, u64::from(chance.random_range(0..15) == 0), chance.random_range(0..4) > 0);
            }
            55..62 if !self.tickets.is_empty() => self.taken(chance.random_range(0..self.tickets.len())),
            62..80 if !self.tickets.is_empty() => {
                let outcome = match chance.random_range(0..10) {
                    0..3 => Finish::Forget,
                    3 => Finish::Keep(Err(Failure::permanent("no"))),
                    4 => Finish::Keep(Ok(Bytes::new())),
                    _ => Finish::Keep(Ok(vec![b'r'; chance.random_range(0..120)].into())),
                };
                self.finish(chance.random_range(0..self.tickets.len()), outcome);
            }
            80..88 if !self.seats.is_empty() => self.leave(chance.random_range(0..self.seats.len())),
            88..96 => self.now += Duration::from_millis(chance.random_range(0..30_000)),
            96 => self.now += self.settings.window,
            97.. => self.compare(),
            _ => {}
        }
    }
}

#[test]
fn the_inbox_answers_as_a_list_would_that_is_searched_from_end_to_end() {
    let mut chance = crate::chance();
    for _ in 0..150 {
        let seed = chance.random();
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let settings = Settings {
            entries_max: chance.random_range(1..40),
            bytes_max: chance.random_range(50..3000),
            waiters_max: chance.random_range(1..4),
            ..Settings::default()
        };
        let mut twins = Twins::new(settings);
        (0..400).for_each(|_| twins.step(&mut chance));
        twins.compare();
    }
}
