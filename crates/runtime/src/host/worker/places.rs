//! How many runs a process hosts at once, over all of its lines: a server may have several instances, and each of them gives it runs without knowing of the others.
//!
//! The limit is shared, not divided: what one instance does not use, another one may. So every line tells its server how many runs it may have there, those that it has included, and
//! tells it anew when that has changed by much. What is free is offered to all lines in equal parts, at least one place to each, so that no run waits anywhere while there is room.
//! When nothing is free, a line that has less than its part may have some more, and those that have more than theirs are asked to let go of runs that only wait: nobody is kept out by
//! runs that sleep. Nothing is refused, which would cost an opening for nothing; so the limit may be exceeded: by about a sixteenth, one run for each
//! line, and what was on its way when a server was told.

use tokio::sync::watch;

/// A line that has less than its part may have one in so many of the whole beyond the limit, shared with all others.
const BEYOND: u32 = 16;

/// A line is told anew when what it may have more has changed by one in so many.
const CHANGED_BY: u32 = 4;

/// What all lines of a process host together.
#[derive(Clone, Debug, Default)]
pub struct Places {
    counts: watch::Sender<Counts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    lines: u32,
    sessions: u32,
}

impl Places {
    /// Another line stands, whose server was told that it may give it so many runs.
    pub(super) fn join(&self, max: u32) -> Share {
        self.counts.send_modify(|counts| counts.lines += 1);
        Share { counts: self.counts.clone(), changes: self.counts.subscribe(), max, sessions: 0, told: max }
    }
}

/// What one line has of them. It has nothing any more when this is dropped.
pub(super) struct Share {
    counts: watch::Sender<Counts>,
    changes: watch::Receiver<Counts>,
    max: u32,
    sessions: u32,
    /// What the server was told last.
    told: u32,
}

impl Share {
    /// The line hosts so many runs now.
    pub(super) fn set(&mut self, sessions: usize) {
        let (before, now) = (self.sessions, u32::try_from(sessions).unwrap_or(u32::MAX));
        self.sessions = now;
        if before != now {
            self.change(|counts| counts.sessions = counts.sessions.saturating_sub(before).saturating_add(now));
        }
    }

    fn change(&self, change: impl FnOnce(&mut Counts)) {
        self.counts.send_if_modified(|counts| {
            let lines = counts.lines;
            change(counts);
            lines > 1 // nobody else has to hear of it
        });
    }

    /// Ends when it may be that the server is to be told something.
    pub(super) async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending().await // it has a sender itself
        }
    }

    /// How many runs the server may give this line, if it has to be told.
    pub(super) fn news(&mut self) -> Option<u32> {
        let counts = *self.changes.borrow_and_update();
        let limit = limit(self.max, counts, self.sessions);
        let (room, told) = (limit.saturating_sub(self.sessions), self.told.saturating_sub(self.sessions));
        let matters = (room == 0) != (told == 0) || room.abs_diff(told) > told / CHANGED_BY || limit < self.sessions;
        if !matters || limit == self.told {
            return None;
        }
        self.told = limit;
        Some(limit)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let sessions = self.sessions;
        self.change(|counts| {
            counts.lines = counts.lines.saturating_sub(1);
            counts.sessions = counts.sessions.saturating_sub(sessions);
        });
    }
}

/// How many runs a line may have that has so many of them.
fn limit(max: u32, counts: Counts, has: u32) -> u32 {
    let lines = counts.lines.max(1);
    let part = max.div_ceil(lines);
    match counts.sessions.checked_sub(max) {
        None | Some(0) => {
            let free = max.saturating_sub(counts.sessions).div_ceil(lines);
            let beyond = part.saturating_sub(has).min(max.div_ceil(lines.saturating_mul(BEYOND)));
            has.saturating_add(free.max(beyond)).min(max)
        }
        Some(_) if has <= part => has,
        Some(over) => has.saturating_sub(over).max(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits<const LINES: usize>(max: u32, has: [u32; LINES]) -> [u32; LINES] {
        let counts = Counts { lines: LINES as u32, sessions: has.iter().sum() };
        has.map(|has| limit(max, counts, has))
    }

    #[test]
    fn what_is_free_is_for_everybody_and_what_is_taken_is_given_back_to_those_who_have_less() {
        assert_eq!(limits(1000, [700]), [1000], "a single line has all of it");
        assert_eq!(limits(1000, [0, 0]), [500, 500]);
        assert_eq!(limits(1000, [900, 0]), [950, 50]);
        assert_eq!(limits(1000, [999, 0]), [1000, 32], "one place, and for who has less than its part some more");
        assert_eq!(limits(1000, [1000, 0]), [1000, 32]);
        assert_eq!(limits(1000, [1000, 32]), [968, 32], "those that only wait make room");
        assert_eq!(limits(1000, [968, 32]), [968, 64]);
        assert_eq!(limits(1000, [510, 510]), [500, 500]);
        assert_eq!(limits(1, [0, 0, 0]), [1, 1, 1]);
        assert_eq!(limits(1, [1, 0, 0]), [1, 1, 1], "who has nothing is not kept out by one that sleeps");
        assert_eq!(limits(1, [1, 1, 0]), [1, 1, 0]);
        assert_eq!(limits(u32::MAX, [u32::MAX, 0]), [u32::MAX, 1 << 27]);
    }

    /// Takes all that it is offered, over and over.
    fn fill(shares: &mut [(Share, u32)], greedy: &[usize]) -> u32 {
        for _ in 0..1000 {
            for (share, limit) in &mut *shares {
                *limit = share.news().unwrap_or(*limit);
            }
            for index in greedy {
                let (share, limit) = &mut shares[*index];
                let more = share.sessions.max(*limit);
                share.set(more as usize);
            }
        }
        shares.iter().map(|(share, _)| share.sessions).sum()
    }

    #[test]
    fn whoever_wants_it_gets_all_and_together_they_do_not_exceed_it_by_much() {
        for max in [1, 2, 3, 10, 100, 1000] {
            for lines in 1..5_usize {
                let places = Places::default();
                let mut shares: Vec<_> = (0..lines).map(|_| (places.join(max), max)).collect();
                shares.iter_mut().for_each(|(share, limit)| *limit = share.news().unwrap_or(*limit));
                let bound = max + max / 4 + lines as u32; // each line hears late of what the others took
                assert_eq!(fill(&mut shares, &[0]), max, "{max} by one of {lines}");
                let all: Vec<_> = (0..lines).collect();
                let total = fill(&mut shares, &all);
                assert!((max..=bound).contains(&total), "{total} of {max} by {lines}");
                assert!(shares.iter().all(|(share, _)| share.sessions > 0), "{max} by {lines}");
            }
        }
    }

    #[test]
    fn a_line_is_told_what_matters_and_nothing_while_it_is_alone() {
        let places = Places::default();
        let mut first = places.join(100);
        first.set(50);
        assert_eq!(first.news(), None);
        let mut second = places.join(100);
        assert_eq!((first.news(), second.news()), (Some(75), Some(25)));
        first.set(52);
        assert_eq!((first.news(), second.news()), (None, None), "one place less for each");
        first.set(75);
        assert_eq!((first.news(), second.news()), (Some(88), Some(13)));
        drop(first);
        assert_eq!(second.news(), Some(100));
    }
}
