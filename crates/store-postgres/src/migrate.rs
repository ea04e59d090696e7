//! The schema: numbered files, each applied once, in order, by one program at a time.
//!
//! What was applied stands in `steadfast.migrations`, with a checksum of its text. A newer program may have applied more than is known here; each says which is the
//! oldest version that can go on beside it.

use crate::connect::{Connection, Connector};
use crate::error::has_code;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use steadfast_store::Error;
use tokio_postgres::error::SqlState;

struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
    /// The oldest schema version whose programs can run with this one.
    compatible_from: u32,
}

const MIGRATIONS: [Migration; 5] = [
    Migration { version: 1, name: "tables", sql: include_str!("../migrations/0001_tables.sql"), compatible_from: 1 },
    Migration { version: 2, name: "fence", sql: include_str!("../migrations/0002_fence.sql"), compatible_from: 2 },
    Migration { version: 3, name: "indexes", sql: include_str!("../migrations/0003_indexes.sql"), compatible_from: 2 },
    Migration { version: 4, name: "leases", sql: include_str!("../migrations/0004_leases.sql"), compatible_from: 2 },
    Migration { version: 5, name: "lost", sql: include_str!("../migrations/0005_lost.sql"), compatible_from: 2 },
];

/// The version of the schema that this program knows, for SQL.
pub(crate) fn known() -> i32 {
    MIGRATIONS.last().map_or(0, |last| last.version.cast_signed())
}

/// How long a migration waits for a table before it lets others through, who wait behind it, and tries again; and how often.
const LOCK_TIMEOUT: &str = "2s";
const TRIES_MAX: u32 = 100;

/// Holds off other programs that want to apply something: "STFD".
const LOCK: i64 = 0x5354_4644;

/// Whoever may not create a schema can use one that is there already.
const SCHEMA: &str = "CREATE SCHEMA IF NOT EXISTS steadfast;
COMMENT ON SCHEMA steadfast IS 'Steadfast: work that survives failure. Begin with workflow_state and workflow_events.'";

const BEGIN: &str = "CREATE TABLE IF NOT EXISTS steadfast.migrations (
  version         integer PRIMARY KEY,
  name            text NOT NULL,
  checksum        text NOT NULL,
  compatible_from integer NOT NULL,
  applied_at      timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE steadfast.migrations IS 'What was done to this schema. It is changed by the program alone.';";

/// One that was applied.
struct Applied {
    version: u32,
    checksum: String,
    compatible_from: u32,
}

/// Brings the schema up to date; how many shards there are.
///
/// # Errors
/// [`Error::Newer`] if a newer program has changed it so that this one cannot run with it, [`Error::Corrupt`] if it is not what it was when it was applied.
pub(crate) async fn migrate(connector: &Connector) -> Result<u32, Error> {
    let connection = connector.connect("steadfast migration").await?;
    let work = Work { connector, connection: &connection };
    if !work.is_up_to_date().await? {
        work.run("SET statement_timeout = 0; SET lock_timeout = '10min'").await?;
        work.run(&format!("SELECT pg_advisory_lock({LOCK})")).await?; // until the connection ends
        if !work.is_up_to_date().await? {
            work.apply().await?;
        }
    }
    work.shards().await
}

/// What was decided under that name: `proposed`, if nothing was before.
///
/// # Errors
/// If the database cannot be reached or written.
pub(crate) async fn setting(connector: &Connector, name: &str, proposed: &str) -> Result<String, Error> {
    let connection = connector.connect("steadfast settings").await?;
    let (what, database) = ("keep a setting", &connector.database);
    let client = &connection.client;
    let decide = async {
        client
            .execute("INSERT INTO steadfast.settings VALUES ($1, $2) ON CONFLICT DO NOTHING", &[&name, &proposed])
            .await?;
        client.query_one("SELECT value FROM steadfast.settings WHERE name = $1", &[&name]).await?.try_get(0)
    };
    match tokio::time::timeout(connector.patience(), decide).await {
        Ok(decided) => decided.map_err(|error| database.trouble(what, error)),
        Err(_) => Err(database.too_slow(what)),
    }
}

/// What a database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The version of its schema.
    pub schema: u32,
    /// How many shards it has.
    pub shards: u32,
}

/// Looks at a database, and changes nothing. Nothing if it has no tables of ours yet.
///
/// # Errors
/// As those of opening it.
pub(crate) async fn look(connector: &Connector) -> Result<Option<Look>, Error> {
    let connection = connector.connect("steadfast look").await?;
    let work = Work { connector, connection: &connection };
    let applied = work.applied().await?;
    work.verify(&applied)?;
    match applied.last() {
        Some(last) => Ok(Some(Look { schema: last.version, shards: work.shards().await? })),
        None => Ok(None),
    }
}

/// Says whether the schema can still be used, now that some time has passed.
///
/// # Errors
/// As [`migrate`].
pub(crate) async fn verify(connector: &Connector, connection: &Connection) -> Result<(), Error> {
    let work = Work { connector, connection };
    work.verify(&work.applied().await?)
}

struct Work<'a> {
    connector: &'a Connector,
    connection: &'a Connection,
}

