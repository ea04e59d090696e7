//! When keys expire, and in which order; and what a change of a key means for its expiry.
//!
//! Subject: `crates/kernel/src/key/expire.rs`.

use super::{Told, config, down_for, pass, put, seen_next, told_by};
use crate::support::engine;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Change, DAY, HOUR, SECOND, Timestamp};

#[tokio::test(start_paused = true)]
async fn keys_expire_in_the_order_of_their_times_and_never_early() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    for (key, seconds) in [("three", 3), ("one", 1), ("two", 2)] {
        put(&engine, key, seconds * SECOND).await;
    }
    pass(4 * SECOND).await;
    assert_eq!(told.lines(), ["one a1", "two a1", "three a1"]);
    for (key, seconds) in [("one", 1), ("two", 2), ("three", 3)] {
        let time = told.times(key)[0];
        assert!(time >= seconds * SECOND && time < seconds * SECOND + SECOND / 2, "{key} was told after {time:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_of_the_same_instant_expire_in_the_order_they_were_put_and_none_is_lost() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    let mut watch = engine.watch("").await.unwrap();
    let names = ["e", "d", "c", "b", "a"];
    for key in names {
        put(&engine, key, SECOND).await;
    }
    let mut expired = Vec::new();
    let mut times = std::collections::BTreeSet::new();
    while expired.len() < names.len() {
        let watched = seen_next(&mut watch).await;
        if let Change::Expired { expired_at, .. } = watched.change {
            expired.push(watched.key.to_string());
            times.insert(expired_at);
        }
    }
    assert_eq!(times.len(), 1, "they are ties");
    assert_eq!(expired, names);
    pass(SECOND).await;
    assert_eq!(told.len(), names.len());
}

#[tokio::test(start_paused = true)]
async fn a_time_of_nothing_is_refused_and_leaves_no_trace() {
    let told = Told::new();
    let store = Memory::new();
    let engine = told_by(&store, told.handler()).start().await.unwrap();
    let commits = engine.commits();
    for ttl in [Duration::ZERO, Duration::from_nanos(999)] {
        assert_eq!(engine.put("k", &1).ttl(ttl).await.unwrap_err().code(), "SF0120", "{ttl:?}");
        assert_eq!(engine.renew("k", ttl).await.unwrap_err().code(), "SF0120", "{ttl:?}");
    }
    assert_eq!(engine.put("k", &1).await.unwrap_err().code(), "SF0120", "a key needs a time");
    pass(SECOND).await;
    assert_eq!((engine.commits(), told.len()), (commits, 0));
}

#[tokio::test(start_paused = true)]
async fn a_huge_time_saturates_and_does_not_expire_at_once() {
    let told = Told::new();
    let store = Memory::new();
    let engine = told_by(&store, told.handler()).start().await.unwrap();
    let stamp = engine.put("k", &1).ttl(Duration::MAX).await.unwrap();
    assert_eq!(stamp.expires_at, Timestamp::MAX);
    assert_eq!(engine.renew("k", Duration::MAX).await.unwrap().expires_at, Timestamp::MAX);
    pass(365 * DAY).await;
    assert!(engine.get("k").await.unwrap().unwrap().ttl > 100_000 * DAY);
    assert_eq!(told.len(), 0);
    drop(engine);
    let engine = told_by(&store.reopen(), told.handler()).start().await.unwrap();
    assert!(engine.get("k").await.unwrap().is_some(), "also after a restart");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_shortens_arms_the_expiry_anew() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    put(&engine, "k", HOUR).await;
    let renewed = engine.renew("k", SECOND).await.unwrap();
    pass(SECOND).await;
    assert_eq!(engine.get("k").await.unwrap(), None);
    assert_eq!(told.all()[0].1.revision, renewed.revision);
    pass(2 * HOUR).await;
    assert_eq!(told.lines(), ["k a1"], "the time that it had before means nothing");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_lengthens_keeps_the_key_past_its_first_time() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    put(&engine, "k", SECOND).await;
    pass(SECOND / 2).await;
    engine.renew("k", 10 * SECOND).await.unwrap();
    pass(9 * SECOND).await;
    assert!(engine.get("k").await.unwrap().is_some());
    assert_eq!(told.len(), 0);
    pass(SECOND).await;
    assert_eq!(told.lines(), ["k a1"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_put_again_while_its_callback_is_pending_lives_and_both_ends_are_told() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.answering(down_for(1))).start().await.unwrap();
    let first = put(&engine, "k", SECOND).await;
    pass(SECOND).await;
    assert_eq!(told.lines(), ["k a1"]);
    let second = put(&engine, "k", 10 * SECOND).await;
    assert!(second > first);
    pass(2 * SECOND).await;
    let heard: Vec<_> = told.all().iter().map(|(_, expired)| (expired.revision, expired.attempt)).collect();
    assert_eq!(heard, [(first, 1), (first, 2)], "the earlier end is told whatever comes after it");
    assert_eq!(engine.get("k").await.unwrap().unwrap().revision, second);
    pass(10 * SECOND).await;
    let heard: Vec<_> = told.all().iter().map(|(_, expired)| (expired.revision, expired.attempt)).collect();
    assert_eq!(heard, [(first, 1), (first, 2), (second, 1), (second, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_key_deleted_before_its_time_is_never_told_of() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    let revision = put(&engine, "k", SECOND).await;
    assert_eq!(engine.delete("k").await.unwrap(), revision);
    pass(HOUR).await;
    assert_eq!(told.len(), 0);
    assert_eq!(engine.delete("k").await.unwrap_err().code(), "SF0117");
}

#[tokio::test(start_paused = true)]
async fn deleting_a_key_whose_callback_is_pending_finds_nothing_and_the_end_is_still_told() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.answering(down_for(2))).start().await.unwrap();
    put(&engine, "k", SECOND).await;
    pass(SECOND).await;
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items.len(), 1);
    assert_eq!(engine.delete("k").await.unwrap_err().code(), "SF0117");
    put(&engine, "k", HOUR).await;
    engine.delete("k").await.unwrap();
    pass(10 * SECOND).await;
    assert_eq!(told.lines(), ["k a1", "k a2", "k a3"]);
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn a_failed_callback_is_tried_again_not_before_its_delay_and_again_after_it() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.answering(down_for(3))).start().await.unwrap();
    put(&engine, "k", SECOND).await;
    pass(SECOND + SECOND / 2).await;
    assert_eq!(told.len(), 1, "not before its delay");
    let pending = &engine.callbacks("k", None, 10).await.unwrap().items[0];
    assert_eq!((pending.attempt, pending.of, pending.target.as_str()), (2, Some(20), "handler"));
    assert_eq!(pending.failure.as_ref().unwrap().message, "down");
    assert!(pending.next_at.unwrap() >= pending.ended_at.saturating_add(SECOND));
    pass(10 * SECOND).await;
    assert_eq!(told.lines(), ["k a1", "k a2", "k a3", "k a4"]);
    let times = told.times("k");
    for (earlier, later) in times.iter().zip(&times[1..]) {
        assert!(*later - *earlier >= SECOND, "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_fifty_one_keys_that_are_due_at_once_every_one_is_told_once() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    for number in 0..51 {
        put(&engine, &format!("k{number:02}"), SECOND).await;
    }
    pass(SECOND).await;
    let mut lines = told.lines();
    lines.sort();
    assert_eq!(lines, (0..51).map(|number| format!("k{number:02} a1")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn of_eleven_that_failed_every_one_is_tried_again_once_its_delay_is_over() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.answering(down_for(1))).start().await.unwrap();
    for number in 0..11 {
        put(&engine, &format!("k{number:02}"), SECOND).await;
    }
    pass(SECOND + SECOND / 2).await;
    assert_eq!(told.len(), 11);
    pass(SECOND).await;
    assert_eq!(told.len(), 22);
    assert!(told.all()[11..].iter().all(|(time, expired)| expired.attempt == 2 && *time >= 2 * SECOND));
    pass(HOUR).await;
    assert_eq!(told.len(), 22, "and then it is over");
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_change_a_key_does_not() {
    let engine = engine(&Memory::new()).config(config()).start().await.unwrap();
    let revision = engine.put("k", &1).ttl(HOUR).owner("ada").await.unwrap().revision;
    for owner in [None, Some("bob")] {
        let (mut put, mut renew, mut delete) = (engine.put("k", &2).ttl(HOUR), engine.renew("k", HOUR), engine.delete("k"));
        if let Some(owner) = owner {
            (put, renew, delete) = (put.owner(owner), renew.owner(owner), delete.owner(owner));
        }
        let codes = [put.await.unwrap_err().code(), renew.await.unwrap_err().code(), delete.await.unwrap_err().code()];
        assert_eq!(codes, ["SF0118"; 3], "{owner:?}");
    }
    assert_eq!(engine.get("k").await.unwrap().unwrap().revision, revision);
    assert_eq!(engine.put("k", &2).ttl(HOUR).owner("ada").if_absent().await.unwrap_err().code(), "SF0119");
    assert_eq!(engine.renew("k", HOUR).owner("ada").if_revision(revision + 1).await.unwrap_err().code(), "SF0119");
    assert_eq!(engine.delete("k").owner("ada").if_revision(revision + 1).await.unwrap_err().code(), "SF0119");
    engine.delete("k").owner("ada").if_revision(revision).await.unwrap();
    let again = engine.put("k", &3).ttl(HOUR).if_absent().await.unwrap();
    assert!(again.revision > revision, "revisions do not repeat");
}
