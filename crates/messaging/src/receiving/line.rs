//! Who runs and who waits: so many side by side, those of one key one after the other, in the order in which they came. Whoever waits can leave at any time.

use hashbrown::HashMap;
use std::collections::VecDeque;

/// What requests have in common that must not run side by side; nothing if they may.
pub(super) type Key = Option<Vec<u8>>;

/// So many who have left may stand in lines beyond the number of those who wait, before the lines are tidied up.
const GONE_MAX: usize = 64;

pub(super) struct Line<J> {
    side_by_side: usize,
    running: usize,
    /// Those who wait, by number.
    waiting: HashMap<u64, Waits<J>>,
    /// How many each has who has any that wait.
    owners: HashMap<u64, usize>,
    /// How many have ever waited.
    last: u64,
    /// The numbers of those who wait for anybody to end, in order. Who has left may still stand there.
    line: VecDeque<u64>,
    /// The keys of which one runs, and those who wait for it.
    keys: HashMap<Vec<u8>, VecDeque<u64>>,
    /// How many have left and still stand in a line.
    gone: usize,
}

struct Waits<J> {
    key: Key,
    owner: u64,
    job: J,
}

/// What follows for somebody who has come.
pub(super) enum Entered<J> {
    Runs(Key, J),
    /// It waits, by that number.
    Waits(u64),
}