impl Work<'_> {
    async fn run(&self, sql: &str) -> Result<(), Error> {
        let outcome = self.connection.client.batch_execute(sql).await;
        outcome.map_err(|error| self.connector.database.trouble("bring the schema up to date", error))
    }

    /// The same; what it waits for is waited for in pieces, so that nobody has to wait behind it for long.
    async fn run_patiently(&self, sql: &str) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.connection.client.batch_execute(sql).await {
                Ok(()) => return Ok(()),
                Err(error) if has_code(&error, SqlState::LOCK_NOT_AVAILABLE.code()) && tries < TRIES_MAX => {
                    tracing::warn!(tries, "a migration waits for a table that somebody uses");
                    self.run("ROLLBACK").await?;
                    self.run("SELECT pg_sleep(1)").await?;
                }
                Err(error) => return Err(self.connector.database.trouble("bring the schema up to date", error)),
            }
        }
    }

    async fn rows(&self, sql: &str) -> Result<Vec<tokio_postgres::Row>, Error> {
        let (what, database) = ("read the schema", &self.connector.database);
        match tokio::time::timeout(self.connector.patience(), self.connection.client.query(sql, &[])).await {
            Ok(rows) => rows.map_err(|error| database.trouble(what, error)),
            Err(_) => Err(database.too_slow(what)),
        }
    }

    async fn is_up_to_date(&self) -> Result<bool, Error> {
        let applied = self.applied().await?;
        self.verify(&applied)?;
        Ok(applied.len() >= MIGRATIONS.len())
    }

    async fn applied(&self) -> Result<Vec<Applied>, Error> {
        if self
            .rows("SELECT FROM pg_tables WHERE schemaname = 'steadfast' AND tablename = 'migrations'")
            .await?
            .is_empty()
        {
            return Ok(Vec::new());
        }
        let rows = self
            .rows("SELECT version, checksum, compatible_from FROM steadfast.migrations ORDER BY version")
            .await?;
        let read = |row: &tokio_postgres::Row| {
            let (version, compatible_from): (i32, i32) = (row.try_get(0).ok()?, row.try_get(2).ok()?);
            Some(Applied {
                version: version.try_into().ok()?,
                checksum: row.try_get(1).ok()?,
                compatible_from: compatible_from.try_into().ok()?,
            })
        };
        let all: Option<_> = rows.iter().map(read).collect();
        all.ok_or_else(|| self.connector.database.corrupt("steadfast.migrations is not what this program made"))
    }

    fn verify(&self, applied: &[Applied]) -> Result<(), Error> {
        let database = &self.connector.database;
        let known = MIGRATIONS.last().map_or(0, |last| last.version);
        for (expected, found) in (1..).zip(applied) {
            if found.version != expected {
                return Err(database.corrupt(format!("migration {expected} of its schema is missing")));
            }
            let ours = MIGRATIONS.iter().find(|ours| ours.version == expected);
            if ours.is_some_and(|ours| checksum(ours) != found.checksum) {
                return Err(database.corrupt(format!("migration {expected} of its schema is not the one that this program knows")));
            }
            if found.compatible_from > known {
                let newest = applied.last().map_or(known, |last| last.version);
                return Err(Error::Newer { path: database.0.clone().into(), found: newest, known });
            }
        }
        Ok(())
    }

    /// Applies what is missing, each in a transaction of its own.
    async fn apply(&self) -> Result<(), Error> {
        self.run(&format!("SET lock_timeout = '{LOCK_TIMEOUT}'")).await?;
        if self.rows("SELECT FROM pg_namespace WHERE nspname = 'steadfast'").await?.is_empty() {
            self.run(SCHEMA).await?;
        }
        self.run(BEGIN).await?;
        let applied = self.applied().await?.len();
        for migration in MIGRATIONS.iter().skip(applied) {
            let Migration { version, name, sql, compatible_from } = migration;
            let checksum = checksum(migration);
            let shards = self.connector.settings().shards;
            let first = match version {
                1 => format!(
                    "INSERT INTO steadfast.settings VALUES ('shards', '{shards}'); INSERT INTO steadfast.shards (id) SELECT generate_series(0, {shards} - 1);"
                ),
                _ => String::new(),
            };
            self.run_patiently(&format!(
                "BEGIN; {sql}; {first}
INSERT INTO steadfast.migrations (version, name, checksum, compatible_from) VALUES ({version}, '{name}', '{checksum}', {compatible_from});
COMMIT"
            ))
            .await?;
            tracing::info!(database = %self.connector.database.0, version, name, "the schema was brought up to date");
        }
        Ok(())
    }

    async fn shards(&self) -> Result<u32, Error> {
        let rows = self.rows("SELECT value FROM steadfast.settings WHERE name = 'shards'").await?;
        let count = rows.first().and_then(|row| row.try_get::<_, String>(0).ok()).and_then(|count| count.parse().ok());
        count
            .filter(|count| *count > 0)
            .ok_or_else(|| self.connector.database.corrupt("it does not say how many shards it has"))
    }
}

fn checksum(migration: &Migration) -> String {
    HEXLOWER.encode(&Sha256::digest(migration.sql))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_and_say_who_can_run_beside_them() {
        for (number, migration) in (1..).zip(&MIGRATIONS) {
            assert_eq!(migration.version, number);
            assert!((1..=number).contains(&migration.compatible_from));
        }
    }

    /// Databases have them already: what is to be changed is a new one.
    #[test]
    fn what_was_released_is_never_changed() {
        let released: Vec<_> = include_str!("../migrations/checksums.txt").lines().collect();
        assert_eq!(MIGRATIONS.iter().map(checksum).collect::<Vec<_>>(), released);
    }
}
