//! An id has one run, which somebody has started, and which begins once.

use crate::RUNS;
use crate::world::World;
use std::collections::BTreeSet;
use steadfast_crash_test::shapes;
use steadfast_kernel::{Event, Message};

pub(super) fn holds(now: &World, _before: &World) {
    let started = (0..RUNS).map(shapes::id);
    let said = now.entities.values().flat_map(|history| &history.said);
    let children = said
        .filter(|envelope| matches!(envelope.message, Message::StartChild(_)))
        .map(|envelope| envelope.to.to_string());
    let known: BTreeSet<String> = started.chain(children).collect();
    for (run, history) in now.runs() {
        assert!(known.contains(run.id.as_str()), "nobody has started {}", run.id);
        let starts = history.journal.iter().filter(|entry| matches!(entry.event, Event::RunStarted { .. }));
        assert_eq!(starts.map(|entry| entry.seq).collect::<Vec<_>>(), [1], "{} begins once", run.id);
    }
}
