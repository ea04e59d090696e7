//! `keys`: what keys hold. One that is gone stays until the keys below it have ended, too.
//!
//! Rows stand in the order of their arrival and are found by an index. In the order of their names, values of a kilobyte made the tree of names so deep that a
//! put took five times as long, and the file three times the space; with the smallest ones a put and a removal together take the same time either way.

use super::events::{payload, stored};
use super::{integer, limit as rows, parsed};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Error, Row, params};
use std::collections::BTreeSet;
use steadfast_kernel::{Held, KeyName, Timestamp};
use steadfast_store::{EndedBelow, KeyChange, KeyRow};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE keys (
  key         TEXT NOT NULL UNIQUE,
  shard       INTEGER NOT NULL,
  revision    INTEGER NOT NULL,
  owner       TEXT,
  expires_at  INTEGER NOT NULL, -- microseconds since 1970, UTC
  ended_at    INTEGER,          -- it is gone, but keys below it may still be there
  ended_below INTEGER,          -- when the last one of that name ended below which there may still be keys
  was_deleted INTEGER,          -- it was deleted then; it expired if not
  encoding    TEXT NOT NULL,
  payload     ANY NOT NULL,     -- its value: TEXT if people can read it, otherwise BLOB
  body        BLOB NOT NULL     -- all of it but the value, as protobuf
) STRICT",
    "CREATE VIEW live_keys AS
SELECT key, revision, owner, strftime('%Y-%m-%dT%H:%M:%S', expires_at / 1000000, 'unixepoch') || printf('.%06dZ', expires_at % 1000000) AS expires,
  payload AS value
FROM keys WHERE ended_at IS NULL ORDER BY key",
];

/// Values by number, as in `events`: many keys are put by one commit. A row that changes keeps its place, so the index is not written.
const PUT: &str = "INSERT INTO keys (key, shard, revision, owner, expires_at, ended_at, ended_below, was_deleted, encoding, payload, body)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT (key) DO UPDATE SET shard = ?2, revision = ?3, owner = ?4, expires_at = ?5, ended_at = ?6, ended_below = ?7, was_deleted = ?8, encoding = ?9, payload = ?10, body = ?11";

const REMOVE: &str = "DELETE FROM keys WHERE key = ?1";

const GET: &str = "SELECT key, shard, ended_at, ended_below, was_deleted, encoding, payload, body FROM keys WHERE key = ?1";

/// There is one lower bound, the name that a page begins after or the prefix: of two, SQLite would look for the one and skip what is before the other.
const LIST: &str = "SELECT key, shard, ended_at, ended_below, was_deleted, encoding, payload, body FROM keys
WHERE key >= ?1 AND key < ?2 AND key <> ?3 ORDER BY key LIMIT ?4";

/// Puts or removes.
pub(crate) fn change(db: &Connection, change: &KeyChange) -> rusqlite::Result<()> {
    match change {
        KeyChange::Put(row) => put(db, row),
        KeyChange::Remove(key) => db.prepare_cached(REMOVE)?.execute([key.as_str()]).map(drop),
    }
}

fn put(db: &Connection, KeyRow { shard, key, held, ended_at, ended_below }: &KeyRow) -> rusqlite::Result<()> {
    let params = params![
        key.as_str(),
        shard,
        integer(held.revision),
        held.owner,
        held.expires_at.as_micros(),
        ended_at.map(Timestamp::as_micros),
        ended_below.map(|ended| ended.at.as_micros()),
        ended_below.map(|ended| ended.deleted),
        held.value.encoding.as_str(),
        stored(&held.value),
        &held.encode()[..],
    ];
    db.prepare_cached(PUT)?.execute(params).map(drop)
}

