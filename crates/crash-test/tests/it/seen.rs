//! What kills have left behind, counted: whether they came at moments worth looking at.

use crate::world::World;
use std::collections::BTreeMap;
use std::fmt;
use steadfast_kernel::Status;

/// So many kills leave everything behind that there is.
const KILLS_ENOUGH: u64 = 100;

/// What was seen after kills, and how often.
#[derive(Default)]
pub(crate) struct Seen(BTreeMap<&'static str, usize>);

impl Seen {
    pub(crate) fn note(&mut self, world: &World) {
        let runs = world.runs().map(|(run, _)| (run.status().as_str(), 1));
        let others = [("messages", world.outbox.len()), ("letters", world.letters.len()), ("timers", world.timers.len())];
        for (what, count) in runs.chain(others) {
            *self.0.entry(what).or_default() += count;
        }
    }

    /// A schedule that never hits what it is meant to hit shows nothing.
    pub(crate) fn is_enough(&self, kills: u64) {
        let wanted = Status::ALL.map(Status::as_str).into_iter().chain(["messages", "letters", "timers"]);
        let missed: Vec<_> = wanted.filter(|what| self.0.get(what).is_none_or(|count| *count == 0)).collect();
        assert!(kills < KILLS_ENOUGH || missed.is_empty(), "no kill has left behind any of {missed:?}");
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self.0.iter().map(|(what, count)| format!("{count} {what}")).collect();
        f.write_str(&counts.join(", "))
    }
}
