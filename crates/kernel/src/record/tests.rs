//! Every event survives being stored; what is damaged is named.

use super::*;

fn step() -> StepId {
    StepId::new("left", "charge", 2).unwrap()
}

fn failure() -> Failure {
    let mut failure = Failure::permanent("no").code(Code::NotFound).cause("because").retry_after(Duration::from_millis(7));
    (failure.attempts, failure.max_attempts) = (3, Some(5));
    failure
}

fn every_event() -> Vec<Event> {
    let at = Timestamp::from_micros;
    vec![
        Event::RunStarted {
            workflow: WorkflowName::new("checkout").unwrap(),
            input: Payload::json("{\"a\":\u{0}}"),
            seed: Seed([9; 32]),
            deadline_at: Some(at(99)),
        },
        Event::StepCompleted { step: step(), attempt: 2, output: Payload::json("1"), undoable: true },
        Event::StepCompleted { step: step(), attempt: 2, output: Payload::json("1"), undoable: false },
        Event::StepFailed { step: step(), attempt: 3, failure: failure() },
        Event::RetryScheduled {
            step: step(),
            attempt: 2,
            of: 5,
            delay: Duration::from_micros(2_346_500),
            due_at: at(77),
            failure: failure(),
        },
        Event::TimerSet { sleep: step(), due_at: at(5) },
        Event::TimerFired { sleep: step() },
        Event::StepStarted { step: step(), attempt: 3 },
        Event::SignalAwaited { wait: step(), name: "approve".into(), until: Some(at(9)) },
        Event::SignalAwaited { wait: step(), name: "approve".into(), until: None },
        Event::SignalReceived { name: "approve".into(), id: Some("one".into()), payload: Payload::json("{}") },
        Event::SignalTaken { wait: step(), signal: 7 },
        Event::RunCancelRequested { by: Some("ada".into()), why: None },
        Event::RunCompensating { failure: Some(failure()) },
        Event::RunCompensating { failure: None },
        Event::UndoCompleted { step: step(), attempt: 1 },
        Event::UndoFailed { step: step(), attempt: 4, failure: failure() },
        Event::RunCancelled,
        Event::RunCompleted { output: Payload::json("null") },
        Event::RunFailed { failure: failure() },
    ]
}

#[test]
fn every_event_survives_being_stored() {
    for (in_flight, event) in [None, Some(0), Some(3)].into_iter().cycle().zip(every_event()) {
        let entry = Entry {
            seq: 4,
            epoch: 1,
            at: Timestamp::from_micros(1_700_000),
            in_flight,
            abandoned: vec![TimerName::Sleep(step()), TimerName::Retry(step())],
            event,
        };
        let record = Record::from(&entry);
        assert_eq!(record.kind, entry.event.kind());
        assert_eq!(Entry::try_from(&record), Ok(entry));
    }
}

#[test]
fn what_people_query_is_a_column() {
    let entry = Entry { seq: 1, epoch: 1, at: Timestamp::EPOCH, in_flight: None, abandoned: Vec::new(), event: every_event().remove(4) };
    let record = Record::from(&entry);
    assert_eq!((record.subject.as_deref(), record.attempt), (Some("left/charge#2"), Some(2)));
    assert_eq!((record.backoff_ms, record.reason.as_deref()), (Some(2347), Some("no")));
}

#[test]
fn damaged_records_are_named() {
    let entry = Entry { seq: 6, epoch: 1, at: Timestamp::EPOCH, in_flight: None, abandoned: Vec::new(), event: every_event().remove(1) };
    let good = Record::from(&entry);
    let why = |record: Record| Entry::try_from(&record).unwrap_err().to_string();
    assert_eq!(why(Record { attempt: None, ..good.clone() }), "event 6 (STEP_COMPLETED) cannot be read: attempt is missing or wrong");
    assert!(why(Record { kind: "STEP_VANISHED".into(), ..good.clone() }).contains("a known event type"));
    assert!(why(Record { body: Bytes::from_static(b"\xff"), ..good }).contains("event 6"));
}
