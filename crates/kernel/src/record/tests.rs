//! Every event survives being stored; what is damaged is named.

mod plans;
mod snapshot;

use super::*;
use crate::random::Seed;
use crate::{
    Code, Direction, Failure, Held, KeyName, LimitKey, Limiting, MessageKind, Parent, Recovery, RouteName, RunId, RunOptions, Target,
    WorkflowName,
};
use plans::{every_event_of_plans, task_options};

fn step() -> StepId {
    StepId::new("left", "charge", 2).unwrap()
}

fn failure() -> Failure {
    let mut failure = Failure::permanent("no").code(Code::NotFound).cause("because").retry_after(Duration::from_millis(7));
    (failure.attempts, failure.max_attempts) = (3, Some(5));
    failure
}

fn origin() -> Origin {
    Origin { by: Some("ada".into()), why: Some("ordered twice".into()), command: Some("c-1".into()) }
}

fn run() -> RunId {
    RunId::new("parcel-7").unwrap()
}

fn workflow() -> WorkflowName {
    WorkflowName::new("checkout").unwrap()
}

fn options() -> RunOptions {
    let limit = |key, slots| Limiting { key, slots };
    RunOptions {
        tenant: Some("acme".into()),
        recovery: Recovery::Manual,
        limits: vec![limit(LimitKey::of_workflow(&workflow()), 4), limit(LimitKey::of_key("card/7").unwrap(), 1)],
        parent: Some(Parent { run: run(), child: step(), detached: true }),
        definition: Some("1f".repeat(32)),
        task: Some(Box::new(task_options())),
    }
}

/// Every event of a key, in every form.
fn every_event_of_keys() -> Vec<Event> {
    let (at, ttl, name) = (Timestamp::from_micros, Duration::from_micros(1_500_001), |name| KeyName::new(name).unwrap());
    let held = |owner: Option<&str>, directory, on_expire| {
        let (revision, value, owner) = (1 << 60, Payload::json("{\"a\":\u{0}}"), owner.map(ToString::to_string));
        Held { revision, value, ttl, expires_at: at(i64::MAX), owner, directory, on_expire, put_at: at(7) }
    };
    let url = Target::Url("http://127.0.0.1:9/gone?a=b".into());
    let start = Target::StartRun { workflow: workflow(), input: Payload::json("2") };
    let put = |held| Event::KeyPut(Box::new(held));
    let renewed = |restated| Event::KeyRenewed { revision: 1 << 60, ttl, expires_at: at(9), restated };
    let letter = Letter {
        about: LetterAbout::Expiry { key: name("session:7/a"), revision: 9 },
        attempt: 3,
        tenant: None,
        failure: failure(),
        payload: Payload::json("{}"),
    };
    vec![
        put(held(None, false, None)),
        put(held(Some("ada"), true, Some(url))),
        put(held(Some(""), false, Some(start.clone()))),
        put(held(None, true, Some(Target::Handler))),
        renewed(None),
        renewed(Some(Box::new(held(Some("ada"), false, Some(start))))),
        Event::KeyDeleted { revision: 3, with: None },
        Event::KeyDeleted { revision: 3, with: Some(name("session:7")) },
        Event::KeyExpired { revision: 3, ended_at: at(8), handled: false, with: None },
        Event::KeyExpired { revision: 3, ended_at: at(8), handled: true, with: Some(name("session:7")) },
        Event::CallbackFailed { revision: 3, attempt: 2, of: 5, delay: ttl, due_at: at(77), failure: failure() },
        Event::CallbackSettled { revision: 3, attempt: 2, run: None },
        Event::CallbackSettled { revision: 3, attempt: 2, run: Some(run()) },
        Event::LetterAdded(Box::new(letter)),
    ]
}

