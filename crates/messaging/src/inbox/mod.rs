//! The memory inbox: a request runs once in its window, however often it is delivered.
//!
//! ```text
//! (nothing) --check--> running --finish(Keep)--> finished --window over, or room is needed--> (nothing)
//!                      running --finish(Forget)--> (nothing)
//!                      running --taken (a tell)--> running, and repeats of it are dropped instead of waiting
//! ```
//! A machine without time, locks or tasks of its own: whoever holds it says what time it is and puts a lock around it. It forgets all when the process ends.
//!
//! What a message costs does not depend on how many are known. Entries are found by a hash and compared exactly; those that are finished stand in a line by the
//! time at which they finished, and every check takes a few from its front that are over. A result that needs room takes it from as many of the oldest as it must:
//! of those whose callers have much, so that one caller does not shorten the window of all others.

mod again;
mod callers;
mod entries;
mod id;
mod index;
mod log;
mod running;
mod slab;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use entries::{Entries, Sought, State};
use running::Running;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure};
use tokio::time::Instant;

pub use again::Again;
pub(crate) use entries::AHEAD_MAX;
pub use running::{Left, Seat, Ticket, Waiters};

/// How many entries that are over are dropped per message: more than one, so that they become fewer.
const DROPPED_PER_CHECK: usize = 4;

/// How many entries in a row are spared when one is to be forgotten: then one of them goes all the same, so that a message never walks a long line.
const SPARED_AT_ONCE: usize = 64;

/// The bounds of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a request is known after it has finished.
    pub window: Duration,
    /// How many requests are known. Each takes about 110 bytes beside what `bytes_max` counts.
    pub entries_max: usize,
    /// How long their ids, the names of their callers and their results may be together.
    pub bytes_max: usize,
    /// How many may wait for one request.
    pub waiters_max: usize,
    /// When to try again that for which there was no room.
    pub retry_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            window: Duration::from_secs(120),
            entries_max: 1_000_000,
            bytes_max: 256 << 20,
            waiters_max: 16,
            retry_after: Duration::from_millis(100),
        }
    }
}

/// Whether a request wants an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// It does.
    #[default]
    Call,
    /// It wants to be taken, no more.
    Tell,
}

/// What to do with a request that was delivered.
#[derive(Debug)]
#[must_use]
pub enum Verdict<W> {
    /// Run it. Whoever delivered it is the first who waits.
    New(Ticket, Seat),
    /// A call that runs already: whoever delivered it waits for the same outcome. Or a tell that nobody has taken yet, and that may not be taken at all.
    Waits(Seat),
    /// A tell that was taken, or has run: there is nothing to do.
    Dropped(W),
    /// A call that has run: this is its answer.
    Known(Result<Bytes, Failure>, W),
    /// Another request with the same id: to be refused with `INVALID_ARGUMENT`.
    Different(W),
    /// There is no room for it, or too many wait for it: to be refused with `RESOURCE_EXHAUSTED`, and tried again after that time.
    Full(W, Duration),
}

/// What a request that has run leaves behind.
#[derive(Clone, Debug, PartialEq)]
pub enum Finish {
    /// Its outcome: whoever delivers it again gets it. If they are many, the bytes are to be its own, not a part of something larger that would be kept with them.
    Keep(Result<Bytes, Failure>),
    /// That it is a tell which has come to nothing, and is kept elsewhere: whoever delivers it again is told that it is known, and whoever tries it once more has it run.
    GiveUp,
    /// Nothing: whoever delivers it again has it run again.
    Forget,
}

impl Finish {
    /// What that outcome leaves behind. A failure that may pass is forgotten, also one for which the handler has used up its own attempts, and so are requests that were called off or not
    /// allowed.
    ///
    /// Copies what is long, so call it before the inbox is locked.
    pub fn of(outcome: &Result<Bytes, Failure>) -> Self {
        match outcome {
            Ok(bytes) if bytes.len() <= log::LONGEST => Finish::Keep(Ok(bytes.clone())), // which is copied where it is kept
            Ok(bytes) => Finish::Keep(Ok(Bytes::copy_from_slice(bytes))),
            Err(failure) if may_pass(failure) => Finish::Forget,
            Err(failure) if matches!(failure.code, Code::Cancelled | Code::PermissionDenied) => Finish::Forget,
            Err(failure) => Finish::Keep(Err(failure.clone())),
        }
    }
}

/// Whether it may work another time. Who has used up the attempts at something that may pass does not try again, but somebody else may.
fn may_pass(failure: &Failure) -> bool {
    failure.class == Class::Transient || failure.class == Class::Permanent && failure.max_attempts.is_some()
}

/// How much an inbox has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that run.
    pub running: usize,
    /// Requests that have finished and are known.
    pub finished: usize,
    /// Callers that have a request here.
    pub callers: usize,
    /// How long ids, callers and results are together.
    pub bytes: usize,
    /// How many were forgotten before their window was over, since the start.
    pub forgotten_early: u64,
}

