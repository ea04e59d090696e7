//! `plans`: what lists need to know of a plan.

use super::{Query, Read, Steps, all, column, free, free_if, limit as rows, net, parsed, small, time, time_if};
use crate::session::param;
use crate::types::{At, Free};
use steadfast_kernel::{PlanId, PlanStatus};
use steadfast_store::{Batch, PlanCursor, PlanFilter, PlanRow};
use tokio_postgres::Row;

const PUT: &str = "INSERT INTO steadfast.plans (plan_id, shard, definition, status, why, created_at, started_at, ended_at)
SELECT * FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[])
WHERE steadfast.begun() ON CONFLICT (plan_id) DO UPDATE SET shard = EXCLUDED.shard, definition = EXCLUDED.definition, status = EXCLUDED.status, why = EXCLUDED.why,
  created_at = EXCLUDED.created_at, started_at = EXCLUDED.started_at, ended_at = EXCLUDED.ended_at";

pub(crate) const GET: &str = "SELECT * FROM steadfast.plans WHERE plan_id = $1";

/// Puts rows; one replaces another of its plan.
pub(crate) fn put<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let (rows, _none) = net(all(batches, |batch| &batch.plans).map(|row| (&row.plan, Some(row))));
    if rows.is_empty() {
        return;
    }
    let rows: Vec<&PlanRow> = rows.into_iter().map(|(_, row)| row).collect();
    steps.add(
        PUT,
        [
            param(column(&rows, |row| row.plan.as_str())),
            param(column(&rows, |row| row.shard.cast_signed())),
            param(column(&rows, |row| Free(&row.definition))),
            param(column(&rows, |row| row.status.as_str())),
            param(column(&rows, |row| row.why.as_deref().map(Free))),
            param(column(&rows, |row| At(row.created_at))),
            param(column(&rows, |row| row.started_at.map(At))),
            param(column(&rows, |row| row.ended_at.map(At))),
        ],
    );
}

/// The plans that the filter lets through, newest first, from the one after that place.
pub(crate) fn list<'a>(filter: &'a PlanFilter, after: Option<&'a PlanCursor>, limit: usize) -> Query<'a> {
    let mut query = Query::new("SELECT * FROM steadfast.plans WHERE true");
    if let Some(PlanCursor { created_at, plan }) = after {
        query.ask(" AND (created_at, plan_id) < ($, $)", [param(At(*created_at)), param(plan.as_str())]);
    }
    query.ask_if(" AND shard = $", filter.shard.map(|shard| param(shard.cast_signed())));
    query.ask_if(" AND status = $", filter.status.map(|status| param(status.as_str())));
    if let Some(definition) = &filter.definition {
        query.ask_long("definition", definition);
    }
    query.ask(" ORDER BY created_at DESC, plan_id DESC LIMIT $", [param(rows(limit))]);
    query
}

pub(crate) fn row(row: &Row) -> Read<PlanRow> {
    Ok(PlanRow {
        shard: small(row, "shard")?,
        plan: parsed(row, "plan_id", |id| PlanId::new(id).ok())?,
        definition: free(row, "definition")?,
        status: parsed(row, "status", PlanStatus::parse)?,
        why: free_if(row, "why")?,
        created_at: time(row, "created_at")?,
        started_at: time_if(row, "started_at")?,
        ended_at: time_if(row, "ended_at")?,
    })
}
