//! Compares the bytes that instances exchange about shards with their snapshot.

mod commands;
mod refusals;

use super::*;
use commands::commands;
use refusals::refusals;
use std::time::Duration;
use steadfast_kernel::random::Seed;
use steadfast_kernel::{
    Code, Failure, KeyName, LimitKey, Limiting, OnFailure, Origin, Parent, Payload, PlanId, RunOptions, TaskOptions, TenantId,
};
use steadfast_test_snapshots::bytes::{Page, Schema};
use steadfast_test_snapshots::{assert_snapshot, labels};

labels!(Requests of Asked {
    Asked::Start { .. } => "start a run",
    Asked::Tell { .. } => "execute a command",
    Asked::Await { .. } => "wait for the end of a run",
    Asked::Beside { .. } => "read what is beside a journal",
    Asked::Hear { .. } => "deliver a message",
    Asked::Sweep { .. } => "remove ended entities",
    Asked::Offer { .. } => "read the terms of a workflow",
});

labels!(Responses of Told {
    Told::Answer(_) => "outcome of a command",
    Told::Ended(_) => "end of a run",
    Told::Beside(_) => "what is beside a journal",
    Told::Heard => "message delivered",
    Told::Swept(_) => "entities removed",
    Told::Offer(Some(_)) => "terms of a workflow",
    Told::Offer(None) => "unknown workflow",
});

labels!(Failures of Failed {
    Failed::NotHere => "shard elsewhere",
    Failed::Refused(_) => "refused",
    Failed::Busy => "busy",
    Failed::Unavailable => "unavailable",
    Failed::Broken { .. } => "broken journal",
    Failed::Unknown => "unknown request",
});

labels!(Outcomes of Answer {
    Answer::Created => "run created",
    Answer::Exists => "run exists",
    Answer::TurnTaken => "turn recorded",
    Answer::RetryScheduled => "retry scheduled",
    Answer::SignalReceived => "signal recorded",
    Answer::SignalKnown => "signal known",
    Answer::CancelRequested => "cancellation recorded",
    Answer::Superseded => "timer replaced",
    Answer::Terminated => "run terminated",
    Answer::Paused => "paused",
    Answer::Resumed => "resumed",
    Answer::Retried => "run retried",
    Answer::Interrupted => "interrupted",
    Answer::HeartbeatRecorded => "heartbeat recorded",
    Answer::Heard => "message recorded",
    Answer::Dropped => "letter dropped",
    Answer::Redriven => "letter redriven",
    Answer::Kept { .. } => "letter kept",
    Answer::Operated => "plan operated",
    Answer::RollingBack => "rollback recorded",
    Answer::HandedOver => "task handed over",
    Answer::Broken => "lock broken",
    Answer::Put { .. } => "key put",
    Answer::Renewed { .. } => "key renewed",
    Answer::Deleted { .. } => "key deleted",
    Answer::Expired => "key expired",
    Answer::NotFound => "no such key",
    Answer::Mismatch => "key changed",
    Answer::Reported => "callback recorded",
});

labels!(Waits of Wait {
    Wait::Backoff { .. } => "BACKOFF",
    Wait::Timer { .. } => "TIMER",
    Wait::Signal { .. } => "SIGNAL",
    Wait::Approval { .. } => "APPROVAL",
    Wait::InDoubt { .. } => "IN_DOUBT",
    Wait::Paused { .. } => "PAUSED",
    Wait::Slot { .. } => "SLOT",
    Wait::Lock { .. } => "LOCK",
    Wait::Plan { .. } => "PLAN",
    Wait::Child { .. } => "CHILD",
    Wait::NoWorker { .. } => "NO_WORKER",
    Wait::Mismatch { .. } => "MISMATCH",
});

const LARGE: u64 = 1 << 60;

fn at() -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_001)
}

fn run() -> RunId {
    RunId::new("order-17").unwrap()
}

fn step() -> StepId {
    StepId::new("left", "charge", 2).unwrap()
}

