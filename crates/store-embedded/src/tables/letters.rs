//! `letters`: the dead letters, as far as lists show them. Their bytes are in the journals of their boxes and keys.
//!
//! Since there are keys, `workflow` is where a letter is kept: a workflow or `key:KEY`. The letter of an expiry has `key:KEY` as its run and the revision as its step.

use super::{count, integer, limit as rows, parsed, time};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Error, OptionalExtension, Row, named_params};
use steadfast_kernel::{EntityId, Failure, LetterAbout, LetterHome, LetterId, StepId};
use steadfast_store::{LetterChange, LetterCursor, LetterRow};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE letters (
  workflow TEXT NOT NULL,    -- whose box it is in
  seq      INTEGER NOT NULL, -- the sequence of its arrival there
  shard    INTEGER NOT NULL,
  run      TEXT NOT NULL,
  step     TEXT NOT NULL,
  tenant   TEXT,
  class    TEXT NOT NULL,
  code     TEXT NOT NULL,
  message  TEXT NOT NULL,
  failure  BLOB NOT NULL,    -- all of it, as protobuf
  added_at INTEGER NOT NULL, -- microseconds since 1970, UTC
  PRIMARY KEY (workflow, seq)
) STRICT, WITHOUT ROWID",
    "CREATE INDEX letters_time ON letters (added_at, workflow, seq)",
    "CREATE VIEW dead_letters AS
SELECT workflow || '.' || seq AS letter, strftime('%Y-%m-%dT%H:%M:%SZ', added_at / 1000000, 'unixepoch') AS added,
  run, step, tenant, class, code, message
FROM letters ORDER BY added_at DESC, workflow DESC, seq DESC",
];

const PUT: &str = "INSERT OR REPLACE INTO letters (workflow, seq, shard, run, step, tenant, class, code, message, failure, added_at)
VALUES (:workflow, :seq, :shard, :run, :step, :tenant, :class, :code, :message, :failure, :added_at)";

const REMOVE: &str = "DELETE FROM letters WHERE workflow = ?1 AND seq = ?2";

const GET: &str = "SELECT * FROM letters WHERE workflow = ?1 AND seq = ?2";

const LIST: &str = "SELECT * FROM letters WHERE (added_at, workflow, seq) < (:added_at, :workflow, :seq)
ORDER BY added_at DESC, workflow DESC, seq DESC LIMIT :limit";

/// Puts or removes.
pub(crate) fn change(db: &Connection, change: &LetterChange) -> rusqlite::Result<()> {
    match change {
        LetterChange::Put(row) => put(db, row),
        LetterChange::Remove(letter) => db.prepare_cached(REMOVE)?.execute(key(letter)).map(drop),
    }
}

fn put(db: &Connection, row: &LetterRow) -> rusqlite::Result<()> {
    let (workflow, seq) = key(&row.letter);
    let (run, step) = match &row.about {
        LetterAbout::Step { run, step } => (run.to_string(), step.to_string()),
        LetterAbout::Expiry { key, revision } => (EntityId::Key(key.clone()).to_string(), revision.to_string()),
    };
    let params = named_params! {
        ":workflow": workflow,
        ":seq": seq,
        ":shard": row.shard,
        ":run": run,
        ":step": step,
        ":tenant": row.tenant,
        ":class": row.failure.class.as_str(),
        ":code": row.failure.code.as_str(),
        ":message": row.failure.message,
        ":failure": &row.failure.encode()[..],
        ":added_at": row.added_at.as_micros(),
    };
    db.prepare_cached(PUT)?.execute(params).map(drop)
}

/// A letter.
pub(crate) fn get(db: &Connection, letter: &LetterId) -> rusqlite::Result<Option<LetterRow>> {
    db.prepare_cached(GET)?.query_row(key(letter), row).optional()
}

/// Letters, newest first, from the one after that place.
pub(crate) fn list(db: &Connection, after: Option<&LetterCursor>, limit: usize) -> rusqlite::Result<Vec<LetterRow>> {
    let (workflow, seq) = after.map(|after| key(&after.letter)).unwrap_or_default();
    let params = named_params! {
        ":added_at": after.map_or(i64::MAX, |after| after.added_at.as_micros()), // no letter is that late
        ":workflow": workflow,
        ":seq": seq,
        ":limit": rows(limit),
    };
    db.prepare_cached(LIST)?.query_map(params, row)?.collect()
}

fn key(letter: &LetterId) -> (String, i64) {
    (letter.home.to_string(), integer(letter.seq))
}

fn row(row: &Row<'_>) -> rusqlite::Result<LetterRow> {
    let step: String = row.get("step")?;
    Ok(LetterRow {
        shard: row.get("shard")?,
        letter: LetterId { home: parsed(row, "workflow", LetterHome::parse)?, seq: count(row, "seq")? },
        about: parsed(row, "run", |run| about(EntityId::from_stored(run)?, &step))?,
        tenant: row.get("tenant")?,
        failure: failure(row)?,
        added_at: time(row, "added_at")?,
    })
}

fn about(entity: EntityId, step: &str) -> Option<LetterAbout> {
    match entity {
        EntityId::Run(run) => Some(LetterAbout::Step { run, step: StepId::from_stored(step) }),
        EntityId::Key(key) => Some(LetterAbout::Expiry { key, revision: step.parse().ok()? }),
        EntityId::Limit(_) | EntityId::Letters(_) | EntityId::Plan(_) | EntityId::Lock(_) => None,
    }
}

fn failure(row: &Row<'_>) -> rusqlite::Result<Failure> {
    let failure = match row.get_ref("failure")? {
        ValueRef::Blob(bytes) => Failure::decode(bytes),
        _ => None,
    };
    failure.ok_or_else(|| Error::FromSqlConversionFailure(0, Type::Blob, "a failure that cannot be read".into()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn letters_are_read_newest_first_without_sorting() {
        let params = named_params! {":added_at": 1, ":workflow": "", ":seq": 0, ":limit": 10};
        let plan = plan(&database(), LIST, params);
        assert!(plan.starts_with("SEARCH letters USING INDEX letters_time ((added_at,workflow,seq)<(?,?,?))"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }

    #[test]
    fn a_failure_that_cannot_be_read_is_not_shown() {
        let db = database();
        let insert = "INSERT INTO letters VALUES ('bill', 1, 0, 'a', 's#1', NULL, 'secret', 'secret', 'secret', x'ff', 0)";
        db.execute(insert, []).unwrap();
        let error = list(&db, None, 1).unwrap_err().to_string();
        assert!(error.contains("a failure that cannot be read") && !error.contains("secret"), "{error}");
    }
}