impl<J> Line<J> {
    pub(super) fn new(side_by_side: usize) -> Self {
        let (waiting, owners, line, keys) = (HashMap::new(), HashMap::new(), VecDeque::new(), HashMap::new());
        Line { side_by_side, running: 0, waiting, owners, last: 0, line, keys, gone: 0 }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many of that owner's wait.
    pub(super) fn len_of(&self, owner: u64) -> usize {
        self.owners.get(&owner).copied().unwrap_or(0)
    }

    /// Whether somebody of that key would have to wait.
    pub(super) fn is_busy(&self, key: &Key) -> bool {
        self.running >= self.side_by_side || key.as_ref().is_some_and(|key| self.keys.contains_key(key))
    }

    /// Somebody comes.
    pub(super) fn enter(&mut self, key: Key, owner: u64, job: J) -> Entered<J> {
        if self.running < self.side_by_side && self.take(key.as_ref()) {
            self.running += 1;
            return Entered::Runs(key, job);
        }
        self.last += 1;
        let all_run = self.running >= self.side_by_side;
        match key.as_ref().filter(|_| !all_run).and_then(|key| self.keys.get_mut(key)) {
            Some(line) => line.push_back(self.last),
            None => self.line.push_back(self.last),
        }
        *self.owners.entry(owner).or_default() += 1;
        self.waiting.insert(self.last, Waits { key, owner, job });
        Entered::Waits(self.last)
    }

    /// One who waits.
    pub(super) fn get(&self, number: u64) -> Option<&J> {
        self.waiting.get(&number).map(|waits| &waits.job)
    }

    /// Who is next after one of that key, which has ended. If there is nobody, fewer run.
    pub(super) fn next(&mut self, key: Key) -> Option<(Key, J)> {
        let next = self.find_next(key);
        self.running -= usize::from(next.is_none());
        next
    }

    fn find_next(&mut self, key: Key) -> Option<(Key, J)> {
        if let Some(key) = key {
            while let Some(number) = self.keys.get_mut(&key).and_then(VecDeque::pop_front) {
                match self.take_out(number) {
                    Some(next) => return Some(next),
                    None => self.gone -= 1,
                }
            }
            self.keys.remove(&key);
        }
        while let Some(number) = self.line.pop_front() {
            let Some(Waits { key, .. }) = self.waiting.get(&number) else {
                self.gone -= 1;
                continue;
            };
            match key.as_ref().and_then(|key| self.keys.get_mut(key)) {
                Some(line) => line.push_back(number),
                None => {
                    self.keys.extend(key.clone().map(|key| (key, VecDeque::new())));
                    return self.take_out(number);
                }
            }
        }
        None
    }

    /// Somebody who waits leaves.
    pub(super) fn leave(&mut self, number: u64) -> Option<J> {
        let (_, job) = self.take_out(number)?;
        self.gone += 1;
        self.tidy();
        Some(job)
    }

    /// Those leave of whom that is true; the one who came first is the first.
    pub(super) fn leave_if(&mut self, mut which: impl FnMut(&J) -> bool) -> Vec<J> {
        let mut left: Vec<_> = self.waiting.iter().filter(|(_, waits)| which(&waits.job)).map(|(number, _)| *number).collect();
        left.sort_unstable();
        left.into_iter().filter_map(|number| self.leave(number)).collect()
    }

    /// One who waits does not any more.
    fn take_out(&mut self, number: u64) -> Option<(Key, J)> {
        let Waits { key, owner, job } = self.waiting.remove(&number)?;
        if let Some(count) = self.owners.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.owners.remove(&owner);
            }
        }
        Some((key, job))
    }

    /// Takes a key, if nobody of it runs.
    fn take(&mut self, key: Option<&Vec<u8>>) -> bool {
        match key {
            Some(key) if self.keys.contains_key(key) => false,
            key => {
                self.keys.extend(key.map(|key| (key.clone(), VecDeque::new())));
                true
            }
        }
    }

    /// Nobody stands in a line who has left. Done when those are more than half of all, so that leaving costs the same however long the lines are.
    fn tidy(&mut self) {
        if self.gone > self.waiting.len() + GONE_MAX {
            let Line { waiting, line, keys, gone, .. } = self;
            for line in std::iter::once(line).chain(keys.values_mut()) {
                line.retain(|number| waiting.contains_key(number));
            }
            *gone = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        (!name.is_empty()).then(|| name.into())
    }

    /// The number by which it waits; nothing if it runs.
    fn enter(line: &mut Line<u32>, name: &str, job: u32) -> Option<u64> {
        match line.enter(key(name), u64::from(job % 2), job) {
            Entered::Runs(..) => None,
            Entered::Waits(number) => Some(number),
        }
    }

    fn next(line: &mut Line<u32>, name: &str) -> Option<u32> {
        line.next(key(name)).map(|(_, job)| job)
    }

    #[test]
    fn those_of_a_key_come_one_after_the_other_and_others_pass() {
        let mut line = Line::new(2);
        assert_eq!(enter(&mut line, "a", 1), None);
        assert!(enter(&mut line, "a", 2).is_some(), "its key runs");
        assert_eq!(enter(&mut line, "b", 3), None);
        assert!(enter(&mut line, "a", 4).is_some() && enter(&mut line, "c", 5).is_some(), "all run");
        assert_eq!((line.len(), line.len_of(0), line.len_of(1)), (3, 2, 1));
        assert_eq!(next(&mut line, "b"), Some(5), "4 waits for those of its key");
        assert_eq!((next(&mut line, "a"), next(&mut line, "a")), (Some(2), Some(4)));
        assert_eq!((next(&mut line, "a"), next(&mut line, "c"), line.running, line.keys.len()), (None, None, 0, 0));
        assert!(line.owners.is_empty());
    }

    #[test]
    fn whoever_has_left_is_passed_over_in_either_line() {
        let mut line = Line::new(2);
        assert_eq!(enter(&mut line, "a", 1), None);
        let of_key = enter(&mut line, "a", 2).unwrap();
        assert_eq!(enter(&mut line, "", 3), None);
        let of_all = enter(&mut line, "", 4).unwrap();
        assert!(enter(&mut line, "a", 5).is_some() && enter(&mut line, "", 6).is_some());
        assert_eq!((line.leave(of_key), line.leave(of_all), line.leave(of_all)), (Some(2), Some(4), None));
        assert_eq!((next(&mut line, ""), next(&mut line, "a"), line.gone), (Some(6), Some(5), 0));
        assert_eq!((next(&mut line, ""), next(&mut line, "a"), line.running), (None, None, 0));
    }

    #[test]
    fn lines_do_not_grow_with_those_who_come_and_leave() {
        let mut line = Line::new(2);
        assert!(enter(&mut line, "a", 0).is_none() && enter(&mut line, "b", 0).is_none());
        let stays = enter(&mut line, "", 1).unwrap();
        for round in 0..10_000 {
            let number = enter(&mut line, ["", "a"][round % 2], 2).unwrap();
            assert_eq!(line.leave(number), Some(2));
            assert!(line.line.len() <= 2 * GONE_MAX, "round {round}: {}", line.line.len());
        }
        assert!((3..100).all(|job| enter(&mut line, "", job).is_some()));
        assert_eq!(line.leave_if(|job| *job >= 3), (3..100).collect::<Vec<_>>(), "in order");
        assert_eq!((line.len(), line.get(stays)), (1, Some(&1)));
        assert_eq!(next(&mut line, "a"), Some(1));
    }
}
