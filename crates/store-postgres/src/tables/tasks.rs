//! What `workflow_state` has of those runs that are tasks.

use super::{Read, count, get, parsed, parsed_if, small, small_if, time_if};
use steadfast_kernel::{PlanId, TaskStatus};
use steadfast_store::{TaskCount, TaskRow};
use tokio_postgres::Row;

pub(crate) const OF_PLAN: &str =
    "SELECT * FROM steadfast.workflow_state WHERE plan_id = $1 AND workflow_id > $2 ORDER BY workflow_id LIMIT $3";

/// The shards of a plan's tasks have counts of their own.
pub(crate) const COUNTS: &str =
    "SELECT plan_id, task_status, sum(tasks)::bigint AS tasks FROM steadfast.task_counts WHERE plan_id = ANY ($1)
GROUP BY plan_id, task_status ORDER BY plan_id, task_status";

/// The ids of tenants that have tasks are short, so the beginning that the index has is all of them.
pub(crate) const LATEST: &str = "SELECT * FROM steadfast.workflow_state WHERE plan_id IS NOT NULL AND \"left\"(tenant, 200) = $1
ORDER BY started_at DESC, workflow_id DESC LIMIT 1";

/// What a row has of a task; nothing if it is none.
pub(super) fn of_row(row: &Row) -> Read<Option<TaskRow>> {
    let Some(plan) = parsed_if(row, "plan_id", |id| PlanId::new(id).ok())? else { return Ok(None) };
    Ok(Some(TaskRow {
        plan,
        status: parsed(row, "task_status", TaskStatus::parse)?,
        stage: small_if(row, "stage")?,
        completed: small(row, "completed_stages")?,
        checkpoint: small_if(row, "checkpoint_stage")?,
        pause_requested: get(row, "pause_requested")?,
        started_at: time_if(row, "begun_at")?,
    }))
}

pub(crate) fn count_row(row: &Row) -> Read<TaskCount> {
    Ok(TaskCount {
        plan: parsed(row, "plan_id", |id| PlanId::new(id).ok())?,
        status: parsed(row, "task_status", TaskStatus::parse)?,
        tasks: count(row, "tasks")?,
    })
}
