//! The space of what was removed goes back to the disk while the store is open, and nothing else is changed by that.

use crate::fixture::{AT, claimed, database, event, events, everything, length, person};
use std::path::Path;
use std::time::Duration;
use steadfast_kernel::{EntityId, RunId, Status, Timestamp};
use steadfast_store::{Batch, Forgotten, RunRow, Store, Sweep, Swept};
use steadfast_store_embedded::Embedded;
use tempfile::tempdir;

#[tokio::test]
async fn the_space_of_removed_runs_goes_back_to_the_disk() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    let ended_at = Timestamp::from_micros(AT);
    let mut batch = everything(1);
    batch.runs =
        vec![RunRow { status: Status::Completed, ended_at: Some(ended_at), run: RunId::new("old").unwrap(), ..batch.runs[0].clone() }];
    store.commit(batch).await.unwrap();
    for seq in 2..=50 {
        let mut batch = event(seq, vec![b'1'; 200_000]);
        batch.events[0].entity = RunId::new("old").unwrap().into();
        batch.events[0].record.seq = seq;
        store.commit(batch).await.unwrap();
        store.commit(event_after(seq)).await.unwrap();
    }
    let mut left = 1;
    while left > 0 {
        let swept = store.sweep(0, 1, &[Sweep { entity: RunId::new("old").unwrap().into(), ended_at }]).await.unwrap();
        left = usize::from(swept == [Swept::Half]);
    }
    becomes_small(dir.path());
    assert_eq!(events(&store).await, 50);
    drop(store);
    let check: String = person(dir.path()).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    assert_eq!(events(&claimed(dir.path()).await).await, 50);
}

/// Of a key with many large values: first the beginning, then the rest.
#[tokio::test]
async fn the_space_of_forgotten_journals_goes_back_to_the_disk() {
    let dir = tempdir().unwrap();
    let store = claimed(dir.path()).await;
    let entity = EntityId::from_stored("key:session/17").unwrap();
    for seq in 1..=50 {
        let mut batch = event(seq, vec![b'1'; 200_000]);
        batch.events[0].entity = entity.clone();
        store.commit(batch).await.unwrap();
        store.commit(event_after(seq)).await.unwrap();
    }
    drop(store);
    assert!(length(&database(dir.path())) > 8_000_000, "there is nothing to give back");
    let store = Embedded::open(dir.path()).unwrap();
    for before in [Some(40), None] {
        let forgotten = vec![Forgotten { entity: entity.clone(), before }];
        store.commit(Batch { forgotten, ..Batch::default() }).await.unwrap();
    }
    becomes_small(dir.path());
    assert_eq!(events(&store).await, 50);
    drop(store);
    let check: String = person(dir.path()).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

fn becomes_small(dir: &Path) {
    let mut tries = 0;
    while length(&database(dir)) > 4_000_000 {
        tries += 1;
        assert!(tries < 2_000, "the file has {} bytes", length(&database(dir)));
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Between the large entries of the one run are small ones of another, which have to be moved.
fn event_after(seq: u64) -> Batch {
    let mut batch = event(seq, "1");
    batch.fences.clear();
    batch
}
