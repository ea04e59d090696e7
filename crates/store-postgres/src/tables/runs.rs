//! `workflow_state`: what lists and recovery need to know of a run.

use super::{Query, Read, Steps, all, column, count, free_if, get, limit as rows, net, parsed, parsed_if, small, tasks, time, time_if};
use crate::session::{Param, param};
use crate::types::{At, Free, stored};
use steadfast_kernel::run::Recover;
use steadfast_kernel::{RunId, Status, Timestamp, WorkflowName};
use steadfast_store::{Batch, EndedCursor, EndedFilter, RunCursor, RunFilter, RunPage, RunRow, TaskRow};
use tokio_postgres::Row;

const PUT: &str = "INSERT INTO steadfast.workflow_state (workflow_id, status, workflow, tenant, wait_reason, note, started_at, ended_at, shard, recover,
  plan_id, task_status, stage, completed_stages, checkpoint_stage, pause_requested, begun_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::int[],
  $10::text[], $11::text[], $12::text[], $13::int[], $14::int[], $15::int[], $16::bool[], $17::timestamptz[])
WHERE steadfast.begun() ON CONFLICT (workflow_id) DO UPDATE SET status = EXCLUDED.status, workflow = EXCLUDED.workflow, tenant = EXCLUDED.tenant,
  wait_reason = EXCLUDED.wait_reason, note = EXCLUDED.note, started_at = EXCLUDED.started_at, ended_at = EXCLUDED.ended_at,
  shard = EXCLUDED.shard, recover = EXCLUDED.recover, plan_id = EXCLUDED.plan_id, task_status = EXCLUDED.task_status, stage = EXCLUDED.stage,
  completed_stages = EXCLUDED.completed_stages, checkpoint_stage = EXCLUDED.checkpoint_stage, pause_requested = EXCLUDED.pause_requested,
  begun_at = EXCLUDED.begun_at";

pub(crate) const GET: &str = "SELECT * FROM steadfast.workflow_state WHERE workflow_id = $1";

pub(crate) const RECOVER: &str = "SELECT * FROM steadfast.workflow_state
WHERE recover IS NOT NULL AND shard = $1 AND (started_at, workflow_id) > ($2, $3) ORDER BY started_at, workflow_id LIMIT $4";

pub(crate) const OLDEST: &str = "SELECT * FROM steadfast.workflow_state
WHERE shard = $1 AND (started_at, workflow_id) > ($2, $3) ORDER BY started_at, workflow_id LIMIT $4";

/// Comes after every id.
const AFTER_ALL: &str = "~";

/// Puts rows; one replaces another of its run.
pub(crate) fn put<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let (rows, _none) = net(all(batches, |batch| &batch.runs).map(|row| (&row.run, Some(row))));
    if rows.is_empty() {
        return;
    }
    let rows: Vec<&RunRow> = rows.into_iter().map(|(_, row)| row).collect();
    steps.add(
        PUT,
        [
            param(column(&rows, |row| row.run.as_str())),
            param(column(&rows, |row| row.status.as_str())),
            param(column(&rows, |row| row.workflow.as_str())),
            param(column(&rows, |row| row.tenant.as_deref().map(Free))),
            param(column(&rows, |row| row.wait.as_deref().map(Free))),
            param(column(&rows, |row| row.text.as_deref().map(Free))),
            param(column(&rows, |row| At(row.started_at))),
            param(column(&rows, |row| row.ended_at.map(At))),
            param(column(&rows, |row| row.shard.cast_signed())),
            param(column(&rows, |row| row.recover.map(Recover::as_str))),
            of_task(&rows, |task| Some(task.plan.as_str())),
            of_task(&rows, |task| Some(task.status.as_str())),
            of_task(&rows, |task| task.stage.map(u32::cast_signed)),
            of_task(&rows, |task| Some(task.completed.cast_signed())),
            of_task(&rows, |task| task.checkpoint.map(u32::cast_signed)),
            of_task(&rows, |task| Some(task.pause_requested)),
            of_task(&rows, |task| task.started_at.map(At)),
        ],
    );
}

