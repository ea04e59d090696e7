//! What was refused is nowhere: no command of it, no run, and no other input than the first.

use crate::RUNS;
use crate::world::World;
use steadfast_crash_test::shapes;
use steadfast_kernel::{EntityId, Event, Origin};

pub(super) fn holds(now: &World, _before: &World) {
    for (id, history) in &now.entities {
        assert!(!id.to_string().starts_with("refused") && *id != nobody(), "{id} was refused");
        for entry in &history.journal {
            let refused = origin(&entry.event).is_some_and(|origin| [&origin.command, &origin.why].contains(&&Some("refused".into())));
            assert!(!refused, "event {} of {id} was refused", entry.seq);
        }
    }
    for n in 0..RUNS {
        let given = now.run(&shapes::id(n)).map(|(run, _)| run.given.bytes.clone());
        assert!(given.is_none_or(|given| *given == *n.to_string().as_bytes()), "{} was started with something else", shapes::id(n));
    }
}

fn nobody() -> EntityId {
    EntityId::from_stored("letters:nobody").expect("an id")
}

/// Who wanted that, and why.
pub(super) fn origin(event: &Event) -> Option<&Origin> {
    match event {
        Event::RunPaused { origin }
        | Event::RunResumed { origin }
        | Event::RunCancelRequested { origin, .. }
        | Event::LetterDropped { origin, .. } => Some(origin),
        Event::RunRetried(retried) => Some(&retried.origin),
        _ => None,
    }
}
