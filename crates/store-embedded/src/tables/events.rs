//! `events`: the journals of all entities.

use super::{count, feed, integer, limit as rows, parsed, placeholders, time};
use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Error, ErrorCode, Row, Statement};
use std::sync::LazyLock;
use steadfast_kernel::{Encoding, EntityId, Payload, Record, Seq};
use steadfast_store::{Append, Forgotten};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE events (
  position   INTEGER PRIMARY KEY, -- order of writing, over all entities
  entity     TEXT NOT NULL,       -- a run's id, or limit:KEY or letters:WORKFLOW
  seq        INTEGER NOT NULL,
  epoch      INTEGER NOT NULL,
  type       TEXT NOT NULL,
  at         INTEGER NOT NULL,    -- microseconds since 1970, UTC
  subject    TEXT,
  attempt    INTEGER,
  backoff_ms INTEGER,
  reason     TEXT,
  encoding   TEXT,
  payload    ANY,                 -- the user's bytes: TEXT if people can read it, otherwise BLOB
  body       BLOB NOT NULL,       -- protobuf
  UNIQUE (entity, seq)
) STRICT",
    "CREATE VIEW journal AS
SELECT entity AS run, seq, strftime('%Y-%m-%dT%H:%M:%S', at / 1000000, 'unixepoch') || printf('.%06dZ', at % 1000000) AS time,
  type, subject, attempt, backoff_ms, reason, payload
FROM events WHERE instr(entity, ':') = 0 ORDER BY run, seq",
    "CREATE VIEW other_journals AS
SELECT entity, seq, strftime('%Y-%m-%dT%H:%M:%S', at / 1000000, 'unixepoch') || printf('.%06dZ', at % 1000000) AS time,
  type, attempt, reason, payload
FROM events WHERE instr(entity, ':') > 0 ORDER BY entity, seq",
];

/// Values by number, here and in the rows of runs: to look their names up took a twelfth of the
/// time of a commit with many. With `FAIL`, SQLite does not prepare to undo one statement: whoever
/// commits undoes everything.
const APPEND: &str =
    "INSERT OR FAIL INTO events (entity, seq, epoch, type, at, subject, attempt, backoff_ms, reason, encoding, payload, body) VALUES ";

/// Appends one entry at a given position. SQLite gives positions by itself for less: a given one is
/// searched for first, and a statement of many entries prepares to be undone.
const APPEND_AT: &str = "INSERT OR FAIL INTO events
(entity, seq, epoch, type, at, subject, attempt, backoff_ms, reason, encoding, payload, body, position)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

const COLUMNS: usize = 12;

/// How many entries are written by one statement, where there are so many: beginning and ending one
/// takes as long as an entry.
const MANY: usize = 16;

static APPEND_ONE: LazyLock<String> = LazyLock::new(|| append_sql(1));

static APPEND_MANY: LazyLock<String> = LazyLock::new(|| append_sql(MANY));

/// What is left of a run that is being removed is no journal.
const JOURNAL: &str = "SELECT seq, epoch, type, at, subject, attempt, backoff_ms, reason, encoding, payload, body
FROM events WHERE entity = ?1 AND seq > ?2 AND NOT EXISTS (SELECT 1 FROM swept WHERE run = ?1) ORDER BY seq LIMIT ?3";

fn append_sql(entries: usize) -> String {
    format!("{APPEND}{}", placeholders(entries, COLUMNS))
}

const FORGET: &str = "DELETE FROM events WHERE entity = ?1 AND seq < ?2";

/// Removes a journal, or the beginning of one.
pub(crate) fn forget(db: &Connection, Forgotten { entity, before }: &Forgotten) -> rusqlite::Result<()> {
    let before = before.map_or(i64::MAX, integer);
    db.prepare_cached(FORGET)?.execute((entity.to_string(), before)).map(drop)
}

/// What could not be appended.
pub(crate) struct Failed<'a> {
    /// The entry that is there already, if that is why.
    pub(crate) there: Option<&'a Append>,
    pub(crate) error: rusqlite::Error,
}

/// Adds entries to journals, in the places after the last one.
pub(crate) fn append<'a>(db: &Connection, entries: &'a [Append]) -> Result<(), Failed<'a>> {
    let other = |error| Failed { there: None, error };
    let [first, rest @ ..] = entries else { return Ok(()) };
    let Some(last) = feed::removed_last(db).map_err(other)? else { return append_next(db, entries) };
    let mut statement = db.prepare_cached(APPEND_AT).map_err(other)?;
    statement.raw_bind_parameter(COLUMNS + 1, last + 1).map_err(other)?;
    insert(db, &mut statement, std::slice::from_ref(first))?;
    append_next(db, rest)
}

/// Adds entries in the places after that of the last row.
fn append_next<'a>(db: &Connection, entries: &'a [Append]) -> Result<(), Failed<'a>> {
    let (many, few) = entries.as_chunks::<MANY>();
    let few = few.iter().map(std::slice::from_ref);
    for (sql, entries) in many.iter().map(|many| (&APPEND_MANY, &many[..])).chain(few.map(|one| (&APPEND_ONE, one))) {
        let mut statement = db.prepare_cached(sql).map_err(|error| Failed { there: None, error })?;
        insert(db, &mut statement, entries)?;
    }
    Ok(())
}

