//! The embedded store passes the suite.

use async_trait::async_trait;
use steadfast_storage_testkit::contract::Harness;
use steadfast_store_embedded::Embedded;
use tempfile::TempDir;

struct OnDisk(TempDir);

impl OnDisk {
    fn new() -> Self {
        OnDisk(tempfile::tempdir().unwrap())
    }
}

#[async_trait]
impl Harness for OnDisk {
    type Store = Embedded;

    async fn open(&self) -> Embedded {
        Embedded::open(self.0.path()).unwrap()
    }
}

steadfast_storage_testkit::contract_tests!(OnDisk::new());

#[tokio::test]
async fn random_operations_have_the_outcomes_of_the_reference_store() {
    steadfast_storage_testkit::differential::random_operations_have_the_outcomes_of_the_reference_store(OnDisk::new).await;
}
