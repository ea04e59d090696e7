//! What runs of the engine come to only by chance, or not at all in a short story: failures of every code, and fields that are rarely there. Once the file is written
//! this only says what is in it; what has to be added later gets a function
//! and a file of its own.

mod commons;
mod keys;
mod plans;
mod routes;

use super::text::Journal;
use crate::support::{Leaving, at, entry, run_completed, run_started, step_completed};
use std::time::Duration;
use steadfast_kernel::{Code, EntityId, Entry, Event, Failure, Payload, Record, RunOptions, StepId};

/// What makes the journals of a file.
type Make = fn() -> Vec<Journal>;

/// The files, all of which begin with `by-hand`.
pub(super) const FILES: [(&str, Make); 7] = [
    ("by-hand", || vec![journal("every-code", every_code())]),
    ("by-hand-defined", || vec![journal("defined", defined())]),
    ("by-hand-keys", keys::journals),
    ("by-hand-plans", plans::journals),
    ("by-hand-leases", plans::of_leases),
    ("by-hand-commons", commons::journals),
    ("by-hand-routes", routes::journals),
];

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

/// A run of a definition: a step is skipped, one approval was given and another one is waited for.
fn defined() -> Vec<Entry> {
    let Event::RunStarted { workflow, input, seed, deadline_at, options } = run_started() else { panic!("it does not begin") };
    let options = RunOptions { definition: Some("5f".repeat(32)), ..options };
    let step = |name: &str| StepId::new("", name, 1).unwrap();
    let wait = |branch: &str| StepId::signal(branch, "ok", 1).unwrap();
    let awaited = |branch, roles: &[&str], until| {
        let approval = Some(roles.iter().map(ToString::to_string).collect());
        Event::SignalAwaited { wait: wait(branch), name: "ok".into(), until, approval }
    };
    let (by, why) = (Some("ada".into()), Some("looks good".into()));
    let given = Event::SignalReceived { name: "ok".into(), id: None, payload: Payload::json("{\"approved\":true}"), by, why };
    vec![
        entry(1, 0, Event::RunStarted { workflow, input, seed, deadline_at, options }),
        entry(2, 1, Event::StepSkipped { step: step("notify") }),
        entry(3, 1, awaited("", &["operator", "admin"], Some(at(7_200_000)))).leaving(0),
        entry(4, 50, given),
        entry(5, 51, Event::SignalTaken { wait: wait(""), signal: 4 }),
        entry(6, 51, awaited("again#1", &[], None)).leaving(0),
    ]
}
