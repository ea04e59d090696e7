//! What reads show: never a key past its time, whatever is on record.
//!
//! Subject: `crates/runtime/src/engine/keys.rs`.

use super::{config, pass, put};
use crate::support::engine;
use steadfast::memory::Memory;
use steadfast::{HOUR, Role, SECOND};
use tokio::sync::watch;

/// On a follower nothing expires by itself, so that the store still has what reads must not show.
#[tokio::test(start_paused = true)]
async fn a_key_past_its_time_is_not_there_though_its_expiry_is_not_on_record() {
    let (_roles, follower) = watch::channel(Role::Follower);
    let engine = engine(&Memory::new()).config(config()).leadership(follower).start().await.unwrap();
    let first = put(&engine, "k", SECOND).await;
    put(&engine, "other", HOUR).await;
    tokio::time::sleep(SECOND - std::time::Duration::from_millis(1)).await;
    assert!(engine.get("k").await.unwrap().is_some(), "not a moment too early");
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    assert_eq!(engine.get("k").await.unwrap(), None);
    assert_eq!(engine.keys("").await.unwrap().items.len(), 1);
    assert_eq!(engine.renew("k", HOUR).await.unwrap_err().code(), "SF0117");
    assert_eq!(engine.delete("k").await.unwrap_err().code(), "SF0117");
    assert_eq!(engine.put("k", &1).ttl(HOUR).if_revision(first).await.unwrap_err().code(), "SF0119");
    assert!(engine.put("k", &1).ttl(HOUR).if_absent().await.unwrap().revision > first);
}

#[tokio::test(start_paused = true)]
async fn lists_go_page_by_page_by_name() {
    let engine = engine(&Memory::new()).start().await.unwrap();
    for number in [3, 1, 4, 0, 2] {
        put(&engine, &format!("a{number}"), if number == 2 { SECOND } else { HOUR }).await;
    }
    put(&engine, "b", HOUR).await;
    pass(SECOND).await;
    let (mut seen, mut next): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let list = engine.keys("a").limit(2);
        let page = if let Some(cursor) = &next { list.after(cursor) } else { list }.await.unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items.iter().map(|held| held.key.to_string()));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["a0", "a1", "a3", "a4"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_key_holds_outlives_the_process() {
    let store = Memory::new();
    let first = engine(&store).start().await.unwrap();
    first.put("k", &vec![1, 2, 3]).ttl(HOUR).owner("ada").await.unwrap();
    let before = first.get("k").await.unwrap().unwrap();
    drop(first);
    let second = engine(&store.reopen()).start().await.unwrap();
    let after = second.get("k").await.unwrap().unwrap();
    assert_eq!(after, before);
    assert_eq!(after.value::<Vec<u32>>().unwrap(), [1, 2, 3]);
    assert_eq!(after.value::<String>().unwrap_err().code(), "SF0107");
}

#[tokio::test(start_paused = true)]
async fn callbacks_are_listed_page_by_page_oldest_first() {
    let told = super::Told::new();
    let engine = super::told_by(&Memory::new(), told.answering(super::down_for(5))).start().await.unwrap();
    for number in 0..5_u32 {
        put(&engine, &format!("k{}", 4 - number), SECOND + number * SECOND / 100).await;
    }
    pass(2 * SECOND).await;
    let (mut seen, mut next): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let page = engine.callbacks("k", next.as_deref(), 2).await.unwrap();
        seen.extend(page.items.iter().map(|row| row.key.to_string()));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["k4", "k3", "k2", "k1", "k0"]);
    assert_eq!(engine.callbacks("k", Some("nonsense"), 2).await.unwrap_err().code(), "SF0110");
}
