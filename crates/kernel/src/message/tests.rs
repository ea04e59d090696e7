//! Every message survives being stored.

mod snapshot;

use super::*;
use crate::{Code, Conflict, LimitKey, Limiting, OnFailure, Parent, Recovery, TaskOptions, TenantId, Timestamp};

fn step() -> StepId {
    StepId::new("left", "charge", 2).unwrap()
}

fn run() -> RunId {
    RunId::new("order-17").unwrap()
}

fn plan() -> PlanId {
    PlanId::new("switch-17").unwrap()
}

/// What tasks, plans and locks tell each other.
fn every_message_of_plans() -> Vec<Message> {
    let origin = Origin { by: Some("ada".into()), why: Some("no time".into()), command: None };
    let lease = Duration::from_micros(9_000_000_001);
    let expires_at = Timestamp::from_micros(1_700_000_000_000_001);
    let held = Lease { plan: plan(), task: run(), epoch: 3, fence: 1 << 60, lease, expires_at };
    let wants = [Wants::Nothing, Wants::Turn, Wants::TurnAsked].into_iter().cycle();
    let changed = |(status, wants)| Message::TaskChanged(TaskChanged { epoch: 2, status, wants, heard: 1 << 60 });
    let verbs = [Verb::Pause, Verb::Resume, Verb::Cancel, Verb::RollBack];
    let operated = verbs.map(|verb| Message::OperateTask { verb, origin: origin.clone() });
    let others = [
        Message::AdmitTask { epoch: 2 },
        Message::RecallTask { epoch: 2 },
        Message::AcquireLock { epoch: 2, asked: 9, plan: plan(), lease, waits: true },
        Message::AcquireLock { epoch: 2, asked: 9, plan: plan(), lease, waits: false },
        Message::LockGranted { lease: Box::new(held), asked: 9 },
        Message::LockRefused { asked: 9, holder: "switch-16:switch-16/acme".into() },
        Message::ConfirmLock { fence: 7, seen: 0 },
        Message::RenewLock { fence: 7, seen: 12 },
        Message::DenyLock { fence: 7 },
        Message::ReleaseLock { fence: Some(7) },
        Message::ReleaseLock { fence: None },
        Message::LockLost { fence: 7, origin },
        Message::LockLost { fence: 7, origin: Origin::default() },
    ];
    TaskStatus::ALL.into_iter().zip(wants).map(changed).chain(operated).chain(others).collect()
}

fn failure() -> Failure {
    let mut failure = Failure::poison("no").code(Code::NotFound).cause("because").retry_after(Duration::from_millis(7));
    (failure.attempts, failure.max_attempts) = (3, Some(5));
    failure
}

/// At least one message of every type.
fn every_message() -> Vec<Message> {
    let task = TaskOptions {
        plan: plan(),
        tenant: TenantId::new("acme").unwrap(),
        stages: vec!["drain".into()],
        lease: Duration::from_micros(7_000_001),
        on_failure: OnFailure::Release,
        conflict: Conflict::Skip,
    };
    let options = RunOptions {
        tenant: Some("acme".into()),
        recovery: Recovery::Manual,
        limits: vec![Limiting { key: LimitKey::of_key("card/7").unwrap(), slots: 3 }],
        parent: Some(Parent { run: run(), child: step(), detached: true }),
        definition: Some("1f".repeat(32)),
        task: Some(Box::new(task)),
    };
    let child = |deadline, options| {
        let (workflow, input) = (WorkflowName::new("team/parcel").unwrap(), Payload::json("{\"a\":1}"));
        Message::StartChild(StartChild { workflow, input, seed: Seed([7; 32]), deadline, options })
    };
    let letter = |about, tenant| Letter { about, attempt: 3, tenant, failure: failure(), payload: Payload::json("17") };
    let of_step = || LetterAbout::Step { run: run(), step: step() };
    let of_key = LetterAbout::Expiry { key: KeyName::new("session:7/a").unwrap(), revision: 1 << 60 };
    let (route, direction, kind) = (RouteName::new("mail").unwrap(), Direction::Sent, MessageKind::Tell);
    let of_message = LetterAbout::Message { route, direction, kind, peer: "b".into(), request: "7".into() };
    let origin = Origin { by: Some("ada".into()), why: Some("ordered twice".into()), command: Some("c-1".into()) };
    vec![
        Message::RequestSlot { epoch: 2, slots: 5 },
        Message::RequestSlot { epoch: 0, slots: 0 },
        Message::GrantSlot { epoch: 2 },
        Message::ReleaseSlot { epoch: 2 },
        child(Some(Duration::from_millis(9)), options),
        child(None, RunOptions::default()),
        Message::CancelChild { origin },
        Message::CancelChild { origin: Origin::default() },
        Message::ChildEnded { child: step(), outcome: Ok(Payload::json("1")) },
        Message::ChildEnded { child: step(), outcome: Err(failure()) },
        Message::PostLetter(letter(of_step(), Some("acme".into()))),
        Message::PostLetter(letter(of_step(), None)),
        Message::PostLetter(letter(of_key, None)),
        Message::PostLetter(letter(of_message, None)),
        Message::SettleLetter { step: step(), after: 1 << 60 },
    ]
}

/// How many types of messages there are.
const TYPES: usize = 20;

#[test]
fn every_message_survives_being_stored() {
    let mut kinds = std::collections::BTreeSet::new();
    for message in every_message().into_iter().chain(every_message_of_plans()) {
        kinds.insert(message.kind());
        assert_eq!(Message::decode(message.kind(), &message.encode()), Some(message));
    }
    assert_eq!(kinds.len(), TYPES, "a type is missing in the list");
}

#[test]
fn what_cannot_be_read_is_no_message() {
    for message in every_message().into_iter().chain(every_message_of_plans()) {
        assert_eq!(Message::decode("SAY_NOTHING", &message.encode()), None);
        assert_eq!(Message::decode(message.kind(), b"\xff"), None);
    }
    let may_be_empty = ["CANCEL_CHILD", "RELEASE_LOCK"];
    for message in every_message().into_iter().chain(every_message_of_plans()) {
        let kind = message.kind();
        assert_eq!(Message::decode(kind, b"").is_some(), may_be_empty.contains(&kind), "{kind}");
    }
}
