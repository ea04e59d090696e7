//! A run that waits says for what; in the end, left alone, every run has ended as it must.

use crate::RUNS;
use crate::world::{History, World};
use steadfast_crash_test::shapes::{self, Asks, Expected};
use steadfast_kernel::{Event, Run, Status};

pub(super) fn holds(now: &World, _before: &World) {
    for (run, history) in now.runs() {
        let named = !run.waits().is_empty();
        let needs_a_name = matches!(run.status(), Status::Waiting | Status::Ready | Status::Paused);
        assert!(named || !needs_a_name, "{} is {:?} and waits for nothing: {:?}", run.id, run.status(), history.kinds());
    }
}

pub(super) fn holds_at_the_end(world: &World) {
    assert_eq!(world.under_way(), [] as [&str; 0], "every run has ended");
    for n in 0..RUNS {
        let (shape, id) = (shapes::of(n), shapes::id(n));
        ends(world, &id, &(shape.expected)(n));
        for (suffix, expected) in shape.children {
            ends(world, &format!("{id}{suffix}"), &expected(n));
        }
        let (run, history) = world.run(&id).expect("it has ended");
        let count = |kind: &str| history.journal.iter().filter(|entry| entry.event.kind() == kind).count();
        match shape.asks {
            Asks::Retry(_) => assert_eq!(run.epoch, 2, "{id} has two lives"),
            Asks::Redrive => assert_eq!(run.epoch, 2, "{id} is redriven once"),
            Asks::Terminate => assert_eq!(count("UNDO_COMPLETED"), 0, "of {id} nothing is undone"),
            Asks::Cancel => assert_eq!(count("UNDO_COMPLETED"), undoable(history), "of {id} everything is undone"),
            Asks::RetryInterrupted => assert_eq!(run.epoch as usize, 1 + count("RUN_INTERRUPTED"), "a retry of {id} for each interruption"),
            Asks::Nothing | Asks::Signal | Asks::Pause | Asks::Drop => {}
        }
        match shape.name {
            "rounds" => assert_eq!(run.epoch, 5, "{id} has five lives"),
            "noted" => assert_eq!(run.note.as_deref(), Some("3 of 3"), "{id}"),
            _ => {}
        }
    }
}

fn undoable(history: &History) -> usize {
    history
        .journal
        .iter()
        .filter(|entry| matches!(entry.event, Event::StepCompleted { undoable: true, .. }))
        .count()
}

fn ends(world: &World, id: &str, expected: &Expected) {
    let (run, history) = world.run(id).unwrap_or_else(|| panic!("{id} was never started"));
    assert_eq!(end(run), *expected, "{id}: {:?}", history.kinds());
}

fn end(run: &Run) -> Expected {
    match &run.ended().expect("it has ended").outcome {
        Ok(output) => Ok(String::from_utf8_lossy(&output.bytes).into_owned()),
        Err(failure) => Err(failure.code.as_str()),
    }
}
