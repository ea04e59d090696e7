//! The schema as a whole: what is made, and whether a file has it.

use crate::error;
use crate::tables::{callbacks, definitions, events, feed, keys, letters, outbox, runs, shards, snapshots, sweep, timers};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::Path;
use steadfast_store::Error;

/// "STFD" in the header's `application_id`: the file is one of ours.
pub(crate) const APPLICATION_ID: u32 = 0x5354_4644;

/// The header's `user_version`.
pub(crate) const VERSION: u32 = 3;

/// The statements that a version added, in the order of execution. What an older program has written is brought up to date by those that came after it.
fn added(version: u32) -> impl Iterator<Item = &'static str> {
    let tables: &[&[&str]] = match version {
        1 => &[
            shards::SCHEMA,
            events::SCHEMA,
            runs::SCHEMA,
            timers::SCHEMA,
            outbox::SCHEMA,
            letters::SCHEMA,
            snapshots::SCHEMA,
            sweep::SCHEMA,
        ],
        2 => &[definitions::SCHEMA, feed::SCHEMA],
        3 => &[keys::SCHEMA, callbacks::SCHEMA],
        _ => &[],
    };
    tables.iter().flat_map(|table| table.iter().copied())
}

/// Makes the schema in an empty file, in one transaction.
pub(crate) fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?; // has to be said before there is anything in the file
    let transaction = connection.transaction()?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    add(&transaction, 0)?;
    transaction.commit()
}

/// Brings a file that was verified up to date, in one transaction.
pub(crate) fn upgrade(connection: &mut Connection) -> rusqlite::Result<()> {
    let found = version(connection)?;
    if found == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    add(&transaction, found)?;
    transaction.commit()
}

/// Adds what came after that version.
fn add(connection: &Connection, after: u32) -> rusqlite::Result<()> {
    for statement in (after + 1..=VERSION).flat_map(added) {
        connection.execute_batch(statement)?;
    }
    connection.pragma_update(None, "user_version", VERSION)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Refuses a file whose schema is not the one of its version, as [`create`] made it. What people have added (views, say) is left alone.
///
/// The header was looked at before, but what the log says counts more: a newer program may have left its version there.
pub(crate) fn verify(connection: &Connection, path: &Path) -> Result<(), Error> {
    let trouble = |error| error::sqlite(path, "read the schema", error);
    let found = version(connection).map_err(trouble)?;
    if found > VERSION {
        return Err(Error::Newer { path: path.into(), found, known: VERSION });
    }
    let has = definitions(connection).map_err(trouble)?;
    match (1..=found).flat_map(added).find(|statement| !has.contains(*statement)) {
        None if found > 0 => Ok(()),
        None => Err(error::corrupt(path, format!("its schema version is {found}"))),
        Some(missing) => Err(error::corrupt(path, format!("its schema lacks {}", head_of(missing)))),
    }
}

fn definitions(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// `CREATE TABLE runs` of `CREATE TABLE runs (…`.
fn head_of(statement: &str) -> &str {
    statement
        .split([' ', '(', '\n'])
        .nth(2)
        .and_then(|name| statement.find(name).map(|at| &statement[..at + name.len()]))
        .unwrap_or(statement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_was_made_is_verified() {
        let mut connection = Connection::open_in_memory().unwrap();
        create(&mut connection).unwrap();
        connection.execute_batch("CREATE VIEW mine AS SELECT 1").unwrap();
        verify(&connection, Path::new("x.db")).unwrap();
    }

    #[test]
    fn a_missing_or_changed_part_is_named() {
        let mut connection = Connection::open_in_memory().unwrap();
        create(&mut connection).unwrap();
        connection.execute_batch("DROP INDEX timers_due").unwrap();
        let error = verify(&connection, Path::new("x.db")).unwrap_err();
        assert!(error.to_string().contains("lacks CREATE INDEX timers_due"), "{error}");
        connection.execute_batch("CREATE INDEX timers_due ON timers (due)").unwrap();
        let error = verify(&connection, Path::new("x.db")).unwrap_err();
        assert!(error.to_string().contains("lacks CREATE INDEX timers_due"), "{error}");
    }
}
