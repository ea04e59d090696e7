//! What was acknowledged to a process is on record after it was killed.

use super::a_refusal_leaves_no_trace::origin;
use crate::world::{History, World};
use steadfast_kernel::{Event, RunId};

pub(super) fn holds(now: &World, _before: &World) {
    for line in &now.acknowledged {
        let words: Vec<&str> = line.split(' ').collect();
        let (_, history) = now.run(words[1]).unwrap_or_else(|| panic!("{line:?} was acknowledged, and there is no such run"));
        let there = match words[..] {
            ["started", _] => true,
            ["signalled", _] => any(history, |event| matches!(event, Event::SignalReceived { .. })),
            ["did", _, command] => any(history, |event| origin(event).is_some_and(|origin| origin.command.as_deref() == Some(command))),
            ["redriven", _] => any(history, |event| matches!(event, Event::RunRetried(_))),
            ["dropped", run] => is_dropped(now, run),
            ["ended", _] => history.journal.last().is_some_and(|entry| entry.event.is_end()),
            _ => panic!("{line:?} is no acknowledgement"),
        };
        assert!(there, "{line:?} was acknowledged and is gone: {:?}", history.kinds());
    }
}

fn any(history: &History, is_it: impl Fn(&Event) -> bool) -> bool {
    history.journal.iter().any(|entry| is_it(&entry.event))
}

/// A letter of that run has come and was dropped.
fn is_dropped(now: &World, run: &str) -> bool {
    let run = RunId::new(run).unwrap();
    now.entities.values().any(|letters| {
        let added = letters
            .journal
            .iter()
            .filter(|entry| matches!(&entry.event, Event::LetterAdded(letter) if letter.about.run() == Some(&run)));
        let added: Vec<u64> = added.map(|entry| entry.seq).collect();
        any(letters, |event| matches!(event, Event::LetterDropped { letter, .. } if added.contains(letter)))
    })
}