fn workflow() -> WorkflowName {
    WorkflowName::new("team/checkout").unwrap()
}

fn key() -> KeyName {
    KeyName::new("session:7/a").unwrap()
}

fn plan() -> PlanId {
    PlanId::new("switch-17").unwrap()
}

fn tenant() -> TenantId {
    TenantId::new("acme/eu").unwrap()
}

fn origin() -> Origin {
    Origin { by: Some("ada".into()), why: Some("ordered twice".into()), command: Some("c-1".into()) }
}

fn failure() -> Failure {
    let mut failure = Failure::permanent("no").code(Code::NotFound).cause("because").retry_after(Duration::from_millis(7));
    (failure.attempts, failure.max_attempts) = (3, Some(5));
    failure
}

fn options() -> RunOptions {
    let task = TaskOptions {
        plan: plan(),
        tenant: tenant(),
        stages: vec!["drain".into(), "switch".into()],
        lease: Duration::from_micros(9_000_000_001),
        on_failure: OnFailure::Release,
        conflict: steadfast_kernel::Conflict::Skip,
    };
    RunOptions {
        tenant: Some("acme".into()),
        recovery: Recovery::Manual,
        limits: vec![Limiting { key: LimitKey::of_key("card/7").unwrap(), slots: 3 }],
        parent: Some(Parent { run: run(), child: step(), detached: true }),
        definition: Some("1f".repeat(32)),
        task: Some(Box::new(task)),
    }
}

fn start_run() -> StartRun {
    StartRun {
        run: run(),
        workflow: workflow(),
        input: Payload::json("{\"a\":1}"),
        seed: Seed([9; 32]),
        deadline: Some(Duration::from_micros(1_500_001)),
        options: options(),
    }
}

fn requests() -> Vec<Asked> {
    let message = Message::RequestSlot { epoch: 2, slots: 5 };
    let envelope = Envelope { from: run().into(), seq: LARGE, to: EntityId::Plan(plan()), message };
    vec![
        Asked::Start { command: Box::new(start_run()), fresh: true },
        Asked::Await { run: run() },
        Asked::Beside { run: run() },
        Asked::Hear { envelope: Box::new(envelope), shard: 7, term: LARGE },
        Asked::Sweep { shard: 7, ended: vec![Sweep { entity: EntityId::Plan(plan()), ended_at: at() }] },
        Asked::Offer { workflow: workflow() },
    ]
}

fn write_request(label: &str, asked: Asked, schema: &mut Schema, page: &mut Page) {
    page.cover(Requests::of(&asked));
    page.form(label);
    page.protobuf(&asked.encode("instance-1").unwrap(), schema);
}

fn write_requests(page: &mut Page) {
    let mut schema = Schema::of(|bytes| Frame::decode(bytes).is_ok());
    for asked in requests() {
        write_request(Requests::of(&asked), asked, &mut schema, page);
    }
    for command in commands() {
        let label = commands::cover(&command, page);
        let asked = Asked::Tell { entity: EntityId::Key(key()), command: Box::new(command) };
        write_request(label, asked, &mut schema, page);
    }
    schema.assert_shown();
    page.assert_covers(Requests::ALL);
}

#[test]
fn shard_requests_match_snapshot() {
    let mut page = Page::default();
    write_requests(&mut page);
    commands::assert_covered(&mut page);
    assert_snapshot("bytes/shard-requests.txt", page.text());
}

fn outcomes() -> Vec<Answer> {
    vec![
        Answer::Created,
        Answer::Exists,
        Answer::TurnTaken,
        Answer::RetryScheduled,
        Answer::SignalReceived,
        Answer::SignalKnown,
        Answer::CancelRequested,
        Answer::Superseded,
        Answer::Terminated,
        Answer::Paused,
        Answer::Resumed,
        Answer::Retried,
        Answer::Interrupted,
        Answer::HeartbeatRecorded,
        Answer::Heard,
        Answer::Dropped,
        Answer::Redriven,
        Answer::Kept { letter: LARGE },
        Answer::Operated,
        Answer::RollingBack,
        Answer::HandedOver,
        Answer::Broken,
        Answer::Put { revision: LARGE, expires_at: at() },
        Answer::Renewed { revision: LARGE, expires_at: at() },
        Answer::Deleted { revision: LARGE },
        Answer::Expired,
        Answer::NotFound,
        Answer::Mismatch,
        Answer::Reported,
    ]
}

