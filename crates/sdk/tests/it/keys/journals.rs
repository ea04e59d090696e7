//! The journals of keys do not grow for ever, and nothing that is still to be known is lost with what is removed.
//!
//! Subject: `crates/runtime/src/shard/keys.rs`.

use super::{Told, down_for, pass, put, told_by};
use futures_util::FutureExt;
use steadfast::memory::Memory;
use steadfast::{EntityId, HOUR, KeyName, MINUTE, SECOND, Store};

fn entries(store: &Memory, key: &str) -> usize {
    let entity = EntityId::Key(KeyName::new(key).unwrap());
    store.journal(&entity, 0, 100_000).now_or_never().unwrap().unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_changed_again_and_again_has_a_short_journal_and_outlives_a_restart() {
    for changes in [1, 63, 64, 65, 127, 128, 129, 1000] {
        let (told, store) = (Told::new(), Memory::new());
        let first = told_by(&store, told.handler()).start().await.unwrap();
        for _ in 0..changes {
            first.put("k", &7).ttl(SECOND).await.unwrap();
        }
        for _ in 0..changes {
            first.renew("k", HOUR).await.unwrap();
        }
        let kept = entries(&store, "k");
        assert!(kept >= (2 * changes).min(64) && kept <= 3 * 64, "{kept} of {} are kept", 2 * changes);
        drop(first);
        let second = told_by(&store.reopen(), told.handler()).start().await.unwrap();
        assert_eq!(second.get("k").await.unwrap().unwrap().value::<u32>().unwrap(), 7);
        second.renew("k", SECOND).await.unwrap();
        pass(SECOND).await;
        assert_eq!(told.lines(), ["k a1"], "{changes}");
    }
}

#[tokio::test(start_paused = true)]
async fn ends_that_are_still_to_be_told_outlive_all_changes_of_their_key() {
    let (told, store) = (Told::new(), Memory::new());
    let first = told_by(&store, told.answering(down_for(3))).start().await.unwrap();
    put(&first, "k", SECOND).await;
    pass(SECOND).await;
    for _ in 0..300 {
        put(&first, "k", HOUR).await;
    }
    drop(first);
    let second = told_by(&store.reopen(), told.answering(down_for(3))).start().await.unwrap();
    pass(MINUTE).await;
    assert_eq!(told.lines(), ["k a1", "k a2", "k a3", "k a4"]);
    assert!(second.get("k").await.unwrap().is_some());
}
