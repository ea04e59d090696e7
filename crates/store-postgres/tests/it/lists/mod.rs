//! A million runs, and the lists that people look at.

mod letters;
mod plans;
mod runs;

use crate::fixture::Database;
use std::time::Duration;
use steadfast_store::Error;
use tokio::time::Instant;

const ALLOWED: Duration = Duration::from_millis(50);

/// A list is asked for several times, and the quickest counts: what else the machine does is none of the database's doing.
async fn quickly<T>(what: &str, rows: usize, list: impl AsyncFn() -> Result<Vec<T>, Error>) {
    let mut took = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        assert_eq!(list().await.unwrap().len(), rows, "{what}");
        took = took.min(began.elapsed());
    }
    assert!(took < ALLOWED, "{what} takes {took:?}");
}

#[tokio::test]
async fn with_a_million_runs_every_list_answers_within_50_ms() {
    let database = Database::new();
    let store = database.open().await;
    runs::make(&database);
    letters::make(&database);
    for table in ["workflow_state", "task_counts", "letters", "keys", "locks"] {
        database.psql(&format!("VACUUM ANALYZE steadfast.{table}"));
    }
    runs::are_quick(&store).await;
    plans::are_quick(&store).await;
    letters::are_quick(&store).await;
}
