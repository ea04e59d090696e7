//! What runs of the engine come to only by chance, or not at all in a short story: failures of every code, and fields that are rarely there. Once the file is written
//! this only says what is in it; what has to be added later gets a function
//! and a file of its own.

use super::text::Journal;
use crate::support::{Leaving, at, entry, run_completed, run_started, step_completed};
use std::time::Duration;
use steadfast_kernel::{Code, EntityId, Entry, Event, Failure, Payload, Record, StepId};

/// What makes the journals of a file.
type Make = fn() -> Vec<Journal>;

/// The files, all of which begin with `by-hand`.
pub(super) const FILES: [(&str, Make); 1] = [("by-hand", || vec![journal("every-code", every_code())])];

fn journal(run: &str, entries: Vec<Entry>) -> Journal {
    (EntityId::from_stored(run).unwrap(), entries.iter().map(Record::from).collect())
}

/// A step fails with each of the codes, is given up in the end, and the code ends well all the same.
fn every_code() -> Vec<Entry> {
    let mut entries = vec![entry(1, 0, run_started())];
    for (&code, i) in Code::ALL.iter().zip(0_i64..) {
        let (seq, ms) = (entries.len() as u64 + 1, 10 * (i + 1));
        let step = StepId::new("", &format!("try-{}", code.as_str().to_lowercase()), 1).unwrap();
        let failure = failure(code);
        let (delay, due_at, of) = (Duration::from_micros(1_500_001), at(ms + 1501), 7);
        let details = (i % 2 == 0).then(|| Payload::json("\"ünïcödé\""));
        let retry = Event::RetryScheduled { step: step.clone(), attempt: 2, of, delay, due_at, failure: failure.clone(), details };
        entries.push(entry(seq, ms, retry).leaving(3));
        entries.push(entry(seq + 1, ms + 5, Event::StepFailed { step, attempt: 2, failure }));
    }
    let seq = entries.len() as u64;
    entries.push(entry(seq + 1, 900, step_completed("go-on#1", 1, "{}")));
    entries.push(entry(seq + 2, 900, run_completed("null")).leaving(0));
    entries
}

fn failure(code: Code) -> Failure {
    let mut failure = Failure::new(code, format!("it is {code}")).cause("first cause").cause("second cause");
    failure = failure.retry_after(Duration::from_millis(1));
    (failure.attempts, failure.max_attempts) = (2, Some(7));
    failure
}
