//! `runs`: what lists and recovery need to know of a run.
//!
//! Rows stand in the order of lists, so that new ones are written side by side whatever their ids
//! are, and the list of everything is the table. A row is put at every change, so an index costs
//! most if it has what changes; those indexes have only the rows that are looked for by them.

use super::{limit as rows, parsed, placeholders, tasks, time};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use steadfast_kernel::run::Recover;
use steadfast_kernel::{RunId, Status, Timestamp, WorkflowName};
use steadfast_store::{EndedCursor, EndedFilter, RunCursor, RunFilter, RunPage, RunRow, ShardId, TaskRow};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE runs (
  run        TEXT NOT NULL UNIQUE,
  shard      INTEGER NOT NULL,
  workflow   TEXT NOT NULL,
  tenant     TEXT,
  status     TEXT NOT NULL,
  wait       TEXT,             -- why nothing of it moves now
  text       TEXT,             -- why it failed, or what it said last
  recover    TEXT,             -- what a restart has to do with it
  started_at INTEGER NOT NULL, -- microseconds since 1970, UTC
  ended_at   INTEGER,          -- null while it is open
  PRIMARY KEY (started_at, run)
) STRICT, WITHOUT ROWID",
    "CREATE INDEX runs_recover ON runs (started_at, run) WHERE recover IS NOT NULL",
    "CREATE INDEX runs_workflow ON runs (workflow, started_at, run)",
    "CREATE INDEX runs_tenant ON runs (tenant, started_at, run) WHERE tenant IS NOT NULL",
    "CREATE INDEX runs_status ON runs (status, started_at, run) WHERE status <> 'COMPLETED' AND status <> 'RUNNING'",
    "CREATE INDEX runs_wait ON runs (wait, started_at, run) WHERE wait IS NOT NULL",
    "CREATE VIEW open_runs AS
SELECT run, workflow, tenant, status, wait, text, strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000000, 'unixepoch') AS started
FROM runs WHERE ended_at IS NULL ORDER BY run",
];

/// Since version 5. They have only runs that have ended, so a run is written to one of them once in
/// its life. Tasks go with their plan, so they are apart.
pub(crate) const ENDED_SCHEMA: &[&str] = &[
    "CREATE INDEX runs_ended ON runs (status, ended_at, run) WHERE ended_at IS NOT NULL AND plan IS NULL",
    "CREATE INDEX runs_ended_tasks ON runs (status, ended_at, run) WHERE ended_at IS NOT NULL AND plan IS NOT NULL",
];

/// SQLite writes every index that has a column of the SET list, changed or not; so what a run keeps
/// for life is compared and not set. Of a run that is no task nothing else is there.
const CHANGE: &str = "UPDATE runs SET status = ?5, wait = ?6, text = ?7, recover = ?8, ended_at = ?10
WHERE started_at = ?9 AND run = ?1 AND shard = ?2 AND workflow = ?3 AND tenant IS ?4 AND plan IS NULL";

/// With `FAIL`, SQLite does not prepare to undo a statement of many rows: the transaction undoes
/// everything.
const PUT: &str = "INSERT OR FAIL INTO runs (run, shard, workflow, tenant, status, wait, text, recover, started_at, ended_at) VALUES ";

const COLUMNS: usize = 10;

/// Rows per statement for runs that have just begun: every statement opens the table and all its
/// indexes.
const MANY: usize = 16;

static PUT_ONE: LazyLock<String> = LazyLock::new(|| put_sql(1));

static PUT_MANY: LazyLock<String> = LazyLock::new(|| put_sql(MANY));

fn put_sql(rows: usize) -> String {
    format!("{PUT}{} ON CONFLICT (run) DO NOTHING", placeholders(rows, COLUMNS))
}

const REPLACE: &str = "INSERT OR REPLACE INTO runs (run, shard, workflow, tenant, status, wait, text, recover, started_at, ended_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

/// As [`CHANGE`], of a task.
const CHANGE_TASK: &str = "UPDATE runs SET status = ?5, wait = ?6, text = ?7, recover = ?8, ended_at = ?10,
  task_status = ?12, stage = ?13, completed = ?14, checkpoint = ?15, pause_requested = ?16, begun_at = ?17
WHERE started_at = ?9 AND run = ?1 AND shard = ?2 AND workflow = ?3 AND tenant IS ?4 AND plan = ?11";

/// A task is put less often than other runs, so one statement is enough.
const PUT_TASK: &str = "INSERT OR REPLACE INTO runs (run, shard, workflow, tenant, status, wait, text, recover, started_at, ended_at,
  plan, task_status, stage, completed, checkpoint, pause_requested, begun_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

const GET: &str = "SELECT * FROM runs WHERE run = ?1";

const RECOVER: &str = "SELECT * FROM runs WHERE recover IS NOT NULL AND shard = ?1 AND (started_at, run) > (?2, ?3)
ORDER BY started_at, run LIMIT ?4";

