//! The entries of an inbox, how they are found, and the line of those that are finished.

use super::callers::Callers;
use super::id::Id;
use super::index::Index;
use super::log::{LONGEST, Log, Logged};
use super::slab::{NONE, Slab};
use super::{Finish, Kind};
use bytes::Bytes;
use hashbrown::DefaultHashBuilder;
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::ops;
use std::time::Duration;
use steadfast_kernel::Failure;

/// For so many requests at once memory is brought near: about as many fetches as a core has under way at a time.
pub(crate) const AHEAD_MAX: usize = 16;

/// A request that is known.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) id: Id,
    pub(super) digest: u64,
    pub(super) state: State,
    caller: u32,
    pub(super) kind: Kind,
}

pub(super) enum State {
    /// It runs: its place among those that do.
    Running(u32),
    Finished(Finished),
}

impl Default for State {
    fn default() -> Self {
        State::Running(NONE)
    }
}

/// A request that is looked for.
pub(super) struct Sought<'a> {
    pub(super) caller: &'a str,
    pub(super) id: &'a str,
    /// The place of its caller, if that is known, and its hash.
    home: Option<(u32, u64)>,
}

/// A request that has run: its place in the line, when it finished, and what came of it.
pub(super) struct Finished {
    before: u32,
    after: u32,
    at_ns: u64,
    outcome: Outcome,
}

/// What came of a request.
enum Outcome {
    Answer(Logged),
    /// One that is too long for the log.
    Long(Box<Bytes>),
    Failure(Box<Failure>),
    /// Of a tell, which is kept elsewhere.
    GivenUp,
}

impl Finished {
    pub(super) fn at(&self) -> Duration {
        Duration::from_nanos(self.at_ns)
    }

    fn bytes(&self) -> usize {
        match &self.outcome {
            Outcome::Answer(answer) => answer.len(),
            Outcome::Long(answer) => answer.len(),
            Outcome::Failure(failure) => bytes_of_failure(failure),
            Outcome::GivenUp => 0,
        }
    }
}

/// How long an outcome is.
pub(super) fn bytes_of(outcome: &Result<Bytes, Failure>) -> usize {
    match outcome {
        Ok(bytes) => bytes.len(),
        Err(failure) => bytes_of_failure(failure),
    }
}

fn bytes_of_failure(failure: &Failure) -> usize {
    size_of::<Failure>() + failure.message.len() + failure.causes.iter().map(String::len).sum::<usize>()
}

pub(super) struct Entries<S = DefaultHashBuilder> {
    slab: Slab<Entry, 1024>,
    index: Index,
    callers: Callers,
    answers: Log,
    hasher: S,
    /// How long ids and results are together.
    bytes: usize,
    /// Those that are finished, and behind them those that were spared when room was needed.
    line: Ends,
    spared: Ends,
}

/// The two ends of a line, in which entries stand in the order in which they finished.
#[derive(Clone, Copy)]
struct Ends {
    oldest: u32,
    newest: u32,
}

impl Ends {
    const NONE: Ends = Ends { oldest: NONE, newest: NONE };
}

impl<S: Default> Default for Entries<S> {
    fn default() -> Self {
        Entries {
            slab: Slab::default(),
            index: Index::default(),
            callers: Callers::default(),
            answers: Log::default(),
            hasher: S::default(),
            bytes: 0,
            line: Ends::NONE,
            spared: Ends::NONE,
        }
    }
}

impl<S: BuildHasher> Entries<S> {
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn callers(&self) -> usize {
        self.callers.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.callers.bytes()
    }

    /// The one that finished first.
    pub(super) fn oldest(&self) -> Option<u32> {
        let [line, spared] = [self.line.oldest, self.spared.oldest];
        match (self.finished_at(line), self.finished_at(spared)) {
            (Some(_), None) => Some(line),
            (Some(at), Some(spared_at)) if at <= spared_at => Some(line),
            (_, Some(_)) => Some(spared),
            (None, None) => None,
        }
    }

    /// The one to be forgotten first if room is needed.
    pub(super) fn first_to_go(&self) -> Option<u32> {
        self.first_in_line().or_else(|| Some(self.spared.oldest).filter(|place| *place != NONE))
    }

    /// The oldest of those that were not spared.
    pub(super) fn first_in_line(&self) -> Option<u32> {
        Some(self.line.oldest).filter(|place| *place != NONE)
    }

    /// How many entries the caller of that one has, and their bytes.
    pub(super) fn load_of_its_caller(&self, place: u32) -> (usize, usize) {
        self.callers.load(self.slab[place].caller)
    }

    fn finished_at(&self, place: u32) -> Option<u64> {
        match (place != NONE).then(|| &self.slab[place].state) {
            Some(State::Finished(finished)) => Some(finished.at_ns),
            _ => None,
        }
    }

