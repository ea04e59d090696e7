//! Checks the outbox: unsettled messages, in the order of each sender.

use super::Harness;
use super::fixture::{
    Writer, add, all_messages, entity, envelope, event, events, lock_row, messages, plan_id, run, seqs, settle, step, tenant, workflow,
};
use std::time::Duration;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::Verb;
use steadfast_kernel::{
    Conflict, EntityId, Envelope, Failure, Lease, Letter, LetterAbout, LimitKey, Limiting, Message, OnFailure, Origin, Parent, Payload,
    Recovery, RunOptions, StartChild, TaskChanged, TaskOptions, TaskStatus, Wants,
};
use steadfast_store::{Batch, OutboxChange, Store};

fn failure() -> Failure {
    let mut failure = Failure::transient("away").retry_after(Duration::from_micros(1_500_001));
    (failure.attempts, failure.max_attempts) = (3, Some(3));
    failure.causes = vec!["no route".into(), String::new()];
    failure
}

fn start_child() -> StartChild {
    let key = LimitKey::of_key("customer-7").unwrap();
    let parent = Parent { run: run("a"), child: step("child"), detached: true };
    let options = RunOptions {
        task: None,
        tenant: Some("acme".into()),
        recovery: Recovery::Manual,
        limits: vec![Limiting { key, slots: 2 }],
        parent: Some(parent),
        definition: Some("1f".repeat(32)),
    };
    let input = Payload::json(vec![0xff, 0x00]);
    StartChild { workflow: workflow("ship"), input, seed: Seed([7; 32]), deadline: Some(Duration::from_secs(5)), options }
}

/// Every kind of message.
fn every_kind() -> Vec<Message> {
    let origin = Origin { by: Some("eve".into()), why: Some("a \u{201c}mistake\u{201d}".into()), command: Some("c-1".into()) };
    let letter = Letter {
        about: LetterAbout::Step { run: run("a"), step: step("read") },
        attempt: 2,
        tenant: Some("acme".into()),
        failure: failure(),
        payload: Payload::json(vec![0; 3]),
    };
    vec![
        Message::RequestSlot { epoch: 2, slots: 3 },
        Message::GrantSlot { epoch: u32::MAX },
        Message::ReleaseSlot { epoch: 0 },
        Message::StartChild(start_child()),
        Message::CancelChild { origin },
        Message::CancelChild { origin: Origin::default() },
        Message::ChildEnded { child: step("child"), outcome: Ok(Payload::json("12")) },
        Message::ChildEnded { child: step("child"), outcome: Err(failure()) },
        Message::PostLetter(letter.clone()),
        Message::PostLetter(Letter { tenant: None, ..letter }),
        Message::SettleLetter { step: step("read"), after: 7 },
    ]
}

/// Every kind of message between plans, tasks and locks.
fn every_kind_of_plans() -> Vec<Message> {
    let origin = Origin { by: Some("eve".into()), why: None, command: Some("c-2".into()) };
    let lease = Lease { epoch: u32::MAX, fence: 1 << 40, ..lock_row("acme").lease };
    let task = TaskOptions {
        plan: plan_id("switch-17"),
        tenant: tenant("acme/eu"),
        stages: vec!["drain".into(), "sp\u{e4}ter".into()],
        lease: Duration::from_secs(9_000),
        on_failure: OnFailure::Release,
        conflict: Conflict::Skip,
    };
    let start = start_child();
    let changed = [Wants::Nothing, Wants::Turn, Wants::TurnAsked].into_iter().cycle().zip(TaskStatus::ALL);
    let changed = changed.map(|(wants, status)| Message::TaskChanged(TaskChanged { epoch: 2, status, wants, heard: 1 << 60 }));
    changed
        .chain([
            Message::StartChild(StartChild {
                options: RunOptions { task: Some(Box::new(task)), parent: None, ..start.options.clone() },
                ..start
            }),
            Message::AdmitTask { epoch: u32::MAX },
            Message::RecallTask { epoch: 0 },
            Message::OperateTask { verb: Verb::RollBack, origin: origin.clone() },
            Message::AcquireLock { epoch: 1, asked: 2, plan: plan_id("switch-17"), lease: Duration::from_millis(1), waits: true },
            Message::AcquireLock { epoch: 1, asked: 2, plan: plan_id("switch-17"), lease: Duration::from_secs(9_000), waits: false },
            Message::LockGranted { lease: Box::new(lease), asked: 2 },
            Message::LockRefused { asked: 2, holder: "switch-16:switch-16/acme".into() },
            Message::ConfirmLock { fence: 7, seen: 1 << 40 },
            Message::RenewLock { fence: 1 << 40, seen: 0 },
            Message::ReleaseLock { fence: None },
            Message::ReleaseLock { fence: Some(7) },
            Message::LockLost { fence: 7, origin },
            Message::LockLost { fence: 7, origin: Origin::default() },
        ])
        .collect()
}

