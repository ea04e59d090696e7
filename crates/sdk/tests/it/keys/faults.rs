//! A store that fails, or whose answers get lost: every end is told all the same.
//!
//! Subject: `crates/runtime/src/shard/keys.rs`.

use super::{Told, config, down_for, pass, put, told_by};
use crate::support::engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use steadfast::memory::{Fault, Gate, Memory};
use steadfast::{Callbacks, Config, Expired, Failure, HOUR, Role, SECOND};
use tokio::sync::watch;

#[tokio::test(start_paused = true)]
async fn an_end_is_told_whichever_commit_fails_or_loses_its_answer() {
    for fault in [Fault::Fail, Fault::Doubt] {
        for nth in 0..4 {
            let (told, store) = (Told::new(), Memory::new());
            let engine = told_by(&store, told.answering(down_for(1))).start().await.unwrap();
            put(&engine, "k", SECOND).await;
            store.faults().after(nth, fault.clone());
            pass(60 * SECOND).await;
            assert_eq!(told.lines(), ["k a1", "k a2"], "{fault:?} of commit {nth}: no attempt more than without it");
            assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, [], "{fault:?} of commit {nth}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_became_due_while_the_store_was_away_is_told_when_it_is_back() {
    let (told, store) = (Told::new(), Memory::new());
    let engine = told_by(&store, told.answering(down_for(1))).start().await.unwrap();
    for number in 0..100_u32 {
        put(&engine, &format!("k{number}"), SECOND + number * SECOND / 10).await;
    }
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    store.faults().rule(move |_| is_down.load(Ordering::SeqCst).then_some(Fault::Fail));
    for _ in 0..4 {
        pass(2 * SECOND).await;
        down.fetch_xor(true, Ordering::SeqCst);
    }
    pass(60 * SECOND).await;
    assert_eq!(told.len(), 200);
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, []);
}

/// The second attempts of ten ends are due at once, two may be in flight, and then the role is lost.
#[tokio::test(start_paused = true)]
async fn retries_that_waited_for_their_turn_are_made_by_the_next_leader() {
    let told = Told::new();
    let slow = {
        let told = told.clone();
        move |expired: Expired| {
            let told = told.clone();
            async move {
                told.note(expired.clone());
                if expired.attempt > 1 {
                    tokio::time::sleep(5 * SECOND).await;
                }
                down_for(1)(&expired)
            }
        }
    };
    let (roles, role) = watch::channel(Role::Leader { term: 1 });
    let callbacks = Callbacks { in_flight_max: 2, ..config().callbacks };
    let config = Config { callbacks, ..config() };
    let engine = engine(&Memory::new()).config(config).leadership(role).on_expire("", slow).start().await.unwrap();
    for number in 0..10 {
        put(&engine, &format!("k{number}"), SECOND).await;
    }
    pass(3 * SECOND).await;
    assert_eq!(told.len(), 12, "two of the second attempts are in flight");
    roles.send_replace(Role::Follower);
    pass(HOUR).await;
    assert_eq!(told.len(), 12);
    roles.send_replace(Role::Leader { term: 2 });
    pass(HOUR).await;
    assert_eq!(told.len(), 20, "{:?}", told.lines());
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn a_directory_ends_with_all_below_it_whichever_commit_fails_or_loses_its_answer() {
    for fault in [Fault::Fail, Fault::Doubt] {
        for nth in 0..6 {
            let (told, store) = (Told::new(), Memory::new());
            let engine = told_by(&store, told.answering(down_for(1))).start().await.unwrap();
            engine.put("d", &1).ttl(SECOND).directory().await.unwrap();
            put(&engine, "d/a", HOUR).await;
            store.faults().after(nth, fault.clone());
            pass(60 * SECOND).await;
            assert_eq!(engine.keys("").await.unwrap().items, [], "{fault:?} of commit {nth}");
            assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, [], "{fault:?} of commit {nth}");
            assert_eq!((told.times("d").len(), told.times("d/a").len()), (2, 2), "{fault:?} of commit {nth}");
        }
    }
}

/// The disk is slow: what was told is not yet on record when the engine stops.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_until_what_was_told_is_on_record() {
    let (told, store, gate) = (Told::new(), Memory::new(), Gate::default());
    let first = told_by(&store, told.handler()).start().await.unwrap();
    put(&first, "k", SECOND).await;
    store.faults().after(1, Fault::Hold(gate.clone()));
    pass(SECOND).await;
    assert_eq!(told.len(), 1);
    let stopping = tokio::spawn(first.shutdown());
    pass(SECOND).await;
    assert!(!stopping.is_finished());
    gate.open();
    stopping.await.unwrap();
    let _second = told_by(&store.reopen(), told.handler()).start().await.unwrap();
    pass(HOUR).await;
    assert_eq!(told.len(), 1);
}

/// After a restart none of those that wait holds what it has to tell: each would be read when it is its turn.
#[tokio::test(start_paused = true)]
async fn very_many_that_wait_outlive_a_store_that_fails() {
    const KEYS: usize = 3_000;
    let (told, store) = (Told::new(), Memory::new());
    let callbacks = Callbacks { in_flight_max: 1, ..config().callbacks };
    let config = Config { callbacks, ..config() };
    let first = engine(&store)
        .config(config.clone())
        .on_expire("", |_: Expired| std::future::pending())
        .start()
        .await
        .unwrap();
    for number in 0..KEYS {
        put(&first, &format!("k{number}"), SECOND).await;
    }
    pass(2 * SECOND).await;
    let store = store.reopen(); // and the first one is dead
    let answers = Arc::new(AtomicBool::new(false));
    let is_well = Arc::clone(&answers);
    let handler = told.answering(move |_| if is_well.load(Ordering::SeqCst) { Ok(()) } else { Err(Failure::transient("down")) });
    let second = engine(&store).config(config).on_expire("", handler).start().await.unwrap();
    pass(SECOND / 100).await;
    store.faults().after(0, Fault::Fail);
    let _refused = second.put("other", &1).ttl(HOUR).await;
    pass(SECOND).await;
    answers.store(true, Ordering::SeqCst);
    pass(HOUR).await;
    assert_eq!(second.callbacks("", None, 10).await.unwrap().items, []);
    let mut names: Vec<_> = told.all().into_iter().map(|(_, expired)| expired.key.to_string()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), KEYS);
}

/// A renewal and the next attempt of an earlier end wait for the same commit, and the key is let go after the first of them.
#[tokio::test(start_paused = true)]
async fn what_follows_a_commit_that_has_more_of_the_same_key_is_not_dropped() {
    let (told, store, gate) = (Told::new(), Memory::new(), Gate::default());
    let engine = told_by(&store, told.answering(down_for(1))).start().await.unwrap();
    put(&engine, "k", SECOND).await;
    pass(SECOND).await;
    assert_eq!(told.lines(), ["k a1"]);
    put(&engine, "k", HOUR).await;
    store.faults().after(0, Fault::Hold(gate.clone()));
    let renewing = tokio::spawn(engine.renew("k", HOUR).into_future());
    pass(2 * SECOND).await; // the second attempt is due, and nothing is durable
    assert_eq!(told.len(), 1);
    gate.open();
    renewing.await.unwrap().unwrap();
    pass(SECOND / 10).await;
    assert_eq!(told.lines(), ["k a1", "k a2"]);
}