/// Every event of a route.
fn every_event_of_routes() -> Vec<Event> {
    let letter = |direction, kind, tenant| {
        let (route, peer, request) = (RouteName::new("mail/send.v2").unwrap(), "10.0.0.7:7373".into(), "r/1?a=b".into());
        let about = LetterAbout::Message { route, direction, kind, peer, request };
        Event::LetterAdded(Box::new(Letter { about, attempt: 3, tenant, failure: failure(), payload: Payload::bytes(&b"\xff\0"[..]) }))
    };
    vec![
        letter(Direction::Received, MessageKind::Call, None),
        letter(Direction::Sent, MessageKind::Tell, Some("acme".into())),
        letter(Direction::Received, MessageKind::Frame, None),
        Event::LetterFailed { letter: 1 << 40, attempt: u32::MAX, failure: failure() },
    ]
}

/// At least one event of every type, the first five in this order.
fn every_event() -> Vec<Event> {
    let at = Timestamp::from_micros;
    let started = |deadline_at, options| Event::RunStarted {
        workflow: workflow(),
        input: Payload::json("{\"a\":\u{0}}"),
        seed: Seed([9; 32]),
        deadline_at,
        options,
    };
    let retry = |details| Event::RetryScheduled {
        step: step(),
        attempt: 2,
        of: 5,
        delay: Duration::from_micros(2_346_500),
        due_at: at(77),
        failure: failure(),
        details,
    };
    let child = |deadline, options| Event::ChildStarted {
        child: step(),
        run: run(),
        workflow: workflow(),
        input: Payload::json("2"),
        deadline,
        options,
    };
    let retried = Retried {
        origin: origin(),
        from: vec![step(), StepId::sleep("", 3)],
        cut: 4,
        cuts: vec![(2, step()), (3, StepId::sleep("", 1))],
        reset: vec![step(), StepId::sleep("", 1)],
        supplied: vec![(step(), Payload::json("7")), (StepId::sleep("", 2), Payload::json(""))],
        input: Some(Payload::json("19")),
    };
    let empty = Retried { origin: Origin::default(), from: vec![], cut: 2, cuts: vec![], reset: vec![], supplied: vec![], input: None };
    let letter = |about, tenant| Letter { about, attempt: 3, tenant, failure: failure(), payload: Payload::json("{}") };
    let of_step = || LetterAbout::Step { run: run(), step: step() };
    vec![
        started(Some(at(99)), RunOptions::default()),
        Event::StepCompleted { step: step(), attempt: 2, output: Payload::json("1"), undoable: true },
        Event::StepCompleted { step: step(), attempt: 2, output: Payload::json("1"), undoable: false },
        Event::StepFailed { step: step(), attempt: 3, failure: failure() },
        retry(None),
        started(None, options()),
        retry(Some(Payload::json("7"))),
        Event::TimerSet { sleep: step(), due_at: at(5) },
        Event::TimerFired { sleep: step() },
        Event::StepStarted { step: step(), attempt: 3 },
        Event::StepHeartbeat { step: step(), attempt: 3, details: Payload::json("8") },
        Event::ProgressNoted { note: StepId::note("left", 1), text: "half of it".into() },
        Event::ProgressNoted { note: StepId::note("left", 2), text: String::new() },
        Event::SignalAwaited { wait: step(), name: "approve".into(), until: Some(at(9)), approval: None },
        Event::SignalAwaited { wait: step(), name: "approve".into(), until: None, approval: Some(vec!["operator".into(), "admin".into()]) },
        Event::SignalAwaited { wait: step(), name: "approve".into(), until: None, approval: Some(vec![]) },
        Event::StepSkipped { step: step() },
        Event::SignalAwaited { wait: step(), name: "approve".into(), until: None, approval: None },
        Event::SignalReceived {
            name: "approve".into(),
            id: Some("one".into()),
            payload: Payload::json("{}"),
            by: Some("ada".into()),
            why: Some("it is right".into()),
        },
        Event::SignalTaken { wait: step(), signal: 7 },
        child(None, options()),
        child(Some(Duration::from_millis(7)), RunOptions::default()),
        Event::ChildEnded { child: step(), outcome: Ok(Payload::json("3")) },
        Event::ChildEnded { child: step(), outcome: Err(failure()) },
        Event::ChildTaken { child: step() },
        Event::SlotAcquired { key: LimitKey::of_key("card/7").unwrap() },
        Event::RunPaused { origin: origin() },
        Event::RunPaused { origin: Origin::default() },
        Event::RunResumed { origin: origin() },
        Event::RunInterrupted,
        Event::RunRetried(Box::new(retried)),
        Event::RunRetried(Box::new(empty)),
        Event::RunContinued { input: Payload::json("20") },
        Event::RunCancelRequested { origin: origin(), terminate: true, undo: false },
        Event::RunCancelRequested { origin: Origin { by: Some("ada".into()), ..Origin::default() }, terminate: false, undo: true },
        Event::RunCompensating { failure: Some(failure()) },
        Event::RunCompensating { failure: None },
        Event::UndoCompleted { step: step(), attempt: 1 },
        Event::UndoFailed { step: step(), attempt: 4, failure: failure() },
        Event::RunCancelled,
        Event::RunCompleted { output: Payload::json("null") },
        Event::RunFailed { failure: failure() },
        Event::SlotRequested { run: run(), epoch: 3, slots: 4 },
        Event::SlotGranted { run: run() },
        Event::SlotReleased { run: run() },
        Event::LetterAdded(Box::new(letter(of_step(), Some("acme".into())))),
        Event::LetterAdded(Box::new(letter(of_step(), None))),
        Event::LetterRedriven { letter: 8, origin: origin() },
        Event::LetterRedriven { letter: 8, origin: Origin::default() },
        Event::LetterDropped { letter: 8, origin: origin() },
    ]
}