/// Knows the requests that run and those that have finished lately. `W` is whoever waits for an answer.
pub struct Inbox<W> {
    settings: Settings,
    entries: Entries,
    running: Running<W>,
    /// How long the ids of those that run are together.
    running_bytes: usize,
    forgotten_early: u64,
    origin: Option<Instant>,
    /// The latest time that was told: it does not go back.
    now: Duration,
    trend: Trend,
}

/// Whether more was known than new of what came lately: requests come again in storms, when a line or a node has failed.
#[derive(Default)]
struct Trend(i8);

impl Trend {
    const MOST: i8 = AHEAD_MAX as i8;

    fn was_known(&mut self) {
        self.0 = (self.0 + 1).min(Self::MOST);
    }

    fn was_new(&mut self) {
        self.0 = (self.0 - 1).max(-Self::MOST);
    }

    fn is_known(&self) -> bool {
        self.0 > 0
    }
}

impl<W> Inbox<W> {
    /// An empty one.
    pub fn new(settings: Settings) -> Self {
        let settings = Settings { entries_max: settings.entries_max.min(slab::NONE as usize - 1), ..settings };
        let (entries, running) = (Entries::default(), Running::default());
        Inbox {
            settings,
            entries,
            running,
            running_bytes: 0,
            forgotten_early: 0,
            origin: None,
            now: Duration::ZERO,
            trend: Trend::default(),
        }
    }

