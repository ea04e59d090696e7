//! The order of writing, which is that of `events.position` for all shards together; and `places`, which remembers the last place when what stood there is removed.

use super::events::record;
use super::{count, integer, limit as rows, parsed};
use rusqlite::{Connection, Row};
use steadfast_kernel::{EntityId, PlanId};
use steadfast_store::{Fed, Place, Position, ShardId};

pub(crate) const SCHEMA: &[&str] = &["CREATE TABLE places (
  last INTEGER NOT NULL -- the last position when rows of `events` were removed; those after it are not given again either
) STRICT"];

const LAST: &str = "SELECT max(coalesce((SELECT max(position) FROM events), 0), coalesce((SELECT max(last) FROM places), 0))";

const REMOVED_LAST: &str = "SELECT max(last) FROM places WHERE last > coalesce((SELECT max(position) FROM events), 0)";

const ALL: &str = "SELECT e.*, r.tenant, r.plan FROM events AS e LEFT JOIN runs AS r ON r.run = e.entity
WHERE e.position > ?1 AND NOT EXISTS (SELECT 1 FROM swept WHERE run = e.entity) ORDER BY e.position LIMIT ?2";

/// All shards share one order of writing; it goes by the number of the first one.
const ORDER: ShardId = 0;

/// An entity's positions stand in the index of its sequences, as those of all rows do.
const OF_ENTITY: &str = "SELECT e.*, r.tenant, r.plan FROM events AS e LEFT JOIN runs AS r ON r.run = e.entity
WHERE e.entity = ?3 AND e.position > ?1 AND NOT EXISTS (SELECT 1 FROM swept WHERE run = ?3) ORDER BY e.seq LIMIT ?2";

/// The number of the place that was given last.
pub(crate) fn last(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached(LAST)?.query_row([], |row| row.get(0))
}

/// The position that was given last, if its row was removed: SQLite would give it again.
pub(crate) fn removed_last(db: &Connection) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached(REMOVED_LAST)?.query_row([], |row| row.get(0))
}

/// Up to what was written last.
pub(crate) fn end(db: &Connection) -> rusqlite::Result<Position> {
    Ok(Position::from_iter([place(last(db)?.cast_unsigned())]))
}

/// Remembers the last place, before rows are removed.
pub(crate) fn remember(db: &Connection) -> rusqlite::Result<()> {
    let last = last(db)?;
    if db.prepare_cached("UPDATE places SET last = ?1")?.execute([last])? == 0 {
        db.prepare_cached("INSERT INTO places (last) VALUES (?1)")?.execute([last])?;
    }
    Ok(())
}

/// What was written after a place.
pub(crate) fn after(db: &Connection, after: &Position, entity: Option<&EntityId>, limit: usize) -> rusqlite::Result<Vec<Fed>> {
    let (after, limit) = (integer(after.number(ORDER)), rows(limit));
    match entity {
        None => db.prepare_cached(ALL)?.query_map((after, limit), fed)?.collect(),
        Some(entity) => db.prepare_cached(OF_ENTITY)?.query_map((after, limit, entity.to_string()), fed)?.collect(),
    }
}

fn place(number: u64) -> Place {
    Place { shard: ORDER, number }
}

fn fed(row: &Row<'_>) -> rusqlite::Result<Fed> {
    Ok(Fed {
        place: place(count(row, "position")?),
        entity: parsed(row, "entity", EntityId::from_stored)?,
        tenant: row.get("tenant")?,
        plan: row.get::<_, Option<String>>("plan")?.and_then(|plan| PlanId::new(plan).ok()),
        record: record(row)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn the_feed_is_read_in_its_order_without_sorting() {
        let all = plan(&database(), ALL, (0, 10));
        assert!(all.starts_with("SEARCH e USING INTEGER PRIMARY KEY (rowid>?)"), "{all}");
        let one = plan(&database(), OF_ENTITY, (0, 10, "a"));
        assert!(one.contains("SEARCH e USING INDEX sqlite_autoindex_events_1 (entity=?"), "{one}");
        for plan in [all, one] {
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
