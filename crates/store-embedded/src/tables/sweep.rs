//! `swept`: runs and plans that are not there any more and of which something is left; and how they are removed. Of a plan, `run` is `plan:ID`.
//!
//! A step removes so many rows and bytes, and then lets commits through. It takes away the row first, so that nobody finds the run or the plan; the table here has those whose
//! journal was too long for one step, so that nobody reads the rest of it and a restart finds it. There is no index by the time of an end, which every run would have to pay for:
//! who looks for runs to remove walks the rows, oldest first.
//!
//! Tested by `crates/crash-test/tests/it/removed.rs`.

use super::{feed, shards};
use rusqlite::{Connection, OptionalExtension, Row};
use steadfast_kernel::{EntityId, PlanStatus, Status};
use steadfast_store::{ShardId, Sweep, Swept};

pub(crate) const SCHEMA: &[&str] = &["CREATE TABLE swept (
  run   TEXT PRIMARY KEY,
  shard INTEGER NOT NULL
) STRICT, WITHOUT ROWID"];

/// How many rows one step removes: about 2 ms.
const ROWS: usize = 300;

/// How many bytes of payload one step removes; a single entry may have more.
const BYTES: i64 = 1 << 20;

/// What one costs beside its journal: its row, what the indexes have of it, and that its timers and messages are looked for.
const ROWS_BESIDE: usize = 5;

const END: &str = "SELECT shard, status, ended_at FROM runs WHERE run = ?1";

const END_OF_PLAN: &str =
    "SELECT shard, status, ended_at, EXISTS (SELECT 1 FROM runs WHERE runs.plan = ?1) AS has_tasks FROM plans WHERE plan = ?1";

const SPEAKS: &str = "SELECT EXISTS (SELECT 1 FROM outbox WHERE from_entity = ?1)";

/// The sizes are known without reading the payloads.
const ENTRIES: &str = "SELECT position, octet_length(payload) FROM events WHERE entity = ?1 ORDER BY seq LIMIT ?2";

const HALF: &str = "SELECT run FROM swept WHERE shard = ?1 ORDER BY run";

/// What one step may still do.
struct Budget {
    rows: usize,
    bytes: i64,
}

/// One step; nothing if another claim has the shard.
pub(crate) fn step(db: &Connection, shard: ShardId, term: u64, ended: &[Sweep]) -> rusqlite::Result<Option<Vec<Swept>>> {
    if shards::head(db, shard)?.term != term {
        return Ok(None);
    }
    let mut budget = Budget { rows: ROWS, bytes: BYTES };
    let mut swept = Vec::new();
    for sweep in ended {
        if budget.rows == 0 || budget.bytes <= 0 {
            break;
        }
        swept.push(one(db, shard, sweep, &mut budget)?);
        if swept.last() == Some(&Swept::Half) {
            break;
        }
    }
    Ok(Some(swept))
}

/// What of a shard is not gone yet.
pub(crate) fn half(db: &Connection, shard: ShardId) -> rusqlite::Result<Vec<EntityId>> {
    let mut statement = db.prepare_cached(HALF)?;
    statement.query_map([shard], |row| super::parsed(row, "run", EntityId::from_stored))?.collect()
}

fn one(db: &Connection, shard: ShardId, sweep: &Sweep, budget: &mut Budget) -> rusqlite::Result<Swept> {
    let id = &*sweep.entity.to_string();
    budget.rows = budget.rows.saturating_sub(ROWS_BESIDE);
    let is_new = match may_go(db, shard, sweep)? {
        Some(true) if !speaks(db, id)? => {
            remove_row(db, &sweep.entity)?;
            db.prepare_cached("DELETE FROM timers WHERE run = ?1")?.execute([id])?;
            db.prepare_cached("DELETE FROM snapshots WHERE entity = ?1")?.execute([id])?;
            true
        }
        Some(_) => return Ok(Swept::Kept),
        None if is_half(db, shard, id)? => false,
        None => return Ok(Swept::Gone),
    };
    feed::remember(db)?;
    let all = remove_entries(db, id, budget)?;
    match (all, is_new) {
        (true, false) => db.prepare_cached("DELETE FROM swept WHERE run = ?1")?.execute([id]).map(drop)?,
        (false, true) => db
            .prepare_cached("INSERT INTO swept (run, shard) VALUES (?1, ?2)")?
            .execute((id, shard))
            .map(drop)?,
        _ => {}
    }
    Ok(if all { Swept::Gone } else { Swept::Half })
}

