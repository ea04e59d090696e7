//! The reference store passes the suite.

use async_trait::async_trait;
use parking_lot::Mutex;
use steadfast_storage_testkit::contract::Harness;
use steadfast_store::memory::Memory;

#[derive(Default)]
struct InMemory(Mutex<Memory>);

#[async_trait]
impl Harness for InMemory {
    type Store = Memory;

    async fn open(&self) -> Memory {
        let mut store = self.0.lock();
        *store = store.reopen();
        store.clone()
    }
}

steadfast_storage_testkit::contract_tests!(InMemory::default());
