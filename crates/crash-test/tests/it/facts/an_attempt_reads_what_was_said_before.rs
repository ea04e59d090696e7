//! An attempt reads the last word on record of how far the one before it had come, or it itself before its process died.

use crate::world::{History, World};
use steadfast_crash_test::log::Line;
use steadfast_kernel::{Event, Payload};

pub(super) fn holds(now: &World, _before: &World) {
    for line in now.log.iter().filter(|line| line.step == "copy#1") {
        let (_, history) = now.run(&line.run).unwrap_or_else(|| panic!("{} is not on record", line.run));
        let said = last_word(history, line).map(|said| serde_json::from_slice(&said.bytes).expect("a number"));
        assert_eq!(line.read, said, "{line:?} of {:?}", history.kinds());
    }
}

fn last_word<'a>(history: &'a History, line: &Line) -> Option<&'a Payload> {
    let before = history.journal.iter().filter(|entry| entry.at <= line.at);
    let words = before.filter_map(|entry| match &entry.event {
        Event::StepHeartbeat { details, .. } => Some(details),
        Event::RetryScheduled { details, .. } => details.as_ref(),
        _ => None,
    });
    words.last()
}
