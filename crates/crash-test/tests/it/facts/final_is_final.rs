//! After its end nothing happens to a run, but that another life of it begins.

use crate::world::World;
use steadfast_kernel::Event;

pub(super) fn holds(now: &World, before: &World) {
    for (run, history) in now.runs() {
        for (end, next) in history.journal.iter().zip(&history.journal[1..]).filter(|(entry, _)| entry.event.is_end()) {
            let retried = matches!(next.event, Event::RunRetried(_));
            assert!(retried, "{} has ended with event {}, and {} follows", run.id, end.seq, next.event.kind());
        }
        let known = before.run(run.id.as_str()).filter(|(known, _)| known.ended().is_some() && known.epoch == run.epoch);
        assert!(known.is_none_or(|(known, _)| known == run), "{} had ended and has changed", run.id);
    }
}
