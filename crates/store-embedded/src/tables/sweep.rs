//! `swept`: runs that are no runs any more and of which something is left; and how runs are removed.
//!
//! A step removes so many rows and bytes, and then lets commits through. It takes away the row of a run first, so that nobody finds the run; the table here has those whose
//! journal was too long for one step, so that nobody reads the rest of it and a restart finds it. There is no index by the time of an end, which every run would have to pay for:
//! who looks for runs to remove walks the rows, oldest first.

use super::{feed, shards};
use rusqlite::{Connection, OptionalExtension, Row};
use steadfast_kernel::{RunId, Status, Timestamp};
use steadfast_store::{ShardId, Sweep, Swept};

pub(crate) const SCHEMA: &[&str] = &["CREATE TABLE swept (
  run   TEXT PRIMARY KEY,
  shard INTEGER NOT NULL
) STRICT, WITHOUT ROWID"];

/// How many rows one step removes: about 2 ms.
const ROWS: usize = 300;

/// How many bytes of payload one step removes; a single entry may have more.
const BYTES: i64 = 1 << 20;

/// What a run costs beside its journal: its row, what the indexes have of it, and that its timers and messages are looked for.
const ROWS_PER_RUN: usize = 5;

const END: &str = "SELECT shard, status, ended_at FROM runs WHERE run = ?1";

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
pub(crate) fn step(db: &Connection, shard: ShardId, term: u64, runs: &[Sweep]) -> rusqlite::Result<Option<Vec<Swept>>> {
    if shards::head(db, shard)?.term != term {
        return Ok(None);
    }
    let mut budget = Budget { rows: ROWS, bytes: BYTES };
    let mut swept = Vec::new();
    for sweep in runs {
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

/// The runs of a shard of which something is left.
pub(crate) fn half(db: &Connection, shard: ShardId) -> rusqlite::Result<Vec<RunId>> {
    let mut statement = db.prepare_cached(HALF)?;
    statement.query_map([shard], |row| super::parsed(row, "run", |id| RunId::new(id).ok()))?.collect()
}

fn one(db: &Connection, shard: ShardId, sweep: &Sweep, budget: &mut Budget) -> rusqlite::Result<Swept> {
    let run = sweep.run.as_str();
    budget.rows = budget.rows.saturating_sub(ROWS_PER_RUN);
    let is_new = match db.prepare_cached(END)?.query_row([run], |row| end(row, shard)).optional()? {
        Some(Some(ended_at)) if ended_at == sweep.ended_at && !speaks(db, run)? => {
            db.prepare_cached("DELETE FROM runs WHERE run = ?1")?.execute([run])?;
            db.prepare_cached("DELETE FROM timers WHERE run = ?1")?.execute([run])?;
            db.prepare_cached("DELETE FROM snapshots WHERE entity = ?1")?.execute([run])?;
            true
        }
        Some(_) => return Ok(Swept::Kept),
        None if is_half(db, shard, run)? => false,
        None => return Ok(Swept::Gone),
    };
    feed::remember(db)?;
    let all = remove_entries(db, run, budget)?;
    match (all, is_new) {
        (true, false) => db.prepare_cached("DELETE FROM swept WHERE run = ?1")?.execute([run]).map(drop)?,
        (false, true) => db
            .prepare_cached("INSERT INTO swept (run, shard) VALUES (?1, ?2)")?
            .execute((run, shard))
            .map(drop)?,
        _ => {}
    }
    Ok(if all { Swept::Gone } else { Swept::Half })
}

/// When it ended, if it has and is one of that shard.
fn end(row: &Row<'_>, shard: ShardId) -> rusqlite::Result<Option<Timestamp>> {
    let is_final = super::parsed(row, "status", Status::parse)?.is_final();
    let mine = row.get::<_, ShardId>("shard")? == shard;
    let ended_at = row.get::<_, Option<i64>>("ended_at")?;
    Ok(ended_at.filter(|_| is_final && mine).map(Timestamp::from_micros))
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

    #[test]
    fn a_step_looks_at_nothing_but_the_run() {
        let db = database();
        for (sql, expected) in [
            (END, "SEARCH runs USING INDEX sqlite_autoindex_runs_1 (run=?)"),
            ("DELETE FROM timers WHERE run = ?1", "SEARCH timers USING PRIMARY KEY (run=?)"),
        ] {
            assert_eq!(plan(&db, sql, ["a"]), expected);
        }
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
        let runs = [Sweep { run: RunId::new("a").unwrap(), ended_at: Timestamp::from_micros(9) }];
        for left in [4, 2] {
            assert_eq!(step(&db, 0, 0, &runs).unwrap().unwrap(), [Swept::Half]);
            let events: i64 = db.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
            assert_eq!(events, left);
        }
        assert_eq!(step(&db, 0, 0, &runs).unwrap().unwrap(), [Swept::Gone]);
        assert!(half(&db, 0).unwrap().is_empty());
    }
}
