//! `keys`: what keys hold. A directory that has ended stays until the keys below it have ended, too.

use super::events::{payload, stored};
use super::{integer, limit as rows, parsed};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Error, Row, named_params};
use std::collections::BTreeSet;
use steadfast_kernel::{Held, KeyName, Timestamp};
use steadfast_store::{KeyChange, KeyRow};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE keys (
  key        TEXT PRIMARY KEY,
  shard      INTEGER NOT NULL,
  revision   INTEGER NOT NULL,
  owner      TEXT,
  expires_at INTEGER NOT NULL, -- microseconds since 1970, UTC
  ended_at   INTEGER,          -- of a directory whose keys may still be there
  encoding   TEXT NOT NULL,
  payload    ANY NOT NULL,     -- its value: TEXT if people can read it, otherwise BLOB
  body       BLOB NOT NULL     -- all of it but the value, as protobuf
) STRICT, WITHOUT ROWID",
    "CREATE VIEW live_keys AS
SELECT key, revision, owner, strftime('%Y-%m-%dT%H:%M:%S', expires_at / 1000000, 'unixepoch') || printf('.%06dZ', expires_at % 1000000) AS expires,
  payload AS value
FROM keys WHERE ended_at IS NULL ORDER BY key",
];

const PUT: &str = "INSERT OR REPLACE INTO keys (key, shard, revision, owner, expires_at, ended_at, encoding, payload, body)
VALUES (:key, :shard, :revision, :owner, :expires_at, :ended_at, :encoding, :payload, :body)";

const REMOVE: &str = "DELETE FROM keys WHERE key = ?1";

const GET: &str = "SELECT key, shard, ended_at, encoding, payload, body FROM keys WHERE key = ?1";

/// The names that begin so are those from the prefix itself up to, and without, the first text that is greater than all of them.
const LIST: &str = "SELECT key, shard, ended_at, encoding, payload, body FROM keys
WHERE key >= :from AND key < :upto AND key > :after ORDER BY key LIMIT :limit";

/// Puts or removes.
pub(crate) fn change(db: &Connection, change: &KeyChange) -> rusqlite::Result<()> {
    match change {
        KeyChange::Put(row) => put(db, row),
        KeyChange::Remove(key) => db.prepare_cached(REMOVE)?.execute([key.as_str()]).map(drop),
    }
}

fn put(db: &Connection, KeyRow { shard, key, held, ended_at }: &KeyRow) -> rusqlite::Result<()> {
    let params = named_params! {
        ":key": key.as_str(),
        ":shard": shard,
        ":revision": integer(held.revision),
        ":owner": held.owner,
        ":expires_at": held.expires_at.as_micros(),
        ":ended_at": ended_at.map(Timestamp::as_micros),
        ":encoding": held.value.encoding.as_str(),
        ":payload": stored(&held.value),
        ":body": &held.encode()[..],
    };
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
    let params = named_params! {
        ":from": prefix,
        ":upto": format!("{prefix}\u{10ffff}"), // names are ASCII
        ":after": after.map_or("", KeyName::as_str),
        ":limit": rows(limit),
    };
    db.prepare_cached(LIST)?.query_map(params, row)?.collect()
}

fn row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    let wrong = || Error::FromSqlConversionFailure(0, Type::Blob, "a key that cannot be read".into());
    let value = payload(row)?.ok_or_else(wrong)?;
    let held = match row.get_ref("body")? {
        ValueRef::Blob(bytes) => Held::decode(bytes, value),
        _ => None,
    };
    Ok(KeyRow {
        shard: row.get("shard")?,
        key: parsed(row, "key", |key| KeyName::new(key).ok())?,
        held: held.ok_or_else(wrong)?,
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(Timestamp::from_micros),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn keys_are_read_in_order_without_sorting() {
        let params = named_params! {":from": "a", ":upto": "b", ":after": "", ":limit": 10};
        assert_eq!(plan(&database(), LIST, params), "SEARCH keys USING PRIMARY KEY (key>? AND key<?)");
        assert_eq!(plan(&database(), GET, ["a"]), "SEARCH keys USING PRIMARY KEY (key=?)");
    }
}
