//! Faults on demand, and what a reopened store has.

use futures_util::FutureExt;
use steadfast_kernel::code;
use steadfast_store::memory::{Fault, Gate, Memory};
use steadfast_store::{Batch, Fence, Head, Store};

fn batch(upto: u64) -> Batch {
    Batch { fences: vec![Fence { shard: 0, term: 1, after: upto - 1, upto }], ..Batch::default() }
}

async fn claimed() -> Memory {
    let store = Memory::new();
    store.claim(0).await.unwrap();
    store
}

#[tokio::test]
async fn a_failed_commit_is_not_applied_and_the_next_one_is() {
    let store = claimed().await;
    store.faults().after(1, Fault::Fail);
    store.commit(batch(1)).await.unwrap();
    let error = store.commit(batch(2)).await.unwrap_err();
    assert_eq!(error.code(), code::STORE_UNAVAILABLE);
    assert!(error.is_retryable());
    assert_eq!(store.head(0).await.unwrap().seq, 1);
    store.commit(batch(2)).await.unwrap();
    assert_eq!(store.commits(), 2);
}

#[tokio::test]
async fn a_held_commit_is_announced_when_the_gate_opens() {
    let store = claimed().await;
    let gate = Gate::default();
    store.faults().after(0, Fault::Hold(gate.clone()));
    let mut held = store.commit(batch(1));
    assert!((&mut held).now_or_never().is_none());
    store.commit(batch(2)).await.unwrap();
    gate.open();
    held.await.unwrap();
}

#[tokio::test]
async fn an_open_gate_holds_nothing() {
    let store = claimed().await;
    let gate = Gate::default();
    gate.open();
    store.faults().after(0, Fault::Hold(gate));
    store.commit(batch(1)).now_or_never().unwrap().unwrap();
}

#[tokio::test]
async fn a_crash_before_leaves_nothing_and_a_dead_store() {
    let store = claimed().await;
    store.faults().after(0, Fault::CrashBefore);
    assert!(store.commit(batch(1)).await.is_err());
    assert!(store.commit(batch(1)).await.is_err(), "dead");
    assert!(store.head(0).await.is_err(), "dead");
    assert_eq!(store.reopen().head(0).await.unwrap(), Head { term: 1, seq: 0 });
}

#[tokio::test]
async fn a_crash_after_keeps_what_nobody_was_told() {
    let store = claimed().await;
    store.faults().after(0, Fault::CrashAfter);
    assert!(store.commit(batch(1)).await.is_err());
    assert!(store.claim(0).await.is_err(), "dead");
    assert_eq!(store.reopen().head(0).await.unwrap(), Head { term: 1, seq: 1 });
}

#[tokio::test]
async fn reopening_kills_the_old_handle_and_its_clones() {
    let store = claimed().await;
    let clone = store.clone();
    let reopened = store.reopen();
    for dead in [&store, &clone] {
        assert!(dead.commit(batch(1)).await.is_err());
        assert!(dead.claim(0).await.is_err());
        assert!(dead.head(0).await.is_err());
        assert!(dead.timers(0, None, 1).await.is_err());
    }
    assert_eq!(reopened.claim(0).await.unwrap(), Head { term: 2, seq: 0 });
}

#[tokio::test]
async fn a_reopened_store_has_no_faults() {
    let store = claimed().await;
    store.faults().after(0, Fault::Fail);
    store.reopen().commit(batch(1)).await.unwrap();
}

#[tokio::test]
async fn a_plan_that_was_cleared_does_nothing() {
    let store = claimed().await;
    store.faults().after(0, Fault::CrashBefore);
    store.faults().clear();
    store.commit(batch(1)).await.unwrap();
}
