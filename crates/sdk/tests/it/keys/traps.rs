//! What first versions of such engines got wrong.
//!
//! Subject: `crates/runtime/src/callbacks/lanes.rs`.

use super::{Told, config, down_for, pass, put, told_by};
use crate::support::engine;
use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Callbacks, Config, Ctx, Engine, Expired, Failure, Follow, HOUR, Position, SECOND, workflow};

#[tokio::test(start_paused = true)]
async fn a_failed_expiry_is_retried_on_time_though_the_next_key_ends_in_an_hour() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.answering(down_for(1))).start().await.unwrap();
    put(&engine, "late", HOUR).await;
    put(&engine, "k", SECOND).await;
    pass(3 * SECOND).await;
    assert_eq!(told.lines(), ["k a1", "k a2"]);
    let times = told.times("k");
    assert!(times[1] - times[0] < SECOND + SECOND / 10, "{times:?}");
}

/// Notes what it is told. The key `stuck` is never done, the others are at their second attempt.
fn stuck(told: &Told) -> impl Fn(Expired) -> futures_util::future::BoxFuture<'static, Result<(), Failure>> + Send + Sync + 'static {
    let told = told.clone();
    move |expired| {
        told.note(expired.clone());
        Box::pin(async move {
            match expired.key.as_str() {
                "stuck" => std::future::pending().await,
                _ => down_for(1)(&expired),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn one_in_flight_at_the_head_does_not_block_the_failed_ones_behind_it() {
    let told = Told::new();
    let engine = engine(&Memory::new()).config(config()).on_expire("", stuck(&told)).start().await.unwrap();
    put(&engine, "stuck", SECOND).await;
    for number in 0..5 {
        put(&engine, &format!("k{number}"), SECOND + SECOND / 10).await;
    }
    pass(3 * SECOND).await;
    assert_eq!(told.times("stuck").len(), 1, "it is in flight");
    for number in 0..5 {
        assert_eq!(told.times(&format!("k{number}")).len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn one_whose_callback_never_settles_is_taken_up_again_after_its_time() {
    let told = Told::new();
    let engine = engine(&Memory::new()).config(config()).on_expire("", stuck(&told)).start().await.unwrap();
    put(&engine, "stuck", SECOND).await;
    pass(11 * SECOND + SECOND / 2).await;
    assert_eq!(told.lines(), ["stuck a1"]);
    let pending = &engine.callbacks("", None, 10).await.unwrap().items[0];
    assert_eq!(pending.failure.as_ref().unwrap().message, "there was no answer within 10s");
    pass(SECOND).await;
    assert_eq!(told.lines(), ["stuck a1", "stuck a2"]);
}

#[tokio::test(start_paused = true)]
async fn of_thirty_one_failed_ones_none_is_forgotten_after_the_first_ten() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.answering(down_for(2))).start().await.unwrap();
    for number in 0..31 {
        put(&engine, &format!("k{number}"), SECOND).await;
    }
    pass(10 * SECOND).await;
    assert_eq!(told.len(), 3 * 31);
    assert_eq!(engine.callbacks("", None, 100).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn one_callback_that_panics_delays_none_of_its_batch() {
    let told = Told::new();
    let panicking = told.answering(|expired| match (expired.key.as_str(), expired.attempt) {
        ("k05", 1) => panic!("on purpose"),
        _ => Ok(()),
    });
    let engine = told_by(&Memory::new(), panicking).start().await.unwrap();
    for number in 0..50 {
        put(&engine, &format!("k{number:02}"), SECOND).await;
    }
    pass(SECOND + SECOND / 2).await;
    assert_eq!(told.len(), 50);
    assert!(told.all().iter().all(|(time, _)| *time < SECOND + SECOND / 10));
    let pending = &engine.callbacks("", None, 10).await.unwrap().items;
    assert_eq!((pending.len(), pending[0].key.as_str()), (1, "k05"));
    assert_eq!(pending[0].failure.as_ref().unwrap().message, "the handler has panicked");
    pass(SECOND).await;
    assert_eq!(told.times("k05").len(), 2);
}

/// The disk is slow: the renewal is decided but not answered when the time of the revision before it is over.
#[tokio::test(start_paused = true)]
async fn a_key_renewed_while_its_expiry_is_in_flight_is_kept() {
    let told = Told::new();
    let store = Memory::new();
    let engine = told_by(&store, told.handler()).start().await.unwrap();
    put(&engine, "k", SECOND).await;
    pass(SECOND - SECOND / 10).await;
    let gate = Gate::default();
    store.faults().after(0, Fault::Hold(gate.clone()));
    let renewal = tokio::spawn(engine.renew("k", HOUR).into_future());
    pass(SECOND).await;
    gate.open();
    let renewed = renewal.await.unwrap().unwrap();
    pass(SECOND).await;
    assert_eq!(told.len(), 0);
    assert_eq!(engine.get("k").await.unwrap().unwrap().revision, renewed.revision);
}

/// Here the expiry is decided first, and the put comes while it is not yet durable.
#[tokio::test(start_paused = true)]
async fn a_key_created_again_while_its_expiry_is_in_flight_is_kept_and_the_end_is_told() {
    let told = Told::new();
    let store = Memory::new();
    let engine = told_by(&store, told.handler()).start().await.unwrap();
    let first = put(&engine, "k", SECOND).await;
    let gate = Gate::default();
    store.faults().after(0, Fault::Hold(gate.clone()));
    pass(SECOND).await;
    assert_eq!(told.len(), 0, "nobody is told of what is not durable");
    let again = tokio::spawn(engine.put("k", &2).ttl(HOUR).into_future());
    pass(SECOND).await;
    gate.open();
    let second = again.await.unwrap().unwrap().revision;
    pass(SECOND).await;
    assert_eq!(told.all().iter().map(|(_, expired)| expired.revision).collect::<Vec<_>>(), [first]);
    assert_eq!(engine.get("k").await.unwrap().unwrap().revision, second);
}

#[workflow]
async fn other_work(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    ctx.step("work", || async { Ok::<_, Failure>(()) }).await
}

/// How many of the entries in each commit say that a key has expired.
fn expiries_per_commit(store: &Memory) -> Arc<AtomicUsize> {
    let most = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&most);
    store.faults().rule(move |batch| {
        let count = batch.events.iter().filter(|append| append.record.kind == "KEY_EXPIRED").count();
        noted.fetch_max(count, Ordering::SeqCst);
        None
    });
    most
}

/// The kinds of what was written, in their order.
async fn written(engine: &Engine, count: usize) -> Vec<&'static str> {
    let mut feed = engine.feed(Follow { after: Some(Position::default()), entity: None }).await.unwrap();
    let mut kinds = Vec::new();
    while kinds.iter().filter(|kind| **kind == "CALLBACK_SETTLED").count() < count {
        kinds.extend(feed.next().await.unwrap().iter().map(|fed| fed.entry.event.kind()));
    }
    kinds
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_keys_of_the_same_instant_expire_in_bounded_batches_while_other_work_goes_on() {
    const KEYS: usize = 10_000;
    let (told, store) = (Told::new(), Memory::new());
    let engine = told_by(&store, told.handler()).register(other_work).start().await.unwrap();
    let until = 30 * SECOND;
    for page in 0..10 {
        let puts = (0..KEYS / 10).map(|number| engine.put(&format!("k{page}-{number}"), &1).ttl(until).into_future());
        futures_util::future::try_join_all(puts).await.unwrap();
    }
    let most = expiries_per_commit(&store);
    let busy = {
        let engine = engine.clone();
        tokio::spawn(async move {
            tokio::time::sleep(until).await;
            engine.start("other_work", &()).await.unwrap().result::<()>().await.unwrap();
        })
    };
    let kinds = written(&engine, KEYS).await;
    busy.await.unwrap();
    assert_eq!(told.len(), KEYS);
    let place = |wanted: &str| kinds.iter().position(|kind| *kind == wanted).unwrap();
    let last = kinds.iter().rposition(|kind| *kind == "KEY_EXPIRED").unwrap();
    assert!(place("RUN_COMPLETED") < last, "the run did not wait for all keys");
    let most = most.load(Ordering::SeqCst);
    assert!((1..=500).contains(&most), "{most} in one commit");
}

#[tokio::test(start_paused = true)]
async fn retries_follow_a_policy_with_backoff_cap_and_jitter_and_end_as_a_dead_letter() {
    let told = Told::new();
    let engine = engine(&Memory::new()).on_expire("", told.answering(down_for(u32::MAX))).start().await.unwrap();
    for key in ["a", "b", "c"] {
        put(&engine, key, SECOND).await;
    }
    pass(24 * HOUR).await;
    let mut firsts = BTreeSet::new();
    for key in ["a", "b", "c"] {
        let times = told.times(key);
        assert_eq!(times.len(), 20, "no more than the policy allows");
        let delays: Vec<Duration> = times.iter().zip(&times[1..]).map(|(earlier, later)| *later - *earlier).collect();
        let base = |index: usize| (SECOND * 2_u32.pow(u32::try_from(index).unwrap())).min(300 * SECOND);
        for (index, delay) in delays.iter().enumerate() {
            assert!(*delay >= base(index) && *delay <= 301 * SECOND, "{index}: {delay:?}");
        }
        firsts.insert(delays[0]);
    }
    assert!(firsts.len() > 1, "they do not come back all at once: {firsts:?}");
    let letters = engine.letters(None, 10).await.unwrap().items;
    assert_eq!(letters.len(), 3);
    assert!(letters.iter().all(|letter| letter.failure.exhausted().is_some_and(|exhausted| exhausted.max == 20)));
}

#[tokio::test(start_paused = true)]
async fn a_sick_target_delays_no_other() {
    let told = Told::new();
    let sick = |_| std::future::pending::<Result<(), Failure>>();
    let callbacks = Callbacks { in_flight_max: 2, ..config().callbacks };
    let engine = engine(&Memory::new())
        .config(Config { callbacks, ..config() })
        .on_expire("sick", sick)
        .on_expire("well", told.handler())
        .start()
        .await
        .unwrap();
    for number in 0..10 {
        put(&engine, &format!("sick{number}"), SECOND).await;
        put(&engine, &format!("well{number}"), SECOND).await;
    }
    pass(SECOND).await;
    assert_eq!(told.len(), 10);
    assert!(told.all().iter().all(|(time, _)| *time <= SECOND + SECOND / 50), "{:?}", told.all());
}
