//! The suite that every store must pass.

use crate::fixture::Database;
use async_trait::async_trait;
use steadfast_storage_testkit::contract::Harness;
use steadfast_store_postgres::Postgres;

#[async_trait]
impl Harness for Database {
    type Store = Postgres;

    async fn open(&self) -> Postgres {
        Database::open(self).await
    }
}

steadfast_storage_testkit::contract_tests!(Database::new());

#[tokio::test]
async fn random_operations_have_the_outcomes_of_the_reference_store() {
    steadfast_storage_testkit::differential::random_operations_have_the_outcomes_of_the_reference_store(Database::new).await;
}
