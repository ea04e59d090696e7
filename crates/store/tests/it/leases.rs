//! The leases of the reference store pass the suite, and what only they have.

use async_trait::async_trait;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::Timestamp;
use steadfast_storage_testkit::contract::leases::LeaseHarness;
use steadfast_store::memory::{Memory, MemoryLeases};
use steadfast_store::{Heard, Leases, Member};

struct InMemory {
    store: Memory,
    leases: MemoryLeases,
    time: Arc<Mutex<Timestamp>>,
}

impl InMemory {
    fn new() -> Self {
        let (store, time) = (Memory::of_shards(64), Arc::new(Mutex::new(Timestamp::EPOCH)));
        let now = Arc::clone(&time);
        let leases = MemoryLeases::new(&store, Duration::from_secs(10), move || *now.lock());
        InMemory { store, leases, time }
    }
}

#[async_trait]
impl LeaseHarness for InMemory {
    type Leases = MemoryLeases;
    type Store = Memory;

    async fn instance(&self) -> (MemoryLeases, Memory) {
        let store = self.store.another();
        (self.leases.of_another(&store), store)
    }

    async fn pass(&self, time: Duration) {
        let mut now = self.time.lock();
        *now = now.saturating_add(time);
    }

    async fn heard(&self, leases: &MemoryLeases) -> Heard {
        tokio::time::timeout(Duration::from_secs(60), leases.heard()).await.unwrap()
    }
}

steadfast_storage_testkit::lease_contract_tests!(InMemory::new());

#[tokio::test]
async fn one_that_has_crashed_says_nothing_and_the_others_go_on() {
    let data = InMemory::new();
    let ((first, crashed), (second, _store)) = (data.instance().await, data.instance().await);
    let member = |id: &str| Member { id: id.into(), name: id.into(), address: id.into(), version: "1.0.0".into() };
    first.join(&member("a")).await.unwrap();
    second.join(&member("b")).await.unwrap();
    assert_eq!(first.claim("a", 64, &[]).await.unwrap().len(), 64);
    crashed.crash();
    assert!(first.beat("a").await.is_err() && first.claim("a", 1, &[]).await.is_err());
    data.pass(first.lease()).await;
    assert_eq!(second.beat("b").await.unwrap().unwrap().instances, 1);
    assert_eq!(second.claim("b", 64, &[]).await.unwrap().len(), 64);
}

#[test]
#[should_panic(expected = "another store")]
fn leases_are_of_one_store() {
    let _other = InMemory::new().leases.of_another(&Memory::of_shards(64));
}
