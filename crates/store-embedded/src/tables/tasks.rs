//! What `runs` has of those runs that are tasks. Its indexes have only these, so that other runs cost what they did.

use super::runs::row;
use super::{count, limit as rows, parsed};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::BTreeSet;
use steadfast_kernel::{PlanId, RunId, TaskStatus, TenantId, Timestamp};
use steadfast_store::{RunRow, TaskCount, TaskRow};

pub(crate) const SCHEMA: &[&str] = &[
    "ALTER TABLE runs ADD COLUMN plan TEXT",               // null if it is no task
    "ALTER TABLE runs ADD COLUMN task_status TEXT",        // its status as a task
    "ALTER TABLE runs ADD COLUMN stage INTEGER",           // that it is or was at, from 0
    "ALTER TABLE runs ADD COLUMN completed INTEGER",       // how many stages are done
    "ALTER TABLE runs ADD COLUMN checkpoint INTEGER",      // the last stage of its checkpoint
    "ALTER TABLE runs ADD COLUMN pause_requested INTEGER", // 1 if somebody wants it to pause
    "ALTER TABLE runs ADD COLUMN begun_at INTEGER",        // when its first stage could begin, in microseconds
    "CREATE INDEX runs_plan ON runs (plan, run) WHERE plan IS NOT NULL",
    "CREATE INDEX runs_task_status ON runs (plan, task_status) WHERE plan IS NOT NULL",
    "CREATE INDEX runs_task_tenant ON runs (tenant, started_at, run) WHERE plan IS NOT NULL",
    "CREATE VIEW open_tasks AS
SELECT run AS task, plan, tenant, task_status AS status, stage, completed, checkpoint, wait, text,
  strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000000, 'unixepoch') AS started
FROM runs WHERE plan IS NOT NULL AND ended_at IS NULL ORDER BY plan, run",
];

const OF_PLAN: &str = "SELECT * FROM runs WHERE plan = ?1 AND run > ?2 ORDER BY run LIMIT ?3";

const COUNTS: &str = "SELECT plan, task_status, count(*) AS tasks FROM runs WHERE plan = ?1 GROUP BY task_status ORDER BY task_status";

/// The tenant's runs that are no tasks may be many.
const LATEST: &str = "SELECT * FROM runs INDEXED BY runs_task_tenant WHERE plan IS NOT NULL AND tenant = ?1
ORDER BY started_at DESC, run DESC LIMIT 1";

/// The tasks of a plan by id, from the one after that.
pub(crate) fn of_plan(db: &Connection, plan: &PlanId, after: Option<&RunId>, limit: usize) -> rusqlite::Result<Vec<RunRow>> {
    let after = after.map_or("", RunId::as_str);
    db.prepare_cached(OF_PLAN)?.query_map((plan.as_str(), after, rows(limit)), row)?.collect()
}

/// How many tasks of these plans there are of each status.
pub(crate) fn counts(db: &Connection, plans: &[PlanId]) -> rusqlite::Result<Vec<TaskCount>> {
    let mut statement = db.prepare_cached(COUNTS)?;
    let mut found = Vec::new();
    for plan in plans.iter().collect::<BTreeSet<_>>() {
        found.extend(statement.query_map([plan.as_str()], count_row)?.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(found)
}

/// The tenant's task that began last.
pub(crate) fn latest(db: &Connection, tenant: &TenantId) -> rusqlite::Result<Option<RunRow>> {
    db.prepare_cached(LATEST)?.query_row([tenant.as_str()], row).optional()
}

/// What a row of `runs` has of a task; nothing if it is none.
pub(super) fn of_row(row: &Row<'_>) -> rusqlite::Result<Option<TaskRow>> {
    if row.get_ref("plan")? == ValueRef::Null {
        return Ok(None);
    }
    Ok(Some(TaskRow {
        plan: parsed(row, "plan", |id| PlanId::new(id).ok())?,
        status: parsed(row, "task_status", TaskStatus::parse)?,
        stage: row.get("stage")?,
        completed: row.get("completed")?,
        checkpoint: row.get("checkpoint")?,
        pause_requested: row.get("pause_requested")?,
        started_at: row.get::<_, Option<i64>>("begun_at")?.map(Timestamp::from_micros),
    }))
}

fn count_row(row: &Row<'_>) -> rusqlite::Result<TaskCount> {
    Ok(TaskCount {
        plan: parsed(row, "plan", |id| PlanId::new(id).ok())?,
        status: parsed(row, "task_status", TaskStatus::parse)?,
        tasks: count(row, "tasks")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn the_tasks_of_a_plan_are_a_piece_of_an_index() {
        assert_eq!(plan(&database(), OF_PLAN, ("a", "", 10)), "SEARCH runs USING INDEX runs_plan (plan=? AND run>?)");
    }

    #[test]
    fn tasks_are_counted_without_reading_them() {
        assert_eq!(plan(&database(), COUNTS, ["a"]), "SEARCH runs USING COVERING INDEX runs_task_status (plan=?)");
    }

    #[test]
    fn the_latest_task_of_a_tenant_is_found_without_looking_at_others() {
        assert_eq!(plan(&database(), LATEST, ["a"]), "SEARCH runs USING INDEX runs_task_tenant (tenant=?)");
    }
}
