//! A step that is poison leaves one dead letter, with the bytes of its run; it is there until its run is retried from it, or somebody drops it.

use crate::world::World;
use std::collections::BTreeMap;
use steadfast_kernel::{Class, Event, Letter, Message, RunId};

pub(super) fn holds(now: &World, _before: &World) {
    let added = letters(now);
    for (run, history) in now.runs() {
        let poison = history.journal.iter().filter(|entry| match &entry.event {
            Event::StepFailed { failure, .. } => failure.class == Class::Poison,
            _ => false,
        });
        let posted = now
            .outbox
            .iter()
            .filter(|envelope| matches!(&envelope.message, Message::PostLetter(letter) if letter.about.run() == Some(&run.id)));
        let on_the_way = posted.filter(|envelope| !was_added(now, &envelope.from, envelope.seq)).count();
        let there = added.get(&run.id).map_or(0, Vec::len);
        assert_eq!(poison.count(), there + on_the_way, "{} has {there} letters: {:?}", run.id, history.kinds());
        let same_bytes = added.get(&run.id).into_iter().flatten().all(|letter| letter.payload == run.given);
        assert!(same_bytes, "the letters of {} have other bytes", run.id);
    }
}

/// Every letter that ever came, by its run.
fn letters(now: &World) -> BTreeMap<RunId, Vec<&Letter>> {
    let mut letters: BTreeMap<RunId, Vec<&Letter>> = BTreeMap::new();
    for entry in now.entities.values().flat_map(|history| &history.journal) {
        if let Event::LetterAdded(letter) = &entry.event {
            let run = letter.about.run().expect("only steps leave letters here");
            letters.entry(run.clone()).or_default().push(letter);
        }
    }
    letters
}

/// It has come, and only that it is settled is not on record yet.
fn was_added(now: &World, from: &steadfast_kernel::EntityId, seq: u64) -> bool {
    let added = now
        .entities
        .values()
        .flat_map(|history| &history.journal)
        .filter(|entry| matches!(entry.event, Event::LetterAdded(_)));
    added.filter_map(|entry| entry.heard.as_ref()).any(|heard| heard.from == *from && heard.seq == seq)
}

pub(super) fn holds_at_the_end(world: &World) {
    assert_eq!(world.letters, [], "every letter was seen to");
    let count = |kind: &str| {
        world
            .entities
            .values()
            .flat_map(|history| &history.journal)
            .filter(|entry| entry.event.kind() == kind)
            .count()
    };
    let (added, redriven, dropped) = (count("LETTER_ADDED"), count("LETTER_REDRIVEN"), count("LETTER_DROPPED"));
    assert_eq!(added, redriven + dropped, "each was redriven or dropped");
    assert!(redriven > 0 && dropped > 0, "there were letters");
}
