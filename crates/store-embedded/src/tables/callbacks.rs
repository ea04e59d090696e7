//! `callbacks`: ends of keys that are to be told, as far as lists show them. Their bytes are in the journals of their keys.

use super::keys::past;
use super::{count, integer, limit as rows, parsed, time};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Error, Row, named_params, params};
use steadfast_kernel::{Failure, KeyName, Timestamp};
use steadfast_store::{CallbackChange, CallbackCursor, CallbackFilter, CallbackRow, ShardId};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE callbacks (
  key      TEXT NOT NULL,
  revision INTEGER NOT NULL, -- that ended
  shard    INTEGER NOT NULL,
  ended_at INTEGER NOT NULL, -- microseconds since 1970, UTC
  target   TEXT NOT NULL,
  attempt  INTEGER NOT NULL, -- to come, or in flight
  next_at  INTEGER,          -- when it is due; NULL if it is the first
  attempts INTEGER,          -- how many there are in all
  reason   TEXT,             -- why the attempt before it failed
  failure  BLOB,             -- all of it, as protobuf
  PRIMARY KEY (key, revision)
) STRICT, WITHOUT ROWID",
    "CREATE INDEX callbacks_time ON callbacks (ended_at, key, revision, shard)", // with the shard, so that counting reads nothing else
    "CREATE VIEW pending_callbacks AS
SELECT key || '/' || revision AS callback, strftime('%Y-%m-%dT%H:%M:%SZ', ended_at / 1000000, 'unixepoch') AS ended, target, attempt,
  strftime('%Y-%m-%dT%H:%M:%SZ', next_at / 1000000, 'unixepoch') AS next, reason
FROM callbacks ORDER BY ended_at, key, revision",
];

/// Values by number, as in `events`: many ends are put by one commit.
const PUT: &str = "INSERT OR REPLACE INTO callbacks (key, revision, shard, ended_at, target, attempt, next_at, attempts, reason, failure)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

const REMOVE: &str = "DELETE FROM callbacks WHERE key = ?1 AND revision = ?2";

/// What is shown in order need not be sorted; what the filter leaves out is skipped. With the `+`, names are not looked for by the primary key,
/// which has another order.
const LIST: &str = "SELECT * FROM callbacks WHERE (ended_at, key, revision) > (:ended_at, :key, :revision)
AND (:shard IS NULL OR shard = :shard) AND (:first = 0 OR next_at IS NULL) AND +key >= :from AND +key < :upto
ORDER BY ended_at, key, revision LIMIT :limit";

const COUNT: &str = "SELECT count(*) FROM callbacks WHERE shard = ?1";

/// Puts or removes.
pub(crate) fn change(db: &Connection, change: &CallbackChange) -> rusqlite::Result<()> {
    match change {
        CallbackChange::Put(row) => put(db, row),
        CallbackChange::Remove(key, revision) => db.prepare_cached(REMOVE)?.execute((key.as_str(), integer(*revision))).map(drop),
    }
}

fn put(db: &Connection, row: &CallbackRow) -> rusqlite::Result<()> {
    let failure = row.failure.as_ref().map(Failure::encode);
    let params = params![
        row.key.as_str(),
        integer(row.revision),
        row.shard,
        row.ended_at.as_micros(),
        row.target,
        row.attempt,
        row.next_at.map(Timestamp::as_micros),
        row.of,
        row.failure.as_ref().map(|failure| &failure.message),
        failure.as_deref(),
    ];
    db.prepare_cached(PUT)?.execute(params).map(drop)
}

/// Ends of keys, those that have waited for longest first, from the one after that place.
pub(crate) fn list(
    db: &Connection,
    filter: &CallbackFilter,
    after: Option<&CallbackCursor>,
    limit: usize,
) -> rusqlite::Result<Vec<CallbackRow>> {
    let params = named_params! {
        ":ended_at": after.map_or(i64::MIN, |after| after.ended_at.as_micros()),
        ":key": after.map_or("", |after| after.key.as_str()),
        ":revision": after.map_or(0, |after| integer(after.revision)),
        ":shard": filter.shard,
        ":first": filter.first,
        ":from": filter.prefix,
        ":upto": past(&filter.prefix),
        ":limit": rows(limit),
    };
    db.prepare_cached(LIST)?.query_map(params, row)?.collect()
}

/// How many there are.
pub(crate) fn count_of(db: &Connection, shard: ShardId) -> rusqlite::Result<u64> {
    let count: i64 = db.prepare_cached(COUNT)?.query_row([shard], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

fn row(row: &Row<'_>) -> rusqlite::Result<CallbackRow> {
    Ok(CallbackRow {
        shard: row.get("shard")?,
        key: parsed(row, "key", |key| KeyName::new(key).ok())?,
        revision: count(row, "revision")?,
        ended_at: time(row, "ended_at")?,
        target: row.get("target")?,
        attempt: row.get("attempt")?,
        next_at: row.get::<_, Option<i64>>("next_at")?.map(Timestamp::from_micros),
        of: row.get("attempts")?,
        failure: failure(row)?,
    })
}

fn failure(row: &Row<'_>) -> rusqlite::Result<Option<Failure>> {
    let unreadable = || Error::FromSqlConversionFailure(0, Type::Blob, "a failure that cannot be read".into());
    match row.get_ref("failure")? {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(bytes) => Failure::decode(bytes).map(Some).ok_or_else(unreadable),
        _ => Err(unreadable()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn callbacks_are_read_in_order_without_sorting() {
        let params = named_params! {
            ":ended_at": 0, ":key": "", ":revision": 0, ":shard": 0, ":first": true, ":from": "", ":upto": "b", ":limit": 10,
        };
        let plan = plan(&database(), LIST, params);
        assert!(plan.starts_with("SEARCH callbacks USING INDEX callbacks_time ((ended_at,key,revision)>(?,?,?))"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }

    #[test]
    fn callbacks_are_counted_and_removed_by_an_index() {
        assert_eq!(plan(&database(), COUNT, [0]), "SCAN callbacks USING COVERING INDEX callbacks_time");
        assert_eq!(plan(&database(), REMOVE, ("a", 1)), "SEARCH callbacks USING PRIMARY KEY (key=? AND revision=?)");
    }

    #[test]
    fn a_failure_of_a_callback_that_cannot_be_read_is_not_shown() {
        let db = database();
        db.execute("INSERT INTO callbacks VALUES ('a', 1, 0, 1, 'secret', 1, 1, 1, 'secret', x'ff')", [])
            .unwrap();
        let error = list(&db, &CallbackFilter::default(), None, 1).unwrap_err().to_string();
        assert!(error.contains("a failure that cannot be read") && !error.contains("secret"), "{error}");
    }
}
