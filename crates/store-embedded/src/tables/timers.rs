//! `timers`: what is to fire, in the order in which it is due. Since there are keys, `run` is whose timer it is: a run's id, `key:KEY` or `lock:TENANT`.

use super::{count, integer, limit as rows, parsed, time};
use rusqlite::{Connection, Row, named_params};
use steadfast_kernel::{EntityId, Timer, TimerName, Timestamp};
use steadfast_store::{ShardId, TimerChange, TimerKey};

pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE timers (
  run      TEXT NOT NULL,
  name     TEXT NOT NULL,    -- retry:STEP, sleep:SLEEP or deadline
  shard    INTEGER NOT NULL,
  due      INTEGER NOT NULL, -- microseconds since 1970, UTC
  rank     INTEGER NOT NULL, -- retries before sleeps before the deadline
  revision INTEGER NOT NULL, -- the sequence of the event that armed it
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID",
    "CREATE INDEX timers_due ON timers (shard, due, run, rank, name)",
    "CREATE VIEW due_timers AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', due / 1000000, 'unixepoch') || printf('.%06dZ', due % 1000000) AS time, run, name
FROM timers ORDER BY due, run, rank, name",
];

/// Values by number, as in `events`: many timers are armed by one commit.
const ARM: &str = "INSERT OR REPLACE INTO timers (run, name, shard, due, rank, revision)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

const DISARM: &str = "DELETE FROM timers WHERE run = ?1 AND name = ?2";

const LIST: &str = "SELECT run, name, due, revision FROM timers
WHERE shard = :shard AND (due, run, rank, name) > (:due, :run, :rank, :name) ORDER BY due, run, rank, name LIMIT :limit";

const FIRST_DUE: &str = "SELECT min(due) FROM timers WHERE shard = ?1";

/// When the first timer of a shard is due.
pub(crate) fn first_due(db: &Connection, shard: ShardId) -> rusqlite::Result<Option<Timestamp>> {
    let due: Option<i64> = db.prepare_cached(FIRST_DUE)?.query_row([shard], |row| row.get(0))?;
    Ok(due.map(Timestamp::from_micros))
}

/// Arms or disarms.
pub(crate) fn change(db: &Connection, change: &TimerChange) -> rusqlite::Result<()> {
    match change {
        TimerChange::Arm { shard, timer } => arm(db, *shard, timer),
        TimerChange::Disarm { entity, name } => db.prepare_cached(DISARM)?.execute((entity.to_string(), name.to_string())).map(drop),
    }
}

fn arm(db: &Connection, shard: ShardId, timer: &Timer) -> rusqlite::Result<()> {
    let (due, revision) = (timer.due.as_micros(), integer(timer.revision));
    let params = (timer.entity.to_string(), timer.name.to_string(), shard, due, timer.name.rank(), revision);
    db.prepare_cached(ARM)?.execute(params).map(drop)
}

/// The timers of a shard from the one after that key.
pub(crate) fn list(db: &Connection, shard: ShardId, after: Option<&TimerKey>, limit: usize) -> rusqlite::Result<Vec<Timer>> {
    let params = named_params! {
        ":shard": shard,
        ":due": after.map_or(-1, |key| key.due.as_micros()), // no timer is due before 0
        ":run": after.map(|key| key.entity.to_string()).unwrap_or_default(),
        ":rank": after.map_or(0, |key| key.name.rank()),
        ":name": after.map(|key| key.name.to_string()).unwrap_or_default(),
        ":limit": rows(limit),
    };
    db.prepare_cached(LIST)?.query_map(params, timer)?.collect()
}

fn timer(row: &Row<'_>) -> rusqlite::Result<Timer> {
    Ok(Timer {
        entity: parsed(row, "run", EntityId::from_stored)?,
        name: parsed(row, "name", TimerName::from_stored)?,
        due: time(row, "due")?,
        revision: count(row, "revision")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn timers_are_read_in_order_without_sorting() {
        let params = named_params! {":shard": 0, ":due": -1, ":run": "", ":rank": 0, ":name": "", ":limit": 10};
        let plan = plan(&database(), LIST, params);
        assert!(plan.starts_with("SEARCH timers USING INDEX timers_due (shard=? AND (due,run,rank,name)>(?,?,?,?))"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }
}
