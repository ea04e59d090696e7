//! What lists know of a run is made from its state.

use std::time::Duration;
use steadfast_kernel::random::Seed;
use steadfast_kernel::{Entry, Event, Failure, Payload, Run, RunId, RunOptions, StepId, Timestamp, WorkflowName, run};
use steadfast_store::{RunRow, TEXT_MAX};

/// A run of which a step failed with each of these, and is to be tried again.
fn in_backoff(messages: impl IntoIterator<Item = String>) -> Run {
    let (id, workflow) = (RunId::new("r").unwrap(), WorkflowName::new("bill").unwrap());
    let (input, seed, options) = (Payload::json(&b"1"[..]), Seed([1; 32]), RunOptions::default());
    let started = Event::RunStarted { workflow, input, seed, deadline_at: None, options };
    let steps = messages.into_iter().enumerate().flat_map(|(nth, message)| {
        let step = StepId::from_stored(&format!("s{nth:04}#1"));
        let (delay, due_at, failure) = (Duration::from_secs(9), Timestamp::EPOCH, Failure::transient(message));
        let retry = Event::RetryScheduled { step: step.clone(), attempt: 2, of: 9, delay, due_at, failure, details: None };
        [Event::StepStarted { step, attempt: 1 }, retry]
    });
    let mut state = None;
    for (seq, event) in (1..).zip(std::iter::once(started).chain(steps)) {
        let entry = Entry { in_flight: Some(0), ..Entry::new(seq, 1, Timestamp::EPOCH, event) };
        state = Some(run::evolve(&id, state, &entry).unwrap());
    }
    state.unwrap()
}

/// The text of a run that has noted something.
fn text(run: &Run, note: Option<&str>) -> String {
    RunRow::of(0, &Run { note: note.map(Into::into), ..run.clone() }).text.unwrap()
}

/// The row is written anew at each change of the run.
#[test]
fn the_text_of_a_row_stays_short_however_many_steps_fail() {
    let run = in_backoff((0..1000).map(|nth| format!("{nth} {}", "ü".repeat(1000))));
    for note in [None, Some("half"), Some(&*"ß".repeat(3000))] {
        let text = text(&run, note);
        assert!(text.starts_with("0 ü") && (TEXT_MAX - 8..=TEXT_MAX).contains(&text.len()), "{} bytes", text.len());
    }
    assert!(text(&run, Some("half")).ends_with("ü…\nhalf"), "what it said is there, too");
}

#[test]
fn what_many_steps_say_is_there_once() {
    let run = in_backoff(["away", "busy", "away", "half"].map(Into::into));
    assert_eq!(text(&run, None), "away\nbusy\nhalf");
    assert_eq!(text(&run, Some("two of four")), "away\nbusy\nhalf\ntwo of four");
    assert_eq!(text(&run, Some("half")), "away\nbusy\nhalf");
}

#[test]
fn a_long_failure_is_whole() {
    let message = "x".repeat(4096);
    assert_eq!(text(&in_backoff([message.clone()]), None), message);
}