/// How many types of events there are.
const TYPES: usize = 70;

#[test]
fn every_event_survives_being_stored() {
    let heard = [None, Some(Heard { from: run().into(), seq: 3 }), Some(Heard { from: EntityId::Letters(workflow()), seq: 1 })];
    let mut kinds = std::collections::BTreeSet::new();
    for ((in_flight, heard), event) in [None, Some(0), Some(3)].into_iter().zip(heard).cycle().zip(
        every_event()
            .into_iter()
            .chain(every_event_of_keys())
            .chain(every_event_of_plans())
            .chain(every_event_of_routes()),
    ) {
        let entry = Entry {
            seq: 4,
            epoch: 2,
            at: Timestamp::from_micros(1_700_000),
            in_flight,
            held: in_flight.unwrap_or(2),
            abandoned: vec![TimerName::Sleep(step()), TimerName::Retry(step())],
            heard,
            event,
        };
        let record = Record::from(&entry);
        assert_eq!(record.kind, entry.event.kind());
        kinds.insert(record.kind.clone());
        assert_eq!(Entry::try_from(&record), Ok(entry));
    }
    assert_eq!(kinds.len(), TYPES, "a type is missing in the list");
}

#[test]
fn what_people_query_is_a_column() {
    let entry = Entry::new(1, 1, Timestamp::EPOCH, every_event().remove(4));
    let record = Record::from(&entry);
    assert_eq!((record.subject.as_deref(), record.attempt), (Some("left/charge#2"), Some(2)));
    assert_eq!((record.backoff_ms, record.reason.as_deref()), (Some(2347), Some("no")));
}

#[test]
fn damaged_records_are_named() {
    let entry = Entry::new(6, 1, Timestamp::EPOCH, every_event().remove(1));
    let good = Record::from(&entry);
    let why = |record: Record| Entry::try_from(&record).unwrap_err().to_string();
    assert_eq!(why(Record { attempt: None, ..good.clone() }), "event 6 (STEP_COMPLETED) cannot be read: attempt is missing or wrong");
    assert!(why(Record { kind: "STEP_VANISHED".into(), ..good.clone() }).contains("a known event type"));
    assert!(why(Record { body: Bytes::from_static(b"\xff"), ..good }).contains("event 6"));
}
