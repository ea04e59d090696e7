//! A timer is set once in a life, and fires or is cancelled once. When a run has ended nothing of it can fire.

use crate::world::World;
use std::collections::BTreeSet;
use steadfast_kernel::{Entry, Event, RunId, TimerName};

pub(super) fn holds(now: &World, _before: &World) {
    for (run, history) in now.runs() {
        history.lives().iter().for_each(|life| in_one_life(&run.id, life));
        let armed = now.timers.iter().filter(|timer| timer.entity.run() == Some(&run.id)).count();
        assert!(run.ended().is_none() || armed == 0, "{} has ended and has timers", run.id);
    }
}

fn in_one_life(run: &RunId, life: &[Entry]) {
    let (mut set, mut over) = (BTreeSet::new(), BTreeSet::new());
    for entry in life {
        match &entry.event {
            Event::TimerSet { sleep, .. } => assert!(set.insert(sleep), "{sleep} of {run} is set twice"),
            Event::TimerFired { sleep } => assert!(over.insert(sleep), "{sleep} of {run} fires, and was over"),
            _ => {}
        }
        let cancelled = entry
            .abandoned
            .iter()
            .filter_map(|name| if let TimerName::Sleep(sleep) = name { Some(sleep) } else { None });
        over.extend(cancelled);
    }
}

pub(super) fn holds_at_the_end(world: &World) {
    assert_eq!(world.timers, [], "every run has ended");
}
