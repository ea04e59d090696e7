//! `shards`: who may write, and how far each has come.

use super::{Read, Steps, all, column, count, integer, small, time_if};
use crate::migrate;
use crate::session::param;
use std::collections::BTreeMap;
use steadfast_store::{Backlog, Batch, Fence, Head, ShardId};
use tokio_postgres::Row;

const FENCE: &str = "SELECT steadfast.fence($1, $2, $3, $4, $5, $6, $7) WHERE steadfast.begun()";

/// A shard that is written without a claim of this store, as far as the term is right. Rows are locked in the order in which commits do.
pub(crate) const ADOPT: &str = "WITH ours AS (
  SELECT s.id FROM steadfast.shards s JOIN unnest($2::int[], $3::bigint[]) AS f(id, term) ON s.id = f.id AND s.term = f.term
  ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE steadfast.shards s SET writer = $1 FROM ours WHERE s.id = ours.id";

/// What a claim is based on, and by when it has to be there. For an instance the shard is its own only while it has a lease on it.
pub(crate) const BEFORE_CLAIM: &str = "SELECT term, seq, clock_timestamp() + $2::bigint * interval '1 ms' AS until,
  $3::text IS NULL OR EXISTS (SELECT FROM steadfast.leases WHERE shard = $1 AND holder = $3 AND until > clock_timestamp()) AS is_ours
FROM steadfast.shards WHERE id = $1";

/// One that is claimed for the first time and was not made with the database.
pub(crate) const MAKE: &str = "INSERT INTO steadfast.shards (id) VALUES ($1) ON CONFLICT DO NOTHING";

/// Who takes a lease away raises the term in the same statement. So if the lease that is seen here is gone by the time that the row is locked, the term is another.
pub(crate) const CLAIM: &str = "UPDATE steadfast.shards SET term = term + 1, writer = $1
WHERE id = $2 AND term = $3 AND clock_timestamp() <= $4
  AND ($5::text IS NULL OR EXISTS (SELECT FROM steadfast.leases WHERE shard = $2 AND holder = $5 AND until > clock_timestamp()))
RETURNING term, seq";

pub(crate) const HEAD: &str = "SELECT term, seq FROM steadfast.shards WHERE id = $1";

/// What waits in shards: the first timer of each, and so many of its messages at most. Both are read in the order of an index that begins with the shard; asked for the
/// messages of one shard and no order, PostgreSQL would read the whole table for each.
pub(crate) const BACKLOGS: &str =
    "SELECT asked.shard, (SELECT min(due_at) FROM steadfast.timers t WHERE t.shard = asked.shard) AS first_due,
  (SELECT count(*) FROM (
    SELECT FROM steadfast.outbox o WHERE o.shard <= asked.shard AND (o.shard, o.from_id, o.seq) >= (asked.shard, '', 0)
    ORDER BY o.shard, o.from_id, o.seq LIMIT $2
  ) AS few) AS messages
FROM unnest($1::int[]) WITH ORDINALITY AS asked(shard, nth) ORDER BY nth";

/// How a shard moves on. One that has events and no fence only gets places for them.
struct Move {
    shard: ShardId,
    fence: Option<Fence>,
    events: i64,
}

/// Checks all fences, and moves the shards on.
pub(crate) fn fence<'a>(batches: &'a [Batch], writer: &'a str, steps: &mut Steps<'a>) {
    let moves = moves(batches);
    if moves.is_empty() {
        return;
    }
    let of = |value: fn(&Fence) -> u64| column(&moves, |m| m.fence.as_ref().map(|fence| integer(value(fence))));
    let (terms, afters, uptos) = (of(|fence| fence.term), of(|fence| fence.after), of(|fence| fence.upto));
    let (ids, events) = (column(&moves, |m| m.shard.cast_signed()), column(&moves, |m| m.events));
    steps.add(FENCE, [param(migrate::known()), param(writer), param(ids), param(terms), param(afters), param(uptos), param(events)]);
}

/// Fences of a shard that follow on from each other are one.
pub(crate) fn fences(batches: &[Batch]) -> Vec<Fence> {
    let mut fences: Vec<Fence> = Vec::new();
    for fence in all(batches, |batch| &batch.fences) {
        match fences.iter_mut().find(|mine| mine.shard == fence.shard && mine.term == fence.term) {
            Some(mine) if mine.upto == fence.after => mine.upto = fence.upto,
            _ => fences.push(*fence),
        }
    }
    fences
}

fn moves(batches: &[Batch]) -> Vec<Move> {
    let mut events = events(batches);
    let fenced = fences(batches).into_iter().map(|fence| (fence.shard, Some(fence)));
    let mut moves: Vec<_> = fenced
        .map(|(shard, fence)| Move { shard, fence, events: events.remove(&shard).unwrap_or_default() })
        .collect();
    moves.extend(events.into_iter().map(|(shard, events)| Move { shard, fence: None, events }));
    moves
}

/// How many events there are of each shard.
pub(crate) fn events(batches: &[Batch]) -> BTreeMap<ShardId, i64> {
    let mut counts = BTreeMap::new();
    all(batches, |batch| &batch.events).for_each(|append| *counts.entry(append.shard).or_default() += 1);
    counts
}

pub(crate) fn head(row: &Row) -> Read<Head> {
    Ok(Head { term: count(row, "term")?, seq: count(row, "seq")? })
}

pub(crate) fn backlog(row: &Row) -> Read<Backlog> {
    Ok(Backlog { shard: small(row, "shard")?, first_due: time_if(row, "first_due")?, messages: count(row, "messages")? })
}