/// All fields of messages of all kinds, between entities of all kinds.
pub async fn every_message_comes_back(harness: &impl Harness) {
    let store = harness.open().await;
    let hearers = [
        entity("b"),
        EntityId::Limit(LimitKey::of_workflow(&workflow("bill"))),
        EntityId::Letters(workflow("team/bill")),
        EntityId::Route(steadfast_kernel::RouteName::new("team/mail").unwrap()),
        EntityId::Plan(plan_id("switch-17")),
        EntityId::Lock(tenant("acme/eu")),
    ];
    let sent = (1..).zip([every_kind(), every_kind_of_plans()].concat()).zip(hearers.into_iter().cycle());
    let sent: Vec<_> = sent.map(|((seq, message), to)| Envelope { seq, to, message, ..envelope("a", 1) }).collect();
    Writer::claim(&store, 0).await.write(messages(sent.iter().map(add))).await;
    assert_eq!(all_messages(&store, 0).await, sent);
}

/// Messages in the order that is theirs: by the sender as text, and by number.
fn in_order() -> Vec<Envelope> {
    let places = [
        ("B", 1),
        ("a", 1),
        ("a", 2),
        ("a", 10),
        ("a-1", 1),
        ("a/1", 1),
        ("letters:bill", 3),
        ("limit", 1),
        ("limit/key/a", 1),
        ("limit:key/a", 1),
        ("limit:key/a", 2),
        ("limit:workflow/a", 1),
        ("lock", 1),
        ("lock:a", 2),
        ("lock:a", 10),
        ("m", 1_000_000),
        ("plan/a", 1),
        ("plan:a", 9),
        ("plan:a", 10),
        ("plan:a-1", 1),
    ];
    places.into_iter().map(|(from, seq)| envelope(from, seq)).collect()
}

/// Adds the messages in an order that is not theirs.
async fn add_shuffled(store: &impl Store) {
    let (odd, even): (Vec<_>, Vec<_>) = in_order().into_iter().rev().enumerate().partition(|(place, _)| place % 2 == 1);
    let mut writer = Writer::claim(store, 0).await;
    writer.write(messages(odd.iter().map(|(_, envelope)| add(envelope)))).await;
    writer.write(messages(even.iter().map(|(_, envelope)| add(envelope)))).await;
}

/// The order of a sender is that of its numbers, not that of their digits.
pub async fn messages_come_in_the_order_of_their_senders(harness: &impl Harness) {
    let store = harness.open().await;
    add_shuffled(&store).await;
    assert_eq!(all_messages(&store, 0).await, in_order());
}

/// Whatever the size of a page, the pages together are the list.
pub async fn pages_meet(harness: &impl Harness) {
    let store = harness.open().await;
    add_shuffled(&store).await;
    for limit in 1..=in_order().len() {
        let mut found: Vec<Envelope> = vec![];
        loop {
            let after = found.last().map(|last| (last.from.clone(), last.seq));
            let page = store.outbox(0, after.as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            found.extend(page.iter().cloned());
            assert!(found.len() <= in_order().len(), "pages repeat");
            if page.is_empty() {
                break;
            }
        }
        assert_eq!(found, in_order(), "pages of {limit}");
    }
    assert_eq!(store.outbox(0, None, 0).await.unwrap(), []);
}

/// The message that a page begins after may have been settled meanwhile.
pub async fn a_page_begins_after_a_message_that_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(messages((1..=3).map(|seq| add(&envelope("a", seq))))).await;
    writer.write(messages([settle(&envelope("a", 2))])).await;
    assert_eq!(store.outbox(0, Some(&(entity("a"), 2)), 9).await.unwrap(), [envelope("a", 3)]);
}