fn waits() -> Vec<Wait> {
    let (name, until) = (|| "ok".to_string(), Some(at()));
    vec![
        Wait::Backoff { step: step(), attempt: 2, of: 5, due_at: at(), failure: failure() },
        Wait::Timer { due_at: at() },
        Wait::Signal { name: name(), until },
        Wait::Approval { name: name(), roles: vec!["admin".into()], until },
        Wait::InDoubt { step: step(), attempt: 2 },
        Wait::Paused { by: Some("ada".into()), why: Some("no time".into()), since: at() },
        Wait::Slot { key: LimitKey::of_workflow(&workflow()), position: Some(3) },
        Wait::Lock { tenant: tenant(), holder: Some("switch-16:switch-16/acme".into()) },
        Wait::Plan { plan: plan() },
        Wait::Child { run: run() },
        Wait::NoWorker { workflow: workflow(), version: Some("1f".repeat(32)) },
        Wait::Mismatch { at: LARGE, expected: "STEP_STARTED".into(), found: "a sleep".into() },
    ]
}

fn beside(blocked: Option<Wait>) -> Told {
    Told::Beside(Beside { blocked, begun: [step()].into(), in_flight: vec![(step(), 3)] })
}

fn responses() -> Vec<Told> {
    let ended = |outcome, cancelled| Told::Ended(Box::new(Ended { at: at(), outcome, cancelled }));
    vec![
        ended(Ok(Payload::json("{\"a\":1}")), false),
        ended(Err(failure()), true),
        beside(None),
        Told::Heard,
        Told::Swept(17),
        Told::Offer(Some(Brought { recovery: Recovery::Manual, slots: Some(3) })),
        Told::Offer(None),
    ]
}

fn failures() -> Vec<Failed> {
    let broken = Failed::Broken { entity: run().into(), why: "an event is missing".into() };
    vec![Failed::NotHere, Failed::Busy, Failed::Unavailable, broken, Failed::Unknown]
}

fn write_response(label: &str, told: &Result<Told, Failed>, page: &mut Page) {
    page.form(label);
    page.json(&write(told));
}

fn write_successes(page: &mut Page) {
    for answer in outcomes() {
        page.cover(Outcomes::of(&answer));
        write_response(Outcomes::of(&answer), &Ok(Told::Answer(answer)), page);
    }
    page.cover(Responses::of(&Told::Answer(Answer::Created)));
    for told in responses() {
        page.cover(Responses::of(&told));
        write_response(Responses::of(&told), &Ok(told), page);
    }
    for wait in waits() {
        page.cover(Waits::of(&wait));
        let reason = wait.reason();
        write_response(Waits::of(&wait), &Ok(beside(Some(wait))), page);
        page.value("reason", reason);
    }
}

fn write_failures(page: &mut Page) {
    for failed in failures() {
        page.cover(Failures::of(&failed));
        write_response(Failures::of(&failed), &Err(failed), page);
    }
    for refusal in refusals() {
        let label = refusals::cover(&refusal, page);
        let code = refusal.code();
        let failed = Failed::Refused(refusal);
        page.cover(Failures::of(&failed));
        write_response(label, &Err(failed), page);
        page.value("code", code);
    }
}

#[test]
fn shard_responses_match_snapshot() {
    let mut page = Page::default();
    write_successes(&mut page);
    write_failures(&mut page);
    for labels in [Responses::ALL, Outcomes::ALL, Waits::ALL, Failures::ALL] {
        page.assert_covers(labels);
    }
    refusals::assert_covered(&page);
    assert_snapshot("bytes/shard-responses.txt", page.text());
}
