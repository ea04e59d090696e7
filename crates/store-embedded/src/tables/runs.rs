//! `runs`: what lists and recovery need to know of a run.

use super::{limit as rows, parsed, time};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use steadfast_kernel::{RunId, Status, Timestamp, WorkflowName};
use steadfast_store::{RunRow, ShardId};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE runs (
  run        TEXT PRIMARY KEY,
  shard      INTEGER NOT NULL,
  workflow   TEXT NOT NULL,
  status     TEXT NOT NULL,
  wait       TEXT,
  started_at INTEGER NOT NULL, -- microseconds since 1970, UTC
  ended_at   INTEGER           -- null while it is open
) STRICT, WITHOUT ROWID",
    "CREATE INDEX runs_open ON runs (shard, run) WHERE ended_at IS NULL",
    "CREATE VIEW open_runs AS
SELECT run, workflow, status, wait, strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000000, 'unixepoch') AS started
FROM runs WHERE ended_at IS NULL ORDER BY run",
];

const PUT: &str = "INSERT OR REPLACE INTO runs (run, shard, workflow, status, wait, started_at, ended_at)
VALUES (:run, :shard, :workflow, :status, :wait, :started_at, :ended_at)";

const GET: &str = "SELECT run, shard, workflow, status, wait, started_at, ended_at FROM runs WHERE run = ?1";

const OPEN: &str = "SELECT run, shard, workflow, status, wait, started_at, ended_at
FROM runs WHERE ended_at IS NULL AND shard = ?1 AND run > ?2 ORDER BY run LIMIT ?3";

/// Puts a row; it replaces the one before.
pub(crate) fn put(db: &Connection, row: &RunRow) -> rusqlite::Result<()> {
    let params = named_params! {
        ":run": row.run.as_str(),
        ":shard": row.shard,
        ":workflow": row.workflow.as_str(),
        ":status": row.status.as_str(),
        ":wait": row.wait,
        ":started_at": row.started_at.as_micros(),
        ":ended_at": row.ended_at.map(Timestamp::as_micros),
    };
    db.prepare_cached(PUT)?.execute(params).map(drop)
}

/// The row of a run.
pub(crate) fn get(db: &Connection, run: &RunId) -> rusqlite::Result<Option<RunRow>> {
    db.prepare_cached(GET)?.query_row([run.as_str()], row).optional()
}

/// The open runs of a shard from the one after that id.
pub(crate) fn open(db: &Connection, shard: ShardId, after: Option<&RunId>, limit: usize) -> rusqlite::Result<Vec<RunRow>> {
    let after = after.map_or("", RunId::as_str); // every id comes after the empty text
    db.prepare_cached(OPEN)?.query_map((shard, after, rows(limit)), row)?.collect()
}

fn row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        shard: row.get("shard")?,
        run: parsed(row, "run", |id| RunId::new(id).ok())?,
        workflow: parsed(row, "workflow", |name| WorkflowName::new(name).ok())?,
        status: parsed(row, "status", Status::parse)?,
        wait: row.get("wait")?,
        started_at: time(row, "started_at")?,
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(Timestamp::from_micros),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn open_runs_are_found_without_looking_at_ended_ones() {
        assert_eq!(plan(&database(), OPEN, (0, "", 10)), "SEARCH runs USING INDEX runs_open (shard=? AND run>?)");
    }
}
