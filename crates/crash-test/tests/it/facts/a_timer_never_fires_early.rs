//! No sleep is over, no attempt begins again and no deadline ends a run before its time. A pause moves the time on; that is in the state before the event.
//!
//! Subject: `crates/runtime/src/timers/mod.rs`.

use crate::world::{History, World};
use std::collections::BTreeMap;
use steadfast_kernel::{Code, Event, Run, StepId, Timestamp};

pub(super) fn holds(now: &World, _before: &World) {
    let mut due: BTreeMap<(&str, &str, u32), Timestamp> = BTreeMap::new();
    for (run, history) in now.runs() {
        on_record(history);
        for entry in &history.journal {
            if let Event::RetryScheduled { step, attempt, due_at, .. } = &entry.event {
                let first = due.entry((run.id.as_str(), step.as_str(), *attempt)).or_insert(*due_at); // in another life it may be due again
                *first = (*first).min(*due_at);
            }
        }
    }
    for line in &now.log {
        let due = due.get(&(line.run.as_str(), line.step.as_str(), line.attempt));
        assert!(due.is_none_or(|due| *due <= line.at), "{line:?} begins early: it is due at {due:?}");
    }
}

fn on_record(history: &History) {
    for (run, entry) in history.run_moments() {
        let due = match &entry.event {
            Event::TimerFired { sleep } => due_of(run, sleep),
            Event::RunFailed { failure } if failure.code == Code::DeadlineExceeded => run.deadline.map(|deadline| deadline.at),
            _ => continue,
        };
        assert!(due.is_some_and(|due| due <= entry.at), "event {} of {} is early: it is due at {due:?}", entry.seq, run.id);
    }
}

fn due_of(run: &Run, sleep: &StepId) -> Option<Timestamp> {
    let open = run.open()?;
    let sleeps = open.sleeps.get(sleep).map(|sleep| sleep.due_at);
    sleeps.or_else(|| open.awaits.get(sleep)?.until)
}
