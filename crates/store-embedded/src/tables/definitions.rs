//! `definitions`: the texts of definitions, by their hash.

use super::{parsed, time};
use rusqlite::{Connection, Row};
use steadfast_kernel::WorkflowName;
use steadfast_store::Definition;

pub(crate) const SCHEMA: &[&str] = &["CREATE TABLE definitions (
  hash     TEXT PRIMARY KEY,  -- SHA-256 of the text, in hexadecimal
  workflow TEXT NOT NULL,
  text     TEXT NOT NULL,
  kept_at  INTEGER NOT NULL   -- microseconds since 1970, UTC
) STRICT, WITHOUT ROWID"];

/// Keeps a text unless it is there.
pub(crate) fn keep(db: &Connection, definition: &Definition) -> rusqlite::Result<()> {
    let Definition { hash, workflow, text, kept_at } = definition;
    db.prepare_cached("INSERT INTO definitions (hash, workflow, text, kept_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
        .execute((hash, workflow.as_str(), text, kept_at.as_micros()))
        .map(drop)
}

/// All of them, oldest first.
pub(crate) fn list(db: &Connection) -> rusqlite::Result<Vec<Definition>> {
    let mut statement = db.prepare("SELECT * FROM definitions ORDER BY kept_at, hash")?;
    statement.query_map([], row)?.collect()
}

fn row(row: &Row<'_>) -> rusqlite::Result<Definition> {
    Ok(Definition {
        hash: row.get("hash")?,
        workflow: parsed(row, "workflow", |name| WorkflowName::new(name).ok())?,
        text: row.get("text")?,
        kept_at: time(row, "kept_at")?,
    })
}