/// Those of the keys that there are, by name.
pub(crate) fn get(db: &Connection, names: &[KeyName]) -> rusqlite::Result<Vec<KeyRow>> {
    let mut statement = db.prepare_cached(GET)?;
    let mut found = Vec::new();
    for name in names.iter().collect::<BTreeSet<_>>() {
        found.extend(statement.query_map([name.as_str()], row)?.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(found)
}

/// Keys by name, from the one after that.
pub(crate) fn list(db: &Connection, prefix: &str, after: Option<&KeyName>, limit: usize) -> rusqlite::Result<Vec<KeyRow>> {
    let after = after.map_or("", KeyName::as_str);
    let mut statement = db.prepare_cached(LIST)?;
    statement.query_map((prefix.max(after), past(prefix), after, rows(limit)), row)?.collect()
}

/// Comes after every name that begins so, and before those after them: names are ASCII.
pub(super) fn past(prefix: &str) -> String {
    format!("{prefix}\u{10ffff}")
}

fn row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    let wrong = || Error::FromSqlConversionFailure(0, Type::Blob, "a key that cannot be read".into());
    let time = |column| row.get::<_, Option<i64>>(column).map(|time| time.map(Timestamp::from_micros));
    let value = payload(row)?.ok_or_else(wrong)?;
    let held = match row.get_ref("body")? {
        ValueRef::Blob(bytes) => Held::decode(bytes, value),
        _ => None,
    };
    Ok(KeyRow {
        shard: row.get("shard")?,
        key: parsed(row, "key", |key| KeyName::new(key).ok())?,
        held: held.ok_or_else(wrong)?,
        ended_at: time("ended_at")?,
        ended_below: match time("ended_below")? {
            Some(at) => Some(EndedBelow { at, deleted: row.get::<_, Option<bool>>("was_deleted")?.unwrap_or_default() }),
            None => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn keys_are_read_in_order_without_sorting() {
        assert_eq!(plan(&database(), LIST, ("a", "b", "", 10)), "SEARCH keys USING INDEX sqlite_autoindex_keys_1 (key>? AND key<?)");
        assert_eq!(plan(&database(), GET, ["a"]), "SEARCH keys USING INDEX sqlite_autoindex_keys_1 (key=?)");
        assert_eq!(plan(&database(), REMOVE, ["a"]), "SEARCH keys USING INDEX sqlite_autoindex_keys_1 (key=?)");
    }

    #[test]
    fn a_key_that_changes_keeps_its_place() {
        let db = database();
        let mut statement = db.prepare(&format!("EXPLAIN {PUT}")).unwrap();
        let nothing = rusqlite::params_from_iter(vec![""; statement.parameter_count()]);
        let steps = statement.query_map(nothing, |row| row.get::<_, String>("opcode")).unwrap().map(Result::unwrap);
        assert_eq!(steps.filter(|step| step == "IdxDelete").count(), 0);
    }

    /// However many are before it.
    #[test]
    fn a_page_begins_where_the_last_one_ended() {
        let db = database();
        db.execute_batch(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5000)
             INSERT INTO keys SELECT printf('a/%05d', n), 0, 1, NULL, 1, NULL, NULL, NULL, 'json', '1', x'' FROM n",
        )
        .unwrap();
        let steps = |after: &str| {
            let mut statement = db.prepare(LIST).unwrap();
            let found = statement
                .query_map(("a/".max(after), past("a/"), after, 10), |row| row.get::<_, String>("key"))
                .unwrap();
            assert_eq!(found.map(Result::unwrap).count(), 10);
            statement.get_status(rusqlite::StatementStatus::VmStep)
        };
        let (first, later) = (steps(""), steps("a/04000"));
        assert!(later < 2 * first, "{first} steps for the first page, {later} for a later one");
    }

    #[test]
    fn a_key_that_cannot_be_read_is_not_shown() {
        let db = database();
        db.execute("INSERT INTO keys VALUES ('a', 0, 1, 'secret', 1, NULL, NULL, NULL, 'json', 'secret', x'ff')", [])
            .unwrap();
        let error = list(&db, "", None, 1).unwrap_err().to_string();
        assert!(error.contains("a key that cannot be read") && !error.contains("secret"), "{error}");
    }
}