const OLDEST: &str = "SELECT * FROM runs WHERE shard = ?1 AND (started_at, run) > (?2, ?3) ORDER BY started_at, run LIMIT ?4";

const ENDED: &str = "SELECT * FROM runs WHERE ended_at IS NOT NULL AND plan IS NULL AND shard = ?1 AND status = ?2 AND ended_at <= ?3
AND (ended_at, run) > (?4, ?5) ORDER BY ended_at, run LIMIT ?6";

/// As [`ENDED`], of tasks.
const ENDED_TASKS: &str =
    "SELECT * FROM runs WHERE ended_at IS NOT NULL AND plan IS NOT NULL AND shard = ?1 AND status = ?2 AND ended_at <= ?3
AND (ended_at, run) > (?4, ?5) ORDER BY ended_at, run LIMIT ?6";

/// The columns that every run has, in the order of the statements.
macro_rules! columns {
    ($row:expr) => {
        params![
            $row.run.as_str(),
            $row.shard,
            $row.workflow.as_str(),
            $row.tenant,
            $row.status.as_str(),
            $row.wait,
            $row.text,
            $row.recover.map(Recover::as_str),
            $row.started_at.as_micros(),
            $row.ended_at.map(Timestamp::as_micros),
        ]
    };
}

/// Comes after every id.
const AFTER_ALL: &str = "~";

/// Puts rows; one replaces another of its run. Those of runs that have just begun are probably new.
pub(crate) fn put(db: &Connection, rows: &[RunRow], begun: &BTreeSet<&RunId>) -> rusqlite::Result<()> {
    let is_new = |row: &&RunRow| row.task.is_none() && begun.contains(&row.run);
    let (new, known): (Vec<_>, Vec<_>) = rows.iter().partition(is_new);
    put_new(db, &new)?;
    let mut change = db.prepare_cached(CHANGE)?;
    for row in known {
        let params = columns!(row);
        if let Some(task) = &row.task {
            put_task(db, params, task)?;
        } else if change.execute(params)? == 0 {
            replace(db, row)?;
        }
    }
    Ok(())
}

/// Puts rows of runs that have just begun. If one of them is there after all, they all replace what
/// is there.
fn put_new(db: &Connection, rows: &[&RunRow]) -> rusqlite::Result<()> {
    let (many, few) = rows.as_chunks::<MANY>();
    let few = few.iter().map(std::slice::from_ref);
    for (sql, rows) in many.iter().map(|many| (&PUT_MANY, &many[..])).chain(few.map(|one| (&PUT_ONE, one))) {
        let mut statement = db.prepare_cached(sql)?;
        for (nth, row) in rows.iter().enumerate() {
            for (column, value) in columns!(row).iter().enumerate() {
                statement.raw_bind_parameter(nth * COLUMNS + column + 1, value)?;
            }
        }
        if statement.raw_execute()? < rows.len() {
            rows.iter().try_for_each(|row| replace(db, row))?;
        }
    }
    Ok(())
}

fn replace(db: &Connection, row: &RunRow) -> rusqlite::Result<()> {
    db.prepare_cached(REPLACE)?.execute(columns!(row)).map(drop)
}

/// Puts the row of a task, of which the columns of every run are given.
fn put_task(db: &Connection, run: &[&dyn ToSql], task: &TaskRow) -> rusqlite::Result<()> {
    let (plan, status, begun_at) = (task.plan.as_str(), task.status.as_str(), task.started_at.map(Timestamp::as_micros));
    let task: [&dyn ToSql; 7] = [&plan, &status, &task.stage, &task.completed, &task.checkpoint, &task.pause_requested, &begun_at];
    let all = [run, &task].concat();
    if db.prepare_cached(CHANGE_TASK)?.execute(&all[..])? == 0 {
        db.prepare_cached(PUT_TASK)?.execute(&all[..])?;
    }
    Ok(())
}

/// The row of a run.
pub(crate) fn get(db: &Connection, run: &RunId) -> rusqlite::Result<Option<RunRow>> {
    db.prepare_cached(GET)?.query_row([run.as_str()], row).optional()
}

