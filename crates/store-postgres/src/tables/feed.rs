//! The order of writing, which is that of `workflow_events.place` for each shard.

use super::events::record;
use super::{Query, Read, count, free_if, limit as rows, parsed, parsed_if, small};
use crate::session::param;
use std::collections::BTreeMap;
use steadfast_kernel::{EntityId, PlanId};
use steadfast_store::{Fed, Place, Position, ShardId};
use tokio_postgres::Row;

pub(crate) const LAST: &str = "SELECT id AS shard, place FROM steadfast.shards WHERE place > 0";

const COLUMNS: &str = "e.shard, e.place, e.workflow_id, e.sequence, e.epoch, e.event_type, e.occurred_at, e.subject, e.attempt_number,
  e.backoff_delay_ms, e.failure_reason, e.encoding, e.payload_bytes, e.body, r.tenant, r.plan_id";

/// Only shards in which there is more are looked at, each from its place on. Of several, the first of each come first, so that a page that ends early ends so in
/// all of them.
const ALL: &str = "FROM (
  SELECT s.id, coalesce(c.place, 0) AS after, s.place
  FROM steadfast.shards s LEFT JOIN unnest($::int[], $::bigint[]) AS c(shard, place) ON c.shard = s.id
  WHERE s.place > coalesce(c.place, 0)
) s
CROSS JOIN LATERAL (
  SELECT e.*, row_number() OVER (ORDER BY e.place) AS nth FROM steadfast.workflow_events e
  WHERE e.shard = s.id AND e.place > s.after AND NOT EXISTS (SELECT FROM steadfast.swept WHERE swept.workflow_id = e.workflow_id)
  ORDER BY e.place LIMIT $
) e
LEFT JOIN steadfast.workflow_state r ON r.workflow_id = e.workflow_id
ORDER BY e.nth, e.shard LIMIT $";

/// An entity stays in its shard, so its places rise with its journal: the last entry that lies behind is found by halving what is left, however long the journal is.
const OF_ENTITY: &str = "FROM (
  SELECT * FROM steadfast.workflow_events e WHERE e.workflow_id = (SELECT id FROM asked) AND e.sequence > (SELECT max(low) FROM halves)
    AND e.place > coalesce((SELECT c.place FROM passed c WHERE c.shard = e.shard), 0)
    AND NOT EXISTS (SELECT FROM steadfast.swept WHERE swept.workflow_id = (SELECT id FROM asked))
  ORDER BY e.sequence LIMIT $
) e
LEFT JOIN steadfast.workflow_state r ON r.workflow_id = e.workflow_id
ORDER BY e.sequence";

const HALVES: &str =
    "WITH RECURSIVE passed AS (SELECT * FROM unnest($::int[], $::bigint[]) AS c(shard, place)), asked AS (SELECT $::text AS id),
halves(low, high) AS (
  SELECT min(e.sequence) - 1, max(e.sequence) + 1 FROM steadfast.workflow_events e WHERE e.workflow_id = (SELECT id FROM asked)
  UNION ALL
  SELECT CASE WHEN m.is_behind THEN m.sequence ELSE h.low END, CASE WHEN m.is_behind THEN h.high ELSE (h.low + h.high) / 2 END
  FROM halves h CROSS JOIN LATERAL (
    SELECT e.sequence, e.place <= coalesce((SELECT c.place FROM passed c WHERE c.shard = e.shard), 0) AS is_behind
    FROM steadfast.workflow_events e WHERE e.workflow_id = (SELECT id FROM asked) AND e.sequence >= (h.low + h.high) / 2
    ORDER BY e.sequence LIMIT 1
  ) m
  WHERE h.high - h.low > 1
) ";

/// How many of each shard are looked at for a page. If all have some, twice its share is enough; looking at a whole page of each would be many times too much.
pub(crate) fn share(limit: usize, shards: u32) -> usize {
    limit.saturating_mul(2).div_ceil((shards as usize).max(1)).clamp(16, limit.max(16))
}

/// Whether a page may have ended early because so many of a shard were looked at and no more.
pub(crate) fn is_cut(page: &[Fed], share: usize, limit: usize) -> bool {
    let mut counts = BTreeMap::<ShardId, usize>::new();
    page.iter().for_each(|fed| *counts.entry(fed.place.shard).or_default() += 1);
    page.len() < limit && counts.values().any(|count| *count >= share)
}

/// What was written after a position, and at most `share` of each shard.
pub(crate) fn after(after: &Position, entity: Option<&EntityId>, share: usize, limit: usize) -> Query<'static> {
    let shards: Vec<_> = after.places().iter().map(|place| place.shard.cast_signed()).collect();
    let places: Vec<_> = after.places().iter().map(|place| i64::try_from(place.number).unwrap_or(i64::MAX)).collect();
    let (shards, places) = (param(shards), param(places));
    let mut query = Query::new("");
    if let Some(entity) = entity {
        query.ask(HALVES, [shards, places, param(entity.to_string())]);
        query.ask(&format!("SELECT {COLUMNS} {OF_ENTITY}"), [param(rows(limit))]);
    } else {
        query.ask(&format!("SELECT {COLUMNS} {ALL}"), [shards, places, param(rows(share)), param(rows(limit))]);
    }
    query
}

pub(crate) fn place(row: &Row) -> Read<Place> {
    Ok(Place { shard: small(row, "shard")?, number: count(row, "place")? })
}

pub(crate) fn fed(row: &Row) -> Read<Fed> {
    Ok(Fed {
        place: place(row)?,
        entity: parsed(row, "workflow_id", EntityId::from_stored)?,
        tenant: free_if(row, "tenant")?,
        plan: parsed_if(row, "plan_id", |plan| PlanId::new(plan).ok())?,
        record: record(row)?,
    })
}
