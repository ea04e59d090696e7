//! A run with manual recovery that had an attempt in flight or in backoff when its process died is interrupted by the next one, and nothing of it is
//! executed before somebody retries it. Others are never interrupted.
//!
//! Subject: `crates/kernel/src/run/interrupt.rs`.

use crate::world::World;
use steadfast_kernel::run::Recover;
use steadfast_kernel::{Event, Recovery, Status, Timestamp};

pub(super) fn holds(now: &World, before: &World) {
    for (run, history) in now.runs().filter(|(run, _)| run.options.recovery == Recovery::Automatic) {
        let interrupted = history.journal.iter().any(|entry| entry.event == Event::RunInterrupted);
        assert!(!interrupted, "{} goes on by itself", run.id);
    }
    for (run, known) in before.runs().filter(|(run, _)| run.options.recovery == Recovery::Manual && run.ended().is_none()) {
        let Some((_, history)) = now.run(run.id.as_str()) else { continue };
        let new = &history.journal[known.journal.len()..];
        let interrupts = run.recover() == Some(Recover::Interrupt);
        let first = new.first().map(|entry| entry.event.kind());
        assert!(!interrupts || matches!(first, None | Some("RUN_INTERRUPTED")), "{} was under way, and then {first:?}", run.id);
        assert!(interrupts || first != Some("RUN_INTERRUPTED"), "{} only waited, and is interrupted", run.id);
        if interrupts || run.status() == Status::Interrupted {
            let retried = new.iter().find(|entry| matches!(entry.event, Event::RunRetried(_)));
            let since = retried.map_or(Timestamp::MAX, |entry| entry.at);
            let mut executed = now.log.iter().filter(|line| line.process == now.process && line.run == run.id.as_str());
            assert!(executed.all(|line| line.at >= since), "{} is executed before it is retried at {since}", run.id);
        }
    }
}
