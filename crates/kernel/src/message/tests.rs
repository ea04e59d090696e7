//! Every message survives being stored.

use super::*;
use crate::{Code, LimitKey, Limiting, Parent, Recovery};

fn step() -> StepId {
    StepId::new("left", "charge", 2).unwrap()
}

fn run() -> RunId {
    RunId::new("order-17").unwrap()
}

fn failure() -> Failure {
    let mut failure = Failure::poison("no").code(Code::NotFound).cause("because").retry_after(Duration::from_millis(7));
    (failure.attempts, failure.max_attempts) = (3, Some(5));
    failure
}

/// At least one message of every type.
fn every_message() -> Vec<Message> {
    let options = RunOptions {
        tenant: Some("acme".into()),
        recovery: Recovery::Manual,
        limits: vec![Limiting { key: LimitKey::of_key("card/7").unwrap(), slots: 3 }],
        parent: Some(Parent { run: run(), child: step(), detached: false }),
        definition: Some("1f".repeat(32)),
    };
    let child = |deadline, options| {
        let (workflow, input) = (WorkflowName::new("team/parcel").unwrap(), Payload::json("{\"a\":1}"));
        Message::StartChild(StartChild { workflow, input, seed: Seed([7; 32]), deadline, options })
    };
    let letter = |about, tenant| Letter { about, attempt: 3, tenant, failure: failure(), payload: Payload::json("17") };
    let of_step = || LetterAbout::Step { run: run(), step: step() };
    let of_key = LetterAbout::Expiry { key: KeyName::new("session:7/a").unwrap(), revision: 1 << 60 };
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
        Message::SettleLetter { step: step(), after: 1 << 60 },
    ]
}

/// How many types of messages there are.
const TYPES: usize = 8;

#[test]
fn every_message_survives_being_stored() {
    let mut kinds = std::collections::BTreeSet::new();
    for message in every_message() {
        kinds.insert(message.kind());
        assert_eq!(Message::decode(message.kind(), &message.encode()), Some(message));
    }
    assert_eq!(kinds.len(), TYPES, "a type is missing in the list");
}

#[test]
fn what_cannot_be_read_is_no_message() {
    for message in every_message() {
        assert_eq!(Message::decode("SAY_NOTHING", &message.encode()), None);
        assert_eq!(Message::decode(message.kind(), b"\xff"), None);
    }
    for kind in ["REQUEST_SLOT", "GRANT_SLOT", "RELEASE_SLOT", "START_CHILD", "CHILD_ENDED", "POST_LETTER", "SETTLE_LETTER"] {
        assert_eq!(Message::decode(kind, b""), None, "{kind}");
    }
}