fn insert<'a>(db: &Connection, statement: &mut Statement<'_>, entries: &'a [Append]) -> Result<(), Failed<'a>> {
    for (nth, append) in entries.iter().enumerate() {
        bind(statement, nth * COLUMNS, append).map_err(|error| Failed { there: None, error })?;
    }
    if let Err(error) = statement.raw_execute() {
        let is_there = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
        let written = usize::try_from(db.changes()).unwrap_or_default(); // those before it
        return Err(Failed { there: entries.get(written).filter(|_| is_there), error });
    }
    Ok(())
}

fn bind(statement: &mut Statement<'_>, after: usize, append: &Append) -> rusqlite::Result<()> {
    let Append { entity, record, .. } = append;
    let payload = record.payload.as_ref();
    statement.raw_bind_parameter(after + 1, entity.stored())?;
    statement.raw_bind_parameter(after + 2, integer(record.seq))?;
    statement.raw_bind_parameter(after + 3, record.epoch)?;
    statement.raw_bind_parameter(after + 4, &record.kind)?;
    statement.raw_bind_parameter(after + 5, record.at.as_micros())?;
    statement.raw_bind_parameter(after + 6, &record.subject)?;
    statement.raw_bind_parameter(after + 7, record.attempt)?;
    statement.raw_bind_parameter(after + 8, record.backoff_ms.map(u64::cast_signed))?; // comes back exactly, however large
    statement.raw_bind_parameter(after + 9, &record.reason)?;
    statement.raw_bind_parameter(after + 10, payload.map(|payload| payload.encoding.as_str()))?;
    statement.raw_bind_parameter(after + 11, payload.map(stored))?;
    statement.raw_bind_parameter(after + 12, &record.body[..])
}

/// An entity's journal from the entry after that one.
pub(crate) fn journal(db: &Connection, entity: &EntityId, after: Seq, limit: usize) -> rusqlite::Result<Vec<Record>> {
    let mut statement = db.prepare_cached(JOURNAL)?;
    statement.query_map((entity.to_string(), integer(after), rows(limit)), record)?.collect()
}

pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        seq: count(row, "seq")?,
        epoch: row.get("epoch")?,
        kind: row.get("type")?,
        at: time(row, "at")?,
        subject: row.get("subject")?,
        attempt: row.get("attempt")?,
        backoff_ms: row.get::<_, Option<i64>>("backoff_ms")?.map(i64::cast_unsigned),
        reason: row.get("reason")?,
        payload: payload(row)?,
        body: row.get::<_, Vec<u8>>("body")?.into(),
    })
}

/// JSON as text, so that `sqlite3` shows it and its JSON functions work. What is not text stays
/// bytes; so does text with a NUL, which would be shown cut off.
pub(super) fn stored(payload: &Payload) -> ToSqlOutput<'_> {
    let bytes = &payload.bytes[..];
    let readable = payload.encoding == Encoding::Json && !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
    ToSqlOutput::Borrowed(if readable { ValueRef::Text(bytes) } else { ValueRef::Blob(bytes) })
}

/// The exact bytes, whichever way they were stored.
pub(super) fn payload(row: &Row<'_>) -> rusqlite::Result<Option<Payload>> {
    let bytes = match row.get_ref("payload")? {
        ValueRef::Null => return Ok(None),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Bytes::copy_from_slice(bytes),
        other => return Err(Error::FromSqlConversionFailure(0, other.data_type(), "a payload that is neither text nor bytes".into())),
    };
    Ok(Some(Payload { encoding: parsed(row, "encoding", Encoding::parse)?, bytes }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;
    use rusqlite::types::Type;

    #[test]
    fn a_journal_is_read_by_its_index() {
        let plan = plan(&database(), JOURNAL, ("a", 0, 10));
        assert!(plan.starts_with("SEARCH events USING INDEX sqlite_autoindex_events_1 (entity=? AND seq>?)\nSCALAR SUBQUERY"), "{plan}");
        assert!(plan.ends_with("SEARCH swept USING PRIMARY KEY (run=?)"), "{plan}");
    }

    #[test]
    fn a_journal_is_forgotten_by_its_index() {
        let plan = plan(&database(), FORGET, ("a", 3));
        assert_eq!(plan, "SEARCH events USING INDEX sqlite_autoindex_events_1 (entity=? AND seq<?)");
    }

    #[test]
    fn only_what_people_can_read_is_stored_as_text() {
        let kind = |bytes: &'static [u8]| match stored(&Payload::json(bytes)) {
            ToSqlOutput::Borrowed(value) => value.data_type(),
            _ => Type::Null,
        };
        assert_eq!(kind(b"{\"a\":1}"), Type::Text);
        assert_eq!(kind(b""), Type::Text);
        assert_eq!(kind(b"\"\0\""), Type::Blob);
        assert_eq!(kind(b"\xff"), Type::Blob);
    }

    #[test]
    fn an_unknown_encoding_is_named_and_not_shown() {
        let db = database();
        let insert = "INSERT INTO events (entity, seq, epoch, type, at, encoding, payload, body) VALUES ('a', 1, 1, 'X', 0, 'secret', 'secret', x'')";
        db.execute(insert, []).unwrap();
        let error = journal(&db, &EntityId::from_stored("a").unwrap(), 0, 1).unwrap_err().to_string();
        assert!(error.contains("column encoding") && !error.contains("secret"), "{error}");
    }
}