/// Those of the same number, of other senders, stay.
pub async fn what_is_settled_is_gone(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer
        .write(messages([("a", 1), ("a", 2), ("b", 1), ("limit:key/a", 1)].map(|(from, seq)| add(&envelope(from, seq)))))
        .await;
    writer.write(messages([settle(&envelope("a", 1))])).await;
    assert_eq!(all_messages(&store, 0).await, [envelope("a", 2), envelope("b", 1), envelope("limit:key/a", 1)]);
}

/// It may have been settled before, or have been heard before it was said anew.
pub async fn settling_what_is_not_there_is_fine(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(messages([settle(&envelope("a", 1)), add(&envelope("a", 2))])).await;
    writer.write(messages([settle(&envelope("a", 1)), settle(&envelope("b", 2))])).await;
    assert_eq!(all_messages(&store, 0).await, [envelope("a", 2)]);
}

/// Added then settled is gone, settled then added is there.
pub async fn messages_of_one_batch_change_in_order(harness: &impl Harness) {
    let store = harness.open().await;
    let (first, second) = (envelope("a", 1), envelope("b", 1));
    Writer::claim(&store, 0)
        .await
        .write(messages([add(&first), settle(&first), settle(&second), add(&second)]))
        .await;
    assert_eq!(all_messages(&store, 0).await, [second]);
}

/// A message of the same sender and number is the same one, wherever it was said.
pub async fn adding_again_replaces(harness: &impl Harness) {
    let store = harness.open().await;
    let other = Envelope { to: entity("other"), message: Message::ReleaseSlot { epoch: 7 }, ..envelope("a", 1) };
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(messages([add(&envelope("a", 1)), add(&envelope("a", 2))])).await;
    writer.write(messages([add(&other)])).await;
    assert_eq!(all_messages(&store, 0).await, [other.clone(), envelope("a", 2)]);
    writer.write(messages([OutboxChange::Add { shard: 1, envelope: other.clone() }])).await;
    assert_eq!(all_messages(&store, 0).await, [envelope("a", 2)]);
    assert_eq!(all_messages(&store, 1).await, [other]);
}

/// A message is there if and only if the events of its batch are, and so it is with what is settled.
pub async fn messages_stand_and_fall_with_their_events(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let said = |seq| Batch { outbox: vec![add(&envelope("a", seq))], ..events([event("a", seq)]) };
    let heard = |seq| Batch { outbox: vec![settle(&envelope("a", seq))], ..events([event("b", seq)]) };
    writer.write(said(1)).await;
    let mut failing = heard(1);
    failing.merge(Batch { outbox: vec![add(&envelope("a", 2))], ..events([event("a", 1)]) });
    writer.fail(failing).await;
    assert_eq!(all_messages(&store, 0).await, [envelope("a", 1)]);
    assert_eq!(seqs(&store, "b").await, [0; 0]);
    writer.write(heard(1)).await;
    assert_eq!(all_messages(&store, 0).await, []);
    assert_eq!(seqs(&store, "b").await, [1]);
}

/// A shard lists what its own entities said.
pub async fn messages_of_shards_are_apart(harness: &impl Harness) {
    let store = harness.open().await;
    let of = |shard, from| OutboxChange::Add { shard, envelope: envelope(from, 1) };
    Writer::claim(&store, 0).await.write(messages([of(0, "a"), of(1, "b"), of(0, "c")])).await;
    assert_eq!(all_messages(&store, 0).await, [envelope("a", 1), envelope("c", 1)]);
    assert_eq!(all_messages(&store, 1).await, [envelope("b", 1)]);
    assert_eq!(all_messages(&store, 2).await, []);
}
