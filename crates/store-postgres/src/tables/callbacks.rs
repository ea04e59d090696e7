//! `callbacks`: ends of keys that are to be told, as far as lists show them. Their bytes are in the journals of their keys.

use super::keys::past;
use super::{
    Query, Read, Steps, Wrong, all, column, count, free, get, integer, limit as rows, net, parsed, small, small_if, time, time_if,
};
use crate::session::param;
use crate::types::{At, Free};
use steadfast_kernel::{Failure, KeyName};
use steadfast_store::{Batch, CallbackChange, CallbackCursor, CallbackFilter, CallbackRow};
use tokio_postgres::Row;

const PUT: &str = "INSERT INTO steadfast.callbacks (key, revision, shard, ended_at, target, attempt, next_at, attempts, reason, failure)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::int[], $4::timestamptz[], $5::text[], $6::int[], $7::timestamptz[], $8::int[], $9::text[],
  $10::bytea[])
WHERE steadfast.begun() ON CONFLICT (key, revision) DO UPDATE SET shard = EXCLUDED.shard, ended_at = EXCLUDED.ended_at, target = EXCLUDED.target,
  attempt = EXCLUDED.attempt, next_at = EXCLUDED.next_at, attempts = EXCLUDED.attempts, reason = EXCLUDED.reason, failure = EXCLUDED.failure";

const REMOVE: &str = "DELETE FROM steadfast.callbacks c USING unnest($1::text[], $2::bigint[]) AS g(key, revision)
WHERE c.key = g.key AND c.revision = g.revision AND steadfast.begun()";

pub(crate) const COUNT: &str = "SELECT count(*) AS callbacks FROM steadfast.callbacks WHERE shard = ANY ($1)";

/// Puts and removes.
pub(crate) fn change<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let changes = all(batches, |batch| &batch.callbacks).map(|change| match change {
        CallbackChange::Put(row) => ((row.key.as_str(), integer(row.revision)), Some(&**row)),
        CallbackChange::Remove(key, revision) => ((key.as_str(), integer(*revision)), None),
    });
    let (put, removed) = net(changes);
    if !removed.is_empty() {
        let (keys, revisions): (Vec<_>, Vec<_>) = removed.into_iter().unzip();
        steps.add(REMOVE, [param(keys), param(revisions)]);
    }
    if put.is_empty() {
        return;
    }
    let rows: Vec<&CallbackRow> = put.into_iter().map(|(_, row)| row).collect();
    steps.add(
        PUT,
        [
            param(column(&rows, |row| row.key.as_str())),
            param(column(&rows, |row| integer(row.revision))),
            param(column(&rows, |row| row.shard.cast_signed())),
            param(column(&rows, |row| At(row.ended_at))),
            param(column(&rows, |row| Free(&row.target))),
            param(column(&rows, |row| row.attempt.cast_signed())),
            param(column(&rows, |row| row.next_at.map(At))),
            param(column(&rows, |row| row.of.map(u32::cast_signed))),
            param(column(&rows, |row| row.failure.as_ref().map(|failure| Free(&failure.message)))),
            param(column(&rows, |row| row.failure.as_ref().map(|failure| failure.encode().to_vec()))),
        ],
    );
}

/// Ends of keys, those that have waited for longest first, from the one after that place.
pub(crate) fn list<'a>(filter: &'a CallbackFilter, after: Option<&'a CallbackCursor>, limit: usize) -> Query<'a> {
    let mut query = Query::new("SELECT * FROM steadfast.callbacks WHERE true");
    query.ask_if(" AND shard = $", filter.shard.map(|shard| param(shard.cast_signed())));
    if let Some(CallbackCursor { ended_at, key, revision }) = after {
        let place = [param(At(*ended_at)), param(key.as_str()), param(integer(*revision))];
        query.ask(" AND (ended_at, key, revision) > ($, $, $)", place);
    }
    if !filter.prefix.is_empty() {
        query.ask_between("key", &filter.prefix, past(&filter.prefix));
    }
    if filter.first {
        query.ask(" AND next_at IS NULL", []);
    }
    query.ask(" ORDER BY ended_at, key, revision LIMIT $", [param(rows(limit))]);
    query
}

pub(crate) fn row(row: &Row) -> Read<CallbackRow> {
    let failure = match get::<Option<&[u8]>>(row, "failure")? {
        None => None,
        Some(bytes) => Some(Failure::decode(bytes).ok_or_else(|| Wrong("a failure that cannot be read".into()))?),
    };
    Ok(CallbackRow {
        shard: small(row, "shard")?,
        key: parsed(row, "key", |key| KeyName::new(key).ok())?,
        revision: count(row, "revision")?,
        ended_at: time(row, "ended_at")?,
        target: free(row, "target")?,
        attempt: small(row, "attempt")?,
        next_at: time_if(row, "next_at")?,
        of: small_if(row, "attempts")?,
        failure,
    })
}