/// A column that only tasks have.
fn of_task<'a, V>(rows: &[&'a RunRow], value: impl Fn(&'a TaskRow) -> Option<V>) -> Param<'a>
where
    Vec<Option<V>>: tokio_postgres::types::ToSql + Sync + Send + 'a,
{
    param(column(rows, |row| row.task.as_ref().and_then(&value)))
}

/// From where a list of the oldest goes on.
pub(crate) fn from(after: Option<&RunCursor>) -> (At, &str) {
    after.map_or((At(Timestamp::EPOCH), ""), |after| (At(after.started_at), after.run.as_str()))
}

/// The runs that the filter lets through, newest first, from the one after that place.
pub(crate) fn list<'a>(filter: &'a RunFilter, after: Option<&'a RunCursor>, limit: usize) -> Query<'a> {
    let (before_at, before) = before(filter, after);
    let mut query = Query::new("SELECT * FROM steadfast.workflow_state");
    query.ask(" WHERE (started_at, workflow_id) < ($, $)", [param(At(before_at)), param(before)]);
    query.ask_if(" AND started_at >= $", filter.since.map(|since| param(At(since))));
    query.ask_if(" AND status = $", filter.status.map(|status| param(status.as_str())));
    query.ask_if(" AND workflow = $", filter.workflow.as_ref().map(|workflow| param(workflow.as_str())));
    if let Some(tenant) = &filter.tenant {
        query.ask_long("tenant", tenant);
    }
    query.ask_if(" AND wait_reason = $", filter.wait.as_deref().map(|wait| param(Free(wait))));
    query.ask(" ORDER BY started_at DESC, workflow_id DESC LIMIT $", [param(rows(limit))]);
    query
}

/// Ended runs, in the order of their ends, from the one after that place.
pub(crate) fn ended<'a>(filter: &'a EndedFilter, after: Option<&'a EndedCursor>, limit: usize) -> Query<'a> {
    let EndedFilter { shard, status, tasks, until } = filter;
    let (at, run) = after.map_or((Timestamp::EPOCH, ""), |after| (after.ended_at, after.run.as_str()));
    let of_plans = if *tasks { "NOT NULL" } else { "NULL" };
    let mut query = Query::new(&format!("SELECT * FROM steadfast.workflow_state WHERE ended_at IS NOT NULL AND plan_id IS {of_plans}"));
    query.ask(" AND shard = $ AND status = $", [param(shard.cast_signed()), param(status.as_str())]);
    query.ask(" AND ended_at <= $ AND (ended_at, workflow_id) > ($, $)", [param(At(*until)), param(At(at)), param(run)]);
    query.ask(" ORDER BY ended_at, workflow_id LIMIT $", [param(rows(limit))]);
    query
}

/// Those of them that have that text, among so many at most. The last of so many is there also if it has not, and `found` says so: the search goes on there.
pub(crate) fn search<'a>(filter: &'a RunFilter, text: &str, after: Option<&'a RunCursor>, limit: usize, examined_max: usize) -> Query<'a> {
    let mut query = list(filter, after, examined_max);
    let text = stored(&text.to_ascii_lowercase()).into_owned();
    let fields = ["workflow_id", "workflow", "tenant", "note"].map(|field| format!("coalesce(strpos(lower({field}), $) > 0, false)"));
    query
        .sql
        .insert_str(0, "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY started_at DESC, workflow_id DESC) AS nth FROM (");
    query.ask(") AS examined) AS numbered CROSS JOIN LATERAL (SELECT ", []);
    query.ask(&format!("{} AS found) AS looked", fields.join(" OR ")), [(); 4].map(|()| param(text.clone())));
    query.ask(" WHERE found OR nth = $", [param(rows(examined_max))]);
    query.ask(" ORDER BY started_at DESC, workflow_id DESC LIMIT $", [param(rows(limit.saturating_add(1)))]);
    query
}

/// What a row of a search says: the run, whether it was found, and whether it is the last that was examined.
pub(crate) fn examined(of: &Row) -> Read<(RunRow, bool, u64)> {
    Ok((row(of)?, get(of, "found")?, count(of, "nth")?))
}

/// The page that a search has come to.
pub(crate) fn page(examined: Vec<(RunRow, bool, u64)>, limit: usize, examined_max: usize) -> RunPage {
    let last = examined
        .last()
        .filter(|(_, _, nth)| *nth == examined_max as u64)
        .map(|(row, ..)| RunCursor::from(row));
    let found = examined.into_iter().filter(|(_, found, _)| *found).map(|(row, ..)| row).collect();
    RunPage::found(found, limit, last)
}

/// Everything in the list comes before this place: that of the cursor, or the end of the time asked for.
fn before<'a>(filter: &RunFilter, after: Option<&'a RunCursor>) -> (Timestamp, &'a str) {
    let until = filter.until.map(|until| (until, ""));
    let after = after.map(|after| (after.started_at, after.run.as_str()));
    until.into_iter().chain(after).min().unwrap_or((Timestamp::MAX, AFTER_ALL))
}

pub(crate) fn row(row: &Row) -> Read<RunRow> {
    Ok(RunRow {
        shard: small(row, "shard")?,
        run: parsed(row, "workflow_id", |id| RunId::new(id).ok())?,
        workflow: parsed(row, "workflow", |name| WorkflowName::new(name).ok())?,
        tenant: free_if(row, "tenant")?,
        status: parsed(row, "status", Status::parse)?,
        wait: free_if(row, "wait_reason")?,
        text: free_if(row, "note")?,
        recover: parsed_if(row, "recover", Recover::parse)?,
        started_at: time(row, "started_at")?,
        ended_at: time_if(row, "ended_at")?,
        task: tasks::of_row(row)?,
    })
}
