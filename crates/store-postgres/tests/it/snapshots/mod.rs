//! Compares the schema of a new database with the committed snapshot.

use crate::fixture::Database;
use steadfast_test_snapshots::assert_snapshot;

#[tokio::test]
async fn schema_matches_snapshot() {
    let database = Database::new();
    drop(database.open().await);
    let catalogue = database.psql(include_str!("catalogue.sql"));
    assert_snapshot("schema-postgres.txt", &format!("{}\n", catalogue.trim_start()));
}
