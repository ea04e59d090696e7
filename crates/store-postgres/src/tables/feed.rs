//! The order of writing, which is that of `workflow_events.place` for each shard.

use super::events::record;
use super::{Query, Read, count, free_if, limit as rows, parsed, parsed_if, small};
use crate::session::param;
use steadfast_kernel::{EntityId, PlanId};
use steadfast_store::{Fed, Place, Position};
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

const OF_ENTITY: &str = "FROM steadfast.workflow_events e
LEFT JOIN unnest($::int[], $::bigint[]) AS c(shard, place) ON c.shard = e.shard
LEFT JOIN steadfast.workflow_state r ON r.workflow_id = e.workflow_id
WHERE e.workflow_id = $ AND e.place > coalesce(c.place, 0)
  AND NOT EXISTS (SELECT FROM steadfast.swept WHERE swept.workflow_id = e.workflow_id)
ORDER BY e.sequence LIMIT $";

/// What was written after a position.
pub(crate) fn after(after: &Position, entity: Option<&EntityId>, limit: usize) -> Query<'static> {
    let shards: Vec<_> = after.places().iter().map(|place| place.shard.cast_signed()).collect();
    let places: Vec<_> = after.places().iter().map(|place| i64::try_from(place.number).unwrap_or(i64::MAX)).collect();
    let (shards, places) = (param(shards), param(places));
    let mut query = Query::new(&format!("SELECT {COLUMNS} "));
    match entity {
        None => query.ask(ALL, [shards, places, param(rows(limit)), param(rows(limit))]),
        Some(entity) => query.ask(OF_ENTITY, [shards, places, param(entity.to_string()), param(rows(limit))]),
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
