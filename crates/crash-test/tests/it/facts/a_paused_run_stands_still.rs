//! A run that was paused when its process died begins nothing before it is resumed, and none of its timers is armed.

use crate::world::World;
use steadfast_kernel::{Event, Status, Timestamp};

pub(super) fn holds(now: &World, before: &World) {
    for (run, known) in before.runs().filter(|(run, _)| run.status() == Status::Paused) {
        assert!(before.timers.iter().all(|timer| timer.entity.run() != Some(&run.id)), "{} is paused and has timers", run.id);
        let Some((_, history)) = now.run(run.id.as_str()) else { continue };
        let new = &history.journal[known.journal.len()..];
        let resumed = new.iter().find(|entry| matches!(entry.event, Event::RunResumed { .. }));
        let since = resumed.map_or(Timestamp::MAX, |entry| entry.at);
        let executed = now.log.iter().filter(|line| line.process == now.process && line.run == run.id.as_str());
        for line in executed {
            assert!(line.at >= since, "{line:?}, though {} is resumed at {since}", run.id);
        }
        let first = new.first().map(|entry| entry.event.kind());
        assert!(matches!(first, None | Some("RUN_RESUMED")), "{} was paused, and then {first:?}", run.id);
    }
}