    /// Has the memory brought near that requests need which come next.
    ///
    /// With very many entries, what takes time is memory that is not in a cache. Whoever comes is likely to be added, and the oldest to be dropped for that: what both of these need is
    /// fetched for all of them side by side here, and not for one after the other later on.
    pub(super) fn fetch_for_new<'a>(&self, coming: impl Iterator<Item = (&'a str, &'a str)>) {
        let (mut hashes, mut oldest) = ([0; 2 * AHEAD_MAX], self.line.oldest);
        let mut count = 0;
        for (caller, id) in coming.take(AHEAD_MAX) {
            if let Some(Entry { id, caller, state: State::Finished(finished), .. }) = self.slab.get(oldest) {
                hashes[count] = self.hash(*caller, id.as_bytes());
                (count, oldest) = (count + 1, finished.after);
            }
            if let Some(caller) = self.callers.find(caller) {
                hashes[count] = self.hash(caller, id.as_bytes());
                count += 1;
            }
        }
        hashes[..count].iter().for_each(|hash| self.index.fetch(*hash));
    }

    /// The same for requests that are likely to be known: nothing is dropped for them, but their entries are looked at.
    pub(super) fn fetch_known<'a>(&self, coming: impl Iterator<Item = (&'a str, &'a str)>) {
        let (mut hashes, mut count) = ([0; AHEAD_MAX], 0);
        for (caller, id) in coming.take(AHEAD_MAX) {
            if let Some(caller) = self.callers.find(caller) {
                hashes[count] = self.hash(caller, id.as_bytes());
                count += 1;
            }
        }
        hashes[..count].iter().for_each(|hash| self.index.fetch(*hash));
        for place in hashes[..count].iter().filter_map(|hash| self.index.first_like(*hash)) {
            black_box(self.slab.get(place).map(|entry| (entry.caller, entry.digest)));
        }
    }

    /// Where that one belongs.
    pub(super) fn seek<'a>(&self, caller: &'a str, id: &'a str) -> Sought<'a> {
        let home = self.callers.find(caller).map(|caller| (caller, self.hash(caller, id.as_bytes())));
        Sought { caller, id, home }
    }

    pub(super) fn find(&self, sought: &Sought<'_>) -> Option<u32> {
        let (caller, hash) = sought.home?;
        let is = |place| self.slab[place].caller == caller && self.slab[place].id.as_bytes() == sought.id.as_bytes();
        self.index.find(hash, is)
    }

    /// Adds one that runs and is not there.
    pub(super) fn insert(&mut self, sought: &Sought<'_>, kind: Kind, digest: u64) -> u32 {
        let Sought { caller, id, home } = *sought;
        let caller = self.callers.hold(caller, id.len());
        let hash = match home {
            Some((same, hash)) if same == caller => hash,
            _ => self.hash(caller, id.as_bytes()), // its caller was not known, or has lost its last entry meanwhile
        };
        let place = self.slab.insert(Entry { id: id.into(), digest, caller, kind, state: State::default() });
        self.index.insert(hash, place);
        self.bytes += id.len();
        place
    }

    /// One that runs has finished: it stands at the end of the line.
    pub(super) fn finish(&mut self, place: u32, outcome: Result<Bytes, Failure>, at: Duration) {
        let outcome = match outcome {
            Ok(answer) if answer.len() <= LONGEST => Outcome::Answer(self.answers.add(&answer)),
            Ok(answer) => Outcome::Long(Box::new(answer)),
            Err(failure) => Outcome::Failure(Box::new(failure)),
        };
        self.stand_in_line(place, outcome, at);
    }

    /// A tell that runs was given up.
    pub(super) fn give_up(&mut self, place: u32, at: Duration) {
        self.stand_in_line(place, Outcome::GivenUp, at);
    }

    fn stand_in_line(&mut self, place: u32, outcome: Outcome, at: Duration) {
        let at_ns = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let finished = Finished { before: NONE, after: NONE, at_ns, outcome };
        let bytes = finished.bytes();
        self.bytes += bytes;
        let entry = &mut self.slab[place];
        entry.state = State::Finished(finished);
        self.callers.grow(entry.caller, bytes);
        self.line = self.append(self.line, place);
    }

    /// The oldest that was not spared is forgotten after all that were not, if room is needed.
    pub(super) fn spare_first_in_line(&mut self) {
        let place = self.line.oldest;
        let Some(&mut Finished { before, after, ref outcome, .. }) = self.finished_mut(place) else { return };
        // The log is given up from its beginning: whoever stays for longer takes his answer with him, or all that came after it would stay as well.
        if let Outcome::Answer(logged) = *outcome
            && logged != Logged::EMPTY
        {
            let answer = Bytes::copy_from_slice(self.answers.get(logged));
            self.answers.remove(logged);
            if let Some(finished) = self.finished_mut(place) {
                finished.outcome = Outcome::Long(Box::new(answer));
            }
        }
        self.unlink(place, before, after);
        self.spared = self.append(self.spared, place);
    }

    /// What came of one that has finished.
    pub(super) fn outcome(&self, finished: &Finished) -> Result<Bytes, Failure> {
        match &finished.outcome {
            Outcome::Answer(answer) => Ok(Bytes::copy_from_slice(self.answers.get(*answer))),
            Outcome::Long(answer) => Ok(Bytes::clone(answer)),
            Outcome::Failure(failure) => Err(Failure::clone(failure)),
            Outcome::GivenUp => Ok(Bytes::new()), // whoever told it is not told more
        }
    }

    /// What it has left behind.
    pub(super) fn left(&self, finished: &Finished) -> Finish {
        match &finished.outcome {
            Outcome::GivenUp => Finish::GiveUp,
            _ => Finish::Keep(self.outcome(finished)),
        }
    }

    pub(super) fn remove(&mut self, place: u32) {
        let Entry { id, state, caller, .. } = self.slab.remove(place);
        self.index.remove(self.hash(caller, id.as_bytes()), place);
        let mut bytes = id.len();
        if let State::Finished(finished) = state {
            bytes += finished.bytes();
            if let Outcome::Answer(answer) = finished.outcome {
                self.answers.remove(answer);
            }
            self.unlink(place, finished.before, finished.after);
        }
        self.callers.release(caller, bytes);
        self.bytes -= bytes;
        self.trim();
    }

    /// The line with one more behind all that stand there.
    fn append(&mut self, line: Ends, place: u32) -> Ends {
        if let Some(finished) = self.finished_mut(place) {
            (finished.before, finished.after) = (line.newest, NONE);
        }
        if let Some(newest) = self.finished_mut(line.newest) {
            newest.after = place;
        }
        Ends { oldest: if line.oldest == NONE { place } else { line.oldest }, newest: place }
    }

    /// Takes one out of the line in which it stands between those two.
    fn unlink(&mut self, place: u32, before: u32, after: u32) {
        if let Some(finished) = self.finished_mut(before) {
            finished.after = after;
        }
        if let Some(finished) = self.finished_mut(after) {
            finished.before = before;
        }
        for line in [&mut self.line, &mut self.spared] {
            if line.oldest == place {
                line.oldest = after;
            }
            if line.newest == place {
                line.newest = before;
            }
        }
    }

    fn finished_mut(&mut self, place: u32) -> Option<&mut Finished> {
        match &mut self.slab.get_mut(place)?.state {
            State::Finished(finished) => Some(finished),
            State::Running(_) => None,
        }
    }

    /// Gives memory back that a burst has left behind.
    fn trim(&mut self) {
        if self.slab.len() == 0 {
            self.index.trim();
            self.answers.trim();
        }
        self.slab.trim();
    }

    fn hash(&self, caller: u32, id: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(caller);
        hasher.write(id);
        hasher.finish()
    }
}

