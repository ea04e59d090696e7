//! The schema as a whole: what is made, and whether a file has it.

use crate::error;
use crate::tables::{
    callbacks, definitions, events, feed, keys, letters, locks, outbox, plans, runs, shards, snapshots, sweep, tasks, timers,
};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use steadfast_store::Error;

/// "STFD" in the header's `application_id`: the file is one of ours.
pub(crate) const APPLICATION_ID: u32 = 0x5354_4644;

/// The header's `user_version`.
pub(crate) const VERSION: u32 = 5;

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
        4 => &[plans::SCHEMA, tasks::SCHEMA, locks::SCHEMA],
        5 => &[runs::ENDED_SCHEMA],
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
    execute(connection, after + 1..=VERSION)?;
    connection.pragma_update(None, "user_version", VERSION)
}

/// Adds what came with those versions.
fn execute(connection: &Connection, mut versions: RangeInclusive<u32>) -> rusqlite::Result<()> {
    versions.try_for_each(|version| added(version).try_for_each(|statement| connection.execute_batch(statement)))
}

/// The definitions that a file of that version has. A table that was altered has the one that SQLite made of it, so it is asked.
fn expected(version: u32) -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_in_memory()?;
    execute(&connection, 1..=version)?;
    definitions(&connection)
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
    let has: BTreeSet<_> = definitions(connection).map_err(trouble)?.into_iter().collect();
    match expected(found).map_err(trouble)?.iter().find(|definition| !has.contains(*definition)) {
        None if found > 0 => Ok(()),
        None => Err(error::corrupt(path, format!("its schema version is {found}"))),
        Some(missing) => Err(error::corrupt(path, format!("its schema lacks {}", head_of(missing)))),
    }
}

/// In the order in which they were made.
fn definitions(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
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

    /// Files are compared with what the SQLite of today makes of an altered table, so all of them have to make the same of it.
    #[test]
    fn an_altered_table_has_the_definition_that_files_have() {
        let added = ", plan TEXT, task_status TEXT, stage INTEGER, completed INTEGER, checkpoint INTEGER, pause_requested INTEGER, begun_at INTEGER";
        let after = "ended_at   INTEGER";
        let runs = runs::SCHEMA[0].replace(after, &format!("{after}{added}"));
        assert!(expected(4).unwrap().contains(&runs), "{:#?}", expected(4).unwrap());
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
