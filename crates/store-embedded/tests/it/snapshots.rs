//! Compares the schema of a new database file with the committed snapshot.

use crate::fixture::person;
use rusqlite::Connection;
use std::fmt::Write;
use steadfast_store_embedded::Embedded;
use steadfast_test_snapshots::assert_snapshot;

#[test]
fn schema_matches_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    drop(Embedded::open(dir.path()).unwrap());
    let file = person(dir.path());
    let mut text = String::new();
    for pragma in ["application_id", "user_version", "auto_vacuum", "encoding", "journal_mode", "page_size"] {
        let value: String = file
            .query_row(&format!("SELECT CAST({pragma} AS TEXT) FROM pragma_{pragma}"), [], |row| row.get(0))
            .unwrap();
        writeln!(text, "pragma {pragma} = {value}").unwrap();
    }
    assert_snapshot("schema-embedded.sql", &(text + &objects(&file)));
}

/// Every table, index, view and trigger, by type and name.
fn objects(file: &Connection) -> String {
    let mut statement = file
        .prepare("SELECT type, name, coalesce(sql, 'made by SQLite') FROM sqlite_schema ORDER BY type, name")
        .unwrap();
    let object = |row: &rusqlite::Row<'_>| {
        let (kind, name, sql): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(format!("\n{kind} {name}\n  {}\n", sql.replace('\n', "\n  ")))
    };
    statement.query_map([], object).unwrap().collect::<Result<String, _>>().unwrap()
}
