//! `keys`: what keys hold. One that is gone stays until the keys below it have ended, too.

use super::events::payload;
use super::{Read, Steps, Wrong, all, column, get, integer, net, parsed, small, time_if};
use crate::readable::readable;
use crate::session::param;
use crate::types::{At, Free, Json};
use steadfast_kernel::{Held, KeyName};
use steadfast_store::{Batch, EndedBelow, KeyChange, KeyRow};
use tokio_postgres::Row;

const PUT: &str = "INSERT INTO steadfast.keys (key, shard, revision, owner, expires_at, ended_at, ended_below, was_deleted, value, encoding, value_bytes, body)
SELECT * FROM unnest($1::text[], $2::int[], $3::bigint[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::bool[],
  $9::jsonb[], $10::text[], $11::bytea[], $12::bytea[])
WHERE steadfast.begun() ON CONFLICT (key) DO UPDATE SET shard = EXCLUDED.shard, revision = EXCLUDED.revision, owner = EXCLUDED.owner, expires_at = EXCLUDED.expires_at,
  ended_at = EXCLUDED.ended_at, ended_below = EXCLUDED.ended_below, was_deleted = EXCLUDED.was_deleted, value = EXCLUDED.value,
  encoding = EXCLUDED.encoding, value_bytes = EXCLUDED.value_bytes, body = EXCLUDED.body";

const REMOVE: &str = "DELETE FROM steadfast.keys WHERE key = ANY ($1) AND steadfast.begun()";

pub(crate) const GET: &str = "SELECT key, shard, ended_at, ended_below, was_deleted, encoding, value_bytes, body FROM steadfast.keys WHERE key = ANY ($1) ORDER BY key";

pub(crate) const LIST: &str = "SELECT key, shard, ended_at, ended_below, was_deleted, encoding, value_bytes, body FROM steadfast.keys
WHERE key >= $1 AND key < $2 AND key <> $3 ORDER BY key LIMIT $4";

/// Puts and removes. What people see of their values may be left out.
pub(crate) fn change<'a>(batches: &'a [Batch], shows_values: bool, steps: &mut Steps<'a>) {
    let changes = all(batches, |batch| &batch.keys).map(|change| match change {
        KeyChange::Put(row) => (row.key.as_str(), Some(&**row)),
        KeyChange::Remove(key) => (key.as_str(), None),
    });
    let (put, removed) = net(changes);
    if !removed.is_empty() {
        steps.add(REMOVE, [param(removed)]);
    }
    if put.is_empty() {
        return;
    }
    let rows: Vec<&KeyRow> = put.into_iter().map(|(_, row)| row).collect();
    let shown = |row: &&'a KeyRow| Some(&row.held.value).filter(|_| shows_values).and_then(readable).map(Json);
    steps.add(
        PUT,
        [
            param(column(&rows, |row| row.key.as_str())),
            param(column(&rows, |row| row.shard.cast_signed())),
            param(column(&rows, |row| integer(row.held.revision))),
            param(column(&rows, |row| row.held.owner.as_deref().map(Free))),
            param(column(&rows, |row| At(row.held.expires_at))),
            param(column(&rows, |row| row.ended_at.map(At))),
            param(column(&rows, |row| row.ended_below.map(|ended| At(ended.at)))),
            param(column(&rows, |row| row.ended_below.map(|ended| ended.deleted))),
            param(column(&rows, shown)),
            param(column(&rows, |row| row.held.value.encoding.as_str())),
            param(column(&rows, |row| &row.held.value.bytes[..])),
            param(column(&rows, |row| row.held.encode().to_vec())),
        ],
    );
}

/// Comes after every name that begins so, and before those after them: names are ASCII.
pub(crate) fn past(prefix: &str) -> String {
    format!("{prefix}\u{10ffff}")
}

pub(crate) fn row(row: &Row) -> Read<KeyRow> {
    let wrong = || Wrong("a key that cannot be read".into());
    let value = payload(row, "value_bytes")?.ok_or_else(wrong)?;
    Ok(KeyRow {
        shard: small(row, "shard")?,
        key: parsed(row, "key", |key| KeyName::new(key).ok())?,
        held: Held::decode(get(row, "body")?, value).ok_or_else(wrong)?,
        ended_at: time_if(row, "ended_at")?,
        ended_below: match time_if(row, "ended_below")? {
            Some(at) => Some(EndedBelow { at, deleted: get::<Option<bool>>(row, "was_deleted")?.unwrap_or_default() }),
            None => None,
        },
    })
}
