//! One file per table: its definition, what is written and what is read. Each write runs inside the transaction of its batch.

pub(crate) mod callbacks;
pub(crate) mod definitions;
pub(crate) mod events;
pub(crate) mod feed;
pub(crate) mod keys;
pub(crate) mod letters;
pub(crate) mod locks;
pub(crate) mod outbox;
pub(crate) mod plans;
pub(crate) mod runs;
pub(crate) mod shards;
pub(crate) mod snapshots;
pub(crate) mod sweep;
pub(crate) mod tasks;
pub(crate) mod timers;

use rusqlite::types::Type;
use rusqlite::{Error, Row};
use steadfast_kernel::Timestamp;

/// A count for a column. SQLite's integers are signed; no count gets near the end of them.
fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// How many rows at most.
fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Numbered placeholders for so many rows of values.
fn placeholders(rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let numbers = (1..=columns).map(|column| format!("?{}", row * columns + column));
        format!("({})", numbers.collect::<Vec<_>>().join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

/// A count from a column.
fn count(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|error| Error::FromSqlConversionFailure(0, Type::Integer, error.into()))
}

fn time(row: &Row<'_>, column: &str) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_micros)
}

/// A text column that has to be one of the things that are known. The error does not show the text.
fn parsed<T>(row: &Row<'_>, column: &str, parse: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    let unknown = || {
        let place = row.as_ref().column_index(column).unwrap_or_default();
        Error::FromSqlConversionFailure(place, Type::Text, format!("an unknown value in column {column}").into())
    };
    parse(&text).ok_or_else(unknown)
}

#[cfg(test)]
mod testing {
    use rusqlite::{Connection, Params};

    /// A database in memory with the schema.
    pub(super) fn database() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::schema::create(&mut connection).unwrap();
        connection
    }

    /// How SQLite would execute a query.
    pub(super) fn plan(connection: &Connection, sql: &str, params: impl Params) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map(params, |row| row.get::<_, String>("detail")).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>().join("\n")
    }
}