/// The runs of a shard that a restart has something to do with, oldest first, from the one after
/// that place.
pub(crate) fn to_recover(db: &Connection, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> rusqlite::Result<Vec<RunRow>> {
    let (at, run) = after.map_or((i64::MIN, ""), |after| (after.started_at.as_micros(), after.run.as_str()));
    db.prepare_cached(RECOVER)?.query_map((shard, at, run, rows(limit)), row)?.collect()
}

/// The runs of a shard, oldest first, from the one after that place.
pub(crate) fn oldest(db: &Connection, shard: ShardId, after: Option<&RunCursor>, limit: usize) -> rusqlite::Result<Vec<RunRow>> {
    let (at, run) = after.map_or((i64::MIN, ""), |after| (after.started_at.as_micros(), after.run.as_str()));
    db.prepare_cached(OLDEST)?.query_map((shard, at, run, rows(limit)), row)?.collect()
}

/// Ended runs, in the order of their ends, from the one after that place.
pub(crate) fn ended(db: &Connection, filter: &EndedFilter, after: Option<&EndedCursor>, limit: usize) -> rusqlite::Result<Vec<RunRow>> {
    let EndedFilter { shard, status, tasks, until } = filter;
    let (at, run) = after.map_or((i64::MIN, ""), |after| (after.ended_at.as_micros(), after.run.as_str()));
    let mut statement = db.prepare_cached(if *tasks { ENDED_TASKS } else { ENDED })?;
    let params = (shard, status.as_str(), until.as_micros(), at, run, rows(limit));
    statement.query_map(params, row)?.collect()
}

/// The runs that the filter lets through, newest first, from the one after that place.
pub(crate) fn list(db: &Connection, filter: &RunFilter, after: Option<&RunCursor>, limit: usize) -> rusqlite::Result<Vec<RunRow>> {
    walk(db, filter, after, limit, |rows| rows.collect())
}

/// Those of them that have that text, among so many at most.
pub(crate) fn search(
    db: &Connection,
    filter: &RunFilter,
    text: &str,
    after: Option<&RunCursor>,
    limit: usize,
    examined_max: usize,
) -> rusqlite::Result<RunPage> {
    walk(db, filter, after, examined_max, |rows| RunPage::search(rows, text, limit, examined_max))
}

/// Reads the runs that the filter lets through one by one, for as long as somebody wants them.
fn walk<T>(
    db: &Connection,
    filter: &RunFilter,
    after: Option<&RunCursor>,
    limit: usize,
    read: impl FnOnce(&mut dyn Iterator<Item = rusqlite::Result<RunRow>>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let (before_at, before) = before(filter, after);
    let (since, limit) = (filter.since.map_or(0, Timestamp::as_micros), rows(limit));
    let workflow = filter.workflow.as_ref().map(WorkflowName::as_str);
    let mut params: Vec<(&str, &dyn ToSql)> =
        vec![(":since", &since), (":before_at", &before_at), (":before", &before), (":limit", &limit)];
    params.extend(workflow.as_ref().map(|workflow| (":workflow", workflow as &dyn ToSql)));
    params.extend(filter.tenant.as_ref().map(|tenant| (":tenant", tenant as &dyn ToSql)));
    params.extend(filter.wait.as_ref().map(|wait| (":wait", wait as &dyn ToSql)));
    let mut statement = db.prepare_cached(&list_sql(filter))?;
    let mut rows = statement.query_map(&params[..], row)?;
    read(&mut rows)
}

/// Everything in the list comes before this place: that of the cursor, or the end of the time asked
/// for.
fn before<'a>(filter: &RunFilter, after: Option<&'a RunCursor>) -> (i64, &'a str) {
    let until = filter.until.map(|until| (until.as_micros(), ""));
    let after = after.map(|after| (after.started_at.as_micros(), after.run.as_str()));
    until.into_iter().chain(after).min().unwrap_or((i64::MAX, AFTER_ALL))
}

/// The query has only what the filter asks for, so that SQLite finds the index for it. A status is
/// written out, because the index has not all of them: every run is RUNNING once, so those are
/// found by what a restart has to do with them, and most end up COMPLETED.
fn list_sql(filter: &RunFilter) -> String {
    let status = filter.status.map(|status| match status {
        Status::Completed => " AND status = 'COMPLETED'".to_string(),
        Status::Running => " AND status = 'RUNNING' AND recover IS NOT NULL".to_string(),
        other => format!(" AND status = '{}' AND status <> 'COMPLETED' AND status <> 'RUNNING'", other.as_str()),
    });
    let clauses = [
        status.as_deref(),
        filter.workflow.as_ref().map(|_| " AND workflow = :workflow"),
        filter.tenant.as_ref().map(|_| " AND tenant = :tenant"),
        filter.wait.as_ref().map(|_| " AND wait = :wait"),
    ];
    let clauses: String = clauses.into_iter().flatten().collect();
    format!(
        "SELECT * FROM runs WHERE started_at >= :since AND (started_at, run) < (:before_at, :before){clauses}
ORDER BY started_at DESC, run DESC LIMIT :limit"
    )
}

pub(super) fn row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        shard: row.get("shard")?,
        run: parsed(row, "run", |id| RunId::new(id).ok())?,
        workflow: parsed(row, "workflow", |name| WorkflowName::new(name).ok())?,
        tenant: row.get("tenant")?,
        status: parsed(row, "status", Status::parse)?,
        wait: row.get("wait")?,
        text: row.get("text")?,
        recover: recover(row)?,
        started_at: time(row, "started_at")?,
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(Timestamp::from_micros),
        task: tasks::of_row(row)?,
    })
}

fn recover(row: &Row<'_>) -> rusqlite::Result<Option<Recover>> {
    match row.get_ref("recover")? {
        ValueRef::Null => Ok(None),
        _ => parsed(row, "recover", Recover::parse).map(Some),
    }
}

#[cfg(test)]
mod tests;
