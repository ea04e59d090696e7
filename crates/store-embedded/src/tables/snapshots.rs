//! `snapshots`: the last saved fold of each entity with a long journal. Whoever deletes them loses time at the next start, and nothing else.

use super::{count, integer};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};
use steadfast_kernel::{EntityId, Snapshot};

pub(crate) const SCHEMA: &[&str] = &["CREATE TABLE snapshots (
  entity TEXT PRIMARY KEY,
  seq    INTEGER NOT NULL, -- the last event that is part of it
  fold   INTEGER NOT NULL, -- the version of the program's fold that made it
  state  ANY NOT NULL      -- JSON
) STRICT"];

const PUT: &str = "INSERT OR REPLACE INTO snapshots (entity, seq, fold, state) VALUES (?1, ?2, ?3, ?4)";

const GET: &str = "SELECT seq, fold, state FROM snapshots WHERE entity = ?1";

pub(crate) fn put(db: &Connection, snapshot: &Snapshot) -> rusqlite::Result<()> {
    let Snapshot { entity, seq, fold, state } = snapshot;
    let state = if std::str::from_utf8(state).is_ok() { ValueRef::Text(state) } else { ValueRef::Blob(state) };
    let state = rusqlite::types::ToSqlOutput::Borrowed(state);
    db.prepare_cached(PUT)?.execute(params![entity.to_string(), integer(*seq), fold, state]).map(drop)
}

pub(crate) fn remove(db: &Connection, entity: &EntityId) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM snapshots WHERE entity = ?1")?
        .execute([entity.to_string()])
        .map(drop)
}

pub(crate) fn get(db: &Connection, entity: &EntityId) -> rusqlite::Result<Option<Snapshot>> {
    let mut statement = db.prepare_cached(GET)?;
    let found = statement.query_row([entity.to_string()], |row| {
        let state = match row.get_ref("state")? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec().into(),
            _ => Vec::new().into(), // it cannot be restored, and is as good as none
        };
        Ok(Snapshot { entity: entity.clone(), seq: count(row, "seq")?, fold: row.get("fold")?, state })
    });
    found.optional()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{database, plan};
    use super::*;

    #[test]
    fn a_snapshot_is_found_by_its_entity() {
        let plan = plan(&database(), GET, ["a"]);
        assert_eq!(plan, "SEARCH snapshots USING INDEX sqlite_autoindex_snapshots_1 (entity=?)");
    }
}
