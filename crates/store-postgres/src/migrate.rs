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
    how: How,
}

/// How a migration is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// All of it in one transaction, which has what it touches for itself.
    AtOnce,
    /// One statement after the other, because an index of a table that is in use is built beside those who write it, and that cannot be part of a transaction. Each does
    /// nothing if it was done before.
    OneByOne,
}

const MIGRATIONS: [Migration; 10] = [
    Migration { version: 1, name: "tables", sql: include_str!("../migrations/0001_tables.sql"), compatible_from: 1, how: How::AtOnce },
    Migration { version: 2, name: "fence", sql: include_str!("../migrations/0002_fence.sql"), compatible_from: 2, how: How::AtOnce },
    Migration { version: 3, name: "indexes", sql: include_str!("../migrations/0003_indexes.sql"), compatible_from: 2, how: How::AtOnce },
    Migration { version: 4, name: "leases", sql: include_str!("../migrations/0004_leases.sql"), compatible_from: 2, how: How::AtOnce },
    Migration { version: 5, name: "lost", sql: include_str!("../migrations/0005_lost.sql"), compatible_from: 2, how: How::AtOnce },
    Migration {
        version: 6,
        name: "three filters",
        sql: include_str!("../migrations/0006_three_filters.sql"),
        compatible_from: 2,
        how: How::OneByOne,
    },
    Migration { version: 7, name: "vacuum", sql: include_str!("../migrations/0007_vacuum.sql"), compatible_from: 2, how: How::AtOnce },
    Migration { version: 8, name: "ended", sql: include_str!("../migrations/0008_ended.sql"), compatible_from: 2, how: How::OneByOne },
    Migration { version: 9, name: "waits", sql: include_str!("../migrations/0009_waits.sql"), compatible_from: 2, how: How::OneByOne },
    Migration {
        version: 10,
        name: "task counts",
        sql: include_str!("../migrations/0010_task_counts.sql"),
        compatible_from: 2,
        how: How::AtOnce,
    },
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

/// How long they wait for the one that applies something, a second at a time: an index of a large table takes a while. They ask again and again, because an index that
/// is built beside others waits for every statement that has begun before, and one that waits for its builder would never end.
const OTHERS_WAIT: u32 = 3600;

/// What is left of an index whose building was cut off.
const HALF_BUILT: &str = "SELECT indexrelid::regclass::text AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE NOT indisvalid AND relnamespace = 'steadfast'::regnamespace";

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
        work.run("SET statement_timeout = 0").await?;
        work.have_others_wait().await?;
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

    /// Waits until nobody else applies something; others wait from then on until the connection ends.
    async fn have_others_wait(&self) -> Result<(), Error> {
        for _ in 0..OTHERS_WAIT {
            let rows = self.rows(&format!("SELECT pg_try_advisory_lock({LOCK})")).await?;
            if rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default() {
                return Ok(());
            }
            self.run("SELECT pg_sleep(1)").await?;
        }
        Err(Error::Unavailable { what: "another program has been bringing the schema up to date for an hour".into(), source: None })
    }

    /// Applies one statement after the other. They wait for as long as it takes, since nobody waits behind them.
    async fn run_one_by_one(&self, sql: &str) -> Result<(), Error> {
        for half in self.rows(HALF_BUILT).await? {
            let name: String = half.try_get("name").map_err(|error| self.connector.database.trouble("read the schema", error))?;
            self.run(&format!("DROP INDEX CONCURRENTLY {name}")).await?;
        }
        self.run("SET lock_timeout = 0").await?;
        for statement in sql.split_inclusive(";\n") {
            self.run(statement).await?;
        }
        self.run(&format!("SET lock_timeout = '{LOCK_TIMEOUT}'")).await
    }

    /// The same as [`Work::run`]; what it waits for is waited for in pieces, so that nobody has to wait behind it for long.
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
                return Err(database.newer(newest));
            }
        }
        Ok(())
    }

    /// Applies what is missing.
    async fn apply(&self) -> Result<(), Error> {
        self.run(&format!("SET lock_timeout = '{LOCK_TIMEOUT}'")).await?;
        if self.rows("SELECT FROM pg_namespace WHERE nspname = 'steadfast'").await?.is_empty() {
            self.run(SCHEMA).await?;
        }
        self.run(BEGIN).await?;
        let applied = self.applied().await?.len();
        for migration in MIGRATIONS.iter().skip(applied) {
            let Migration { version, name, sql, compatible_from, how } = migration;
            let checksum = checksum(migration);
            let shards = self.connector.settings().shards;
            let first = match version {
                1 => format!(
                    "INSERT INTO steadfast.settings VALUES ('shards', '{shards}'); INSERT INTO steadfast.shards (id) SELECT generate_series(0, {shards} - 1);"
                ),
                _ => String::new(),
            };
            let sql = match how {
                How::AtOnce => *sql,
                How::OneByOne => {
                    self.run_one_by_one(sql).await?;
                    ""
                }
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

    /// A table that is in use is not kept from those who write it for as long as an index takes.
    #[test]
    fn indexes_of_tables_in_use_are_built_beside_those_who_write_them() {
        for migration in &MIGRATIONS[5..] {
            let indexes = migration.sql.matches("CREATE INDEX").count();
            assert_eq!(migration.sql.matches("CREATE INDEX CONCURRENTLY IF NOT EXISTS").count(), indexes, "{}", migration.name);
            assert_eq!(migration.how == How::OneByOne, indexes > 0, "{}", migration.name);
        }
    }

    /// Databases have them already: what is to be changed is a new one.
    #[test]
    fn what_was_released_is_never_changed() {
        let released: Vec<_> = include_str!("../migrations/checksums.txt").lines().collect();
        assert_eq!(MIGRATIONS.iter().map(checksum).collect::<Vec<_>>(), released);
    }
}