impl<S> ops::Index<u32> for Entries<S> {
    type Output = Entry;

    fn index(&self, place: u32) -> &Entry {
        &self.slab[place]
    }
}

impl<S> ops::IndexMut<u32> for Entries<S> {
    fn index_mut(&mut self, place: u32) -> &mut Entry {
        &mut self.slab[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasherDefault;

    /// Finds that all things are alike.
    #[derive(Default)]
    struct Alike;

    impl Hasher for Alike {
        fn write(&mut self, _: &[u8]) {}

        fn finish(&self) -> u64 {
            7
        }
    }

    /// One of them stays while very many come and go behind it.
    #[test]
    fn an_answer_that_is_spared_does_not_keep_those_that_came_after_it() {
        let mut entries = Entries::<hashbrown::DefaultHashBuilder>::default();
        let finish = |entries: &mut Entries, caller: &str, id: &str, answer: Bytes| {
            let place = entries.insert(&entries.seek(caller, id), Kind::Call, 1);
            entries.finish(place, Ok(answer), Duration::ZERO);
            place
        };
        let quiet = finish(&mut entries, "quiet", "q", Bytes::from_static(b"kept"));
        entries.spare_first_in_line();
        for number in 0..20_000 {
            finish(&mut entries, "greedy", &number.to_string(), vec![7; 1000].into());
            if number >= 100 {
                let first = entries.first_in_line().expect("there are a hundred");
                entries.remove(first);
            }
        }
        assert!(entries.answers.pieces() <= 3, "{} pieces for a hundred answers", entries.answers.pieces());
        let State::Finished(finished) = &entries[quiet].state else { panic!("it has finished") };
        assert_eq!(entries.outcome(finished), Ok(Bytes::from_static(b"kept")));
    }

    #[test]
    fn entries_of_equal_hash_are_told_apart_by_caller_and_id() {
        let mut entries = Entries::<BuildHasherDefault<Alike>>::default();
        let pairs: Vec<_> = ["alice", "bob", "b"]
            .into_iter()
            .flat_map(|caller| ["x", "ob", "obx"].map(|id| (caller, id)))
            .collect();
        let places: Vec<_> = pairs.iter().map(|(caller, id)| entries.insert(&entries.seek(caller, id), Kind::Call, 1)).collect();
        for gone in 0..pairs.len() {
            for (n, (caller, id)) in pairs.iter().enumerate() {
                assert_eq!(entries.find(&entries.seek(caller, id)), (n >= gone).then(|| places[n]), "{caller} {id} when {gone} are gone");
            }
            entries.remove(places[gone]);
        }
    }
}