/// Whether it may be removed as far as the rows tell; nothing if it is not there.
fn may_go(db: &Connection, shard: ShardId, sweep: &Sweep) -> rusqlite::Result<Option<bool>> {
    let is_over = |row: &Row<'_>, is_final: bool| -> rusqlite::Result<bool> {
        let (of, ended_at): (ShardId, Option<i64>) = (row.get("shard")?, row.get("ended_at")?);
        Ok(is_final && of == shard && ended_at == Some(sweep.ended_at.as_micros()))
    };
    match &sweep.entity {
        EntityId::Run(run) => db
            .prepare_cached(END)?
            .query_row([run.as_str()], |row| is_over(row, super::parsed(row, "status", Status::parse)?.is_final()))
            .optional(),
        EntityId::Plan(plan) => db
            .prepare_cached(END_OF_PLAN)?
            .query_row([plan.as_str()], |row| {
                let is_final = super::parsed(row, "status", PlanStatus::parse)?.is_final();
                Ok(is_over(row, is_final)? && !row.get::<_, bool>("has_tasks")?)
            })
            .optional(),
        EntityId::Limit(_) | EntityId::Letters(_) | EntityId::Key(_) | EntityId::Lock(_) | EntityId::Route(_) => Ok(Some(false)),
    }
}

fn remove_row(db: &Connection, entity: &EntityId) -> rusqlite::Result<()> {
    match entity {
        EntityId::Run(run) => db.prepare_cached("DELETE FROM runs WHERE run = ?1")?.execute([run.as_str()]).map(drop),
        EntityId::Plan(plan) => db.prepare_cached("DELETE FROM plans WHERE plan = ?1")?.execute([plan.as_str()]).map(drop),
        EntityId::Limit(_) | EntityId::Letters(_) | EntityId::Key(_) | EntityId::Lock(_) | EntityId::Route(_) => Ok(()),
    }
}

fn speaks(db: &Connection, run: &str) -> rusqlite::Result<bool> {
    db.prepare_cached(SPEAKS)?.query_row([run], |row| row.get(0))
}

fn is_half(db: &Connection, shard: ShardId, run: &str) -> rusqlite::Result<bool> {
    let mut statement = db.prepare_cached("SELECT EXISTS (SELECT 1 FROM swept WHERE run = ?1 AND shard = ?2)")?;
    statement.query_row((run, shard), |row| row.get(0))
}

/// Removes entries from the front of a journal, at least one. True if that was all.
fn remove_entries(db: &Connection, run: &str, budget: &mut Budget) -> rusqlite::Result<bool> {
    let most = budget.rows.max(1);
    let mut statement = db.prepare_cached(ENTRIES)?;
    let entries = statement.query_map((run, super::limit(most + 1)), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)))?;
    let entries: Vec<_> = entries.collect::<Result<_, _>>()?;
    let mut remove = db.prepare_cached("DELETE FROM events WHERE position = ?1")?;
    for (nth, (position, bytes)) in entries.into_iter().enumerate() {
        if nth > 0 && (nth == most || budget.bytes <= 0) {
            return Ok(false);
        }
        remove.execute([position])?;
        budget.rows = budget.rows.saturating_sub(1);
        budget.bytes -= bytes.unwrap_or_default();
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;
    use steadfast_kernel::Timestamp;

    #[test]
    fn a_step_looks_at_nothing_but_what_is_to_go() {
        let db = database();
        for (sql, expected) in [
            (END, "SEARCH runs USING INDEX sqlite_autoindex_runs_1 (run=?)"),
            ("DELETE FROM timers WHERE run = ?1", "SEARCH timers USING PRIMARY KEY (run=?)"),
        ] {
            assert_eq!(plan(&db, sql, ["a"]), expected);
        }
        let of_plan = plan(&db, END_OF_PLAN, ["a"]);
        assert!(of_plan.starts_with("SEARCH plans USING INDEX sqlite_autoindex_plans_1 (plan=?)"), "{of_plan}");
        assert!(of_plan.contains("SEARCH runs USING COVERING INDEX runs_plan (plan=?)"), "{of_plan}");
        assert!(plan(&db, SPEAKS, ["a"]).contains("SEARCH outbox USING PRIMARY KEY (from_entity=?)"));
        assert_eq!(plan(&db, ENTRIES, ("a", 9)), "SEARCH events USING INDEX sqlite_autoindex_events_1 (entity=?)");
    }

    #[test]
    fn large_payloads_go_in_steps_of_their_own() {
        let db = database();
        db.execute_batch(
            "INSERT INTO runs (run, shard, workflow, status, started_at, ended_at) VALUES ('a', 0, 'w', 'COMPLETED', 1, 9);
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 6)
             INSERT INTO events (entity, seq, epoch, type, at, encoding, payload, body) SELECT 'a', n, 1, 'X', 0, 'json', zeroblob(700000), x'' FROM n",
        )
        .unwrap();
        let runs = [Sweep { entity: EntityId::from_stored("a").unwrap(), ended_at: Timestamp::from_micros(9) }];
        for left in [4, 2] {
            assert_eq!(step(&db, 0, 0, &runs).unwrap().unwrap(), [Swept::Half]);
            let events: i64 = db.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
            assert_eq!(events, left);
        }
        assert_eq!(step(&db, 0, 0, &runs).unwrap().unwrap(), [Swept::Gone]);
        assert!(half(&db, 0).unwrap().is_empty());
    }
}