    /// These requests were delivered and are going to be checked next, as callers and ids: their memory is brought near for all of them at once, which takes hardly longer than for one.
    /// It is for speed alone, and looks at the first few.
    pub fn fetch<'a>(&self, coming: impl IntoIterator<Item = (&'a str, &'a str)>) {
        match self.trend.is_known() {
            false => self.entries.fetch_for_new(coming.into_iter()),
            true => self.entries.fetch_known(coming.into_iter()),
        }
    }

    /// A request was delivered. Callers do not share ids; the digest is of all that makes a request another one, its route and its bytes.
    pub fn check(&mut self, caller: &str, id: &str, kind: Kind, digest: u64, waiter: W, now: Instant) -> Verdict<W> {
        self.move_on(now);
        let sought = self.entries.seek(caller, id);
        match self.known(&sought) {
            Some(entry) => self.again(entry, kind, digest, waiter),
            None => self.first(&sought, kind, digest, waiter),
        }
    }

    /// The same, where nothing new can be run: a request that is not known is as if it had not come, and whoever delivered it is handed back.
    ///
    /// # Errors
    /// If it is not known.
    pub fn check_known(&mut self, caller: &str, id: &str, kind: Kind, digest: u64, waiter: W, now: Instant) -> Result<Verdict<W>, W> {
        self.move_on(now);
        match self.known(&self.entries.seek(caller, id)) {
            Some(entry) => Ok(self.again(entry, kind, digest, waiter)),
            None => Err(waiter),
        }
    }

    /// A request has run. Those who wait are handed back, to be told its outcome.
    pub fn finish(&mut self, ticket: Ticket, outcome: Finish, now: Instant) -> Waiters<W> {
        self.set_now(now);
        let (entry, waiters) = self.running.end(ticket.0);
        self.running_bytes -= self.entries[entry].id.len();
        match outcome {
            Finish::Keep(outcome) if self.fits(&outcome) => self.keep(entry, outcome),
            Finish::Keep(_) => self.forget_early(entry),
            Finish::GiveUp if self.entries[entry].kind == Kind::Tell => self.entries.give_up(entry, self.now),
            Finish::GiveUp | Finish::Forget => self.entries.remove(entry),
        }
        waiters
    }

    /// A tell that runs is taken: it will be done, or kept, whatever becomes of those who have told it. They are handed back, to be told so; whoever delivers it again is dropped from now on.
    pub fn taken(&mut self, ticket: &Ticket) -> Waiters<W> {
        self.running.take(ticket.0)
    }

    /// Somebody does not wait any more. Nothing if that request has finished, or if they have left already.
    pub fn leave(&mut self, seat: Seat) -> Option<Left<W>> {
        self.running.leave(seat)
    }

    /// Drops entries whose window is over, at most so many, and says how many there were. Checks do that along the way; this is for times without messages.
    pub fn sweep(&mut self, now: Instant, at_most: usize) -> usize {
        self.set_now(now);
        self.drop_expired(at_most)
    }

    /// How much there is.
    pub fn counts(&self) -> Counts {
        Counts {
            running: self.running.len(),
            finished: self.entries.len() - self.running.len(),
            callers: self.entries.callers(),
            bytes: self.entries.bytes(),
            forgotten_early: self.forgotten_early,
        }
    }

    fn move_on(&mut self, now: Instant) {
        self.set_now(now);
        self.drop_expired(DROPPED_PER_CHECK);
    }

    /// The entry of a request, if its window is not over.
    fn known(&mut self, sought: &Sought<'_>) -> Option<u32> {
        let entry = self.entries.find(sought)?;
        if self.is_over(entry) {
            self.entries.remove(entry);
            return None;
        }
        Some(entry)
    }

    fn first(&mut self, sought: &Sought<'_>, kind: Kind, digest: u64, waiter: W) -> Verdict<W> {
        self.trend.was_new();
        if !self.make_room(sought.caller, sought.id) {
            return Verdict::Full(waiter, self.settings.retry_after);
        }
        let (ticket, seat) = self.begin(sought, kind, digest, Some(waiter));
        Verdict::New(ticket, seat)
    }

    /// Adds one that runs and is not there, and for which there is room.
    fn begin(&mut self, sought: &Sought<'_>, kind: Kind, digest: u64, waiter: Option<W>) -> (Ticket, Seat) {
        let entry = self.entries.insert(sought, kind, digest);
        let (request, seat) = self.running.begin(entry, waiter);
        self.entries[entry].state = State::Running(request);
        self.running_bytes += sought.id.len();
        (Ticket(request), seat)
    }

    fn again(&mut self, entry: u32, kind: Kind, digest: u64, waiter: W) -> Verdict<W> {
        self.trend.was_known();
        let entry = &self.entries[entry];
        if (entry.kind, entry.digest) != (kind, digest) {
            return Verdict::Different(waiter);
        }
        match (&entry.state, kind) {
            (State::Finished(_), Kind::Tell) => Verdict::Dropped(waiter),
            (State::Running(request), Kind::Tell) if self.running.is_taken(*request) => Verdict::Dropped(waiter),
            (State::Finished(finished), Kind::Call) => Verdict::Known(self.entries.outcome(finished), waiter),
            (State::Running(request), _) => match self.running.wait(*request, waiter, self.settings.waiters_max) {
                Ok(seat) => Verdict::Waits(seat),
                Err(waiter) => Verdict::Full(waiter, self.settings.retry_after),
            },
        }
    }

    /// Nobody asks for the result of a tell, so that is not kept: only whether it is done.
    fn keep(&mut self, entry: u32, outcome: Result<Bytes, Failure>) {
        match (self.entries[entry].kind, outcome) {
            (Kind::Call, outcome) => self.entries.finish(entry, outcome, self.now),
            (Kind::Tell, Ok(_)) => self.entries.finish(entry, Ok(Bytes::new()), self.now),
            (Kind::Tell, Err(_)) => self.entries.give_up(entry, self.now),
        }
        while self.entries.bytes() > self.settings.bytes_max && self.forget_oldest() {}
    }

    /// Makes room for one more, if those that run leave any.
    fn make_room(&mut self, caller: &str, id: &str) -> bool {
        if !self.leave_room(caller, id) {
            return false;
        }
        let Settings { entries_max, bytes_max, .. } = self.settings;
        let length = caller.len() + id.len();
        while self.entries.len() >= entries_max || self.entries.bytes() + length > bytes_max {
            if !self.forget_oldest() {
                return false;
            }
        }
        true
    }

    /// Whether those that run leave room for one more: all others could be forgotten.
    fn leave_room(&self, caller: &str, id: &str) -> bool {
        self.running.len() < self.settings.entries_max && self.running_bytes + caller.len() + id.len() <= self.settings.bytes_max
    }

    /// A result that does not fit even if all others were forgotten is not worth forgetting them.
    fn fits(&self, outcome: &Result<Bytes, Failure>) -> bool {
        self.running_bytes + entries::bytes_of(outcome) <= self.settings.bytes_max
    }

    /// Forgets the oldest of those whose callers have much; those of others are spared, and looked at once. What is over goes before all of them.
    fn forget_oldest(&mut self) -> bool {
        if self.drop_expired(1) > 0 {
            return true;
        }
        for _ in 0..SPARED_AT_ONCE {
            match self.entries.first_in_line() {
                Some(entry) if self.is_spared(entry) => self.entries.spare_first_in_line(),
                _ => break,
            }
        }
        let first = self.entries.first_to_go();
        if let Some(entry) = first {
            self.forget_early(entry);
        }
        first.is_some()
    }

    /// Whether the caller of that one has less than half of what each would have if all had the same.
    fn is_spared(&self, entry: u32) -> bool {
        let (count, bytes) = self.entries.load_of_its_caller(entry);
        let callers = self.entries.callers();
        callers > 1 && 2 * callers * count <= self.settings.entries_max && 2 * callers * bytes <= self.settings.bytes_max
    }

    fn forget_early(&mut self, entry: u32) {
        self.forgotten_early += u64::from(!self.is_over(entry));
        self.entries.remove(entry);
    }

    fn drop_expired(&mut self, at_most: usize) -> usize {
        let mut dropped = 0;
        while dropped < at_most
            && let Some(entry) = self.entries.oldest().filter(|entry| self.is_over(*entry))
        {
            self.entries.remove(entry);
            dropped += 1;
        }
        dropped
    }

    fn is_over(&self, entry: u32) -> bool {
        match &self.entries[entry].state {
            State::Running(_) => false,
            State::Finished(finished) => self.now.saturating_sub(finished.at()) >= self.settings.window,
        }
    }

    /// Whoever locks the inbox may have looked at the clock before the one who locked it earlier.
    fn set_now(&mut self, now: Instant) {
        let origin = *self.origin.get_or_insert(now);
        self.now = self.now.max(now.saturating_duration_since(origin));
    }
}
