//! Batches that follow on from each other are merged into one.

use std::time::Duration;
use steadfast_kernel::{
    Failure, Held, KeyName, LetterHome, LetterId, Payload, PlanId, PlanStatus, RunId, Status, Target, TenantId, TimerName, Timestamp,
    WorkflowName,
};
use steadfast_store::{Batch, Fence, KeyChange, KeyRow, LetterChange, LockChange, PlanRow, RunRow, ShardId, TimerChange};

fn fence(shard: ShardId, term: u64, after: u64, upto: u64) -> Fence {
    Fence { shard, term, after, upto }
}

fn fenced(fence: Fence) -> Batch {
    Batch { fences: vec![fence], ..Batch::default() }
}

fn merged(fences: impl IntoIterator<Item = Fence>) -> Vec<Fence> {
    let mut batch = Batch::default();
    fences.into_iter().for_each(|fence| batch.merge(fenced(fence)));
    batch.fences
}

fn row(id: &str) -> RunRow {
    RunRow {
        shard: 0,
        run: RunId::new(id).unwrap(),
        workflow: WorkflowName::new("bill").unwrap(),
        tenant: None,
        status: Status::Running,
        wait: None,
        text: None,
        recover: None,
        started_at: Timestamp::EPOCH,
        ended_at: None,
        task: None,
    }
}

#[test]
fn fences_of_a_shard_become_one() {
    assert_eq!(merged([fence(0, 1, 4, 5), fence(0, 1, 5, 6), fence(0, 1, 6, 9)]), [fence(0, 1, 4, 9)]);
}

#[test]
fn fences_of_shards_stay_apart() {
    let fences = [fence(0, 1, 4, 5), fence(1, 3, 5, 6), fence(0, 1, 5, 6)];
    assert_eq!(merged(fences), [fence(0, 1, 4, 6), fence(1, 3, 5, 6)]);
}

#[test]
fn a_fence_that_does_not_follow_is_kept_for_the_store_to_refuse() {
    assert_eq!(merged([fence(0, 1, 4, 5), fence(0, 1, 7, 8)]), [fence(0, 1, 4, 5), fence(0, 1, 7, 8)]);
    assert_eq!(merged([fence(0, 1, 4, 5), fence(0, 2, 5, 6)]), [fence(0, 1, 4, 5), fence(0, 2, 5, 6)]);
}

#[test]
fn rows_and_timers_keep_their_order() {
    let disarm = |id: &str| TimerChange::Disarm { entity: RunId::new(id).unwrap().into(), name: TimerName::Deadline };
    let mut batch = Batch { runs: vec![row("b")], timers: vec![disarm("b")], ..Batch::default() };
    batch.merge(Batch { runs: vec![row("a")], timers: vec![disarm("a")], ..Batch::default() });
    assert_eq!(batch.runs, [row("b"), row("a")]);
    assert_eq!(batch.timers, [disarm("b"), disarm("a")]);
}

#[test]
fn plans_and_locks_keep_their_order_and_have_a_size() {
    let plan = |id: &str| PlanRow {
        shard: 0,
        plan: PlanId::new(id).unwrap(),
        definition: "switch".into(),
        status: PlanStatus::Ready,
        why: None,
        created_at: Timestamp::EPOCH,
        started_at: None,
        ended_at: None,
    };
    let remove = |id: &str| LockChange::Remove(TenantId::new(id).unwrap());
    let mut batch = Batch { plans: vec![plan("b")], ..Batch::default() };
    let mut last = 0;
    for next in [
        Batch { locks: vec![remove("b")], ..Batch::default() },
        Batch { plans: vec![plan("a")], locks: vec![remove("a")], ..Batch::default() },
    ] {
        assert!(batch.size() > last);
        last = batch.size();
        batch.merge(next);
    }
    assert!(batch.size() > last);
    assert_eq!(batch.plans, [plan("b"), plan("a")]);
    assert_eq!(batch.locks, [remove("b"), remove("a")]);
}

#[test]
fn the_size_grows_with_what_is_merged() {
    let mut batch = Batch::default();
    assert_eq!(batch.size(), 0);
    batch.merge(Batch { runs: vec![row("a")], ..Batch::default() });
    let one = batch.size();
    batch.merge(Batch { runs: vec![row("b")], ..Batch::default() });
    assert!(batch.size() > one);
}

/// A long reason is written with the row of its run.
#[test]
fn the_size_has_the_texts_of_rows() {
    let size = |text: Option<String>| Batch { runs: vec![RunRow { text, ..row("a") }], ..Batch::default() }.size();
    assert_eq!(size(Some("x".repeat(3_000))) - size(None), 3_000);
    let failed =
        |message: &str| LetterChange::Fail(LetterId { home: LetterHome::parse("bill").unwrap(), seq: 1 }, Failure::permanent(message));
    let size = |message: &str| Batch { letters: vec![failed(message)], ..Batch::default() }.size();
    assert_eq!(size(&"x".repeat(3_000)) - size(""), 3_000);
}

#[test]
fn the_size_has_what_keys_hold() {
    let held = |value: usize, target| Held {
        revision: 1,
        value: Payload::json(vec![b'1'; value]),
        ttl: Duration::ZERO,
        expires_at: Timestamp::EPOCH,
        owner: None,
        directory: false,
        on_expire: target,
        put_at: Timestamp::EPOCH,
    };
    let row = |held| KeyRow { shard: 0, key: KeyName::new("a").unwrap(), held, ended_at: None, ended_below: None };
    let size = |held| Batch { keys: vec![KeyChange::Put(Box::new(row(held)))], ..Batch::default() }.size();
    let run = Target::StartRun { workflow: WorkflowName::new("bill").unwrap(), input: Payload::json(vec![b'1'; 5_000]) };
    assert_eq!(size(held(4_000, None)) - size(held(0, None)), 4_000);
    assert_eq!(size(held(0, Some(run))) - size(held(0, None)), 5_000);
}
