//! Opening: take the lock, look at what is there, make it if nothing is, verify it, bring it up to date.

use crate::error;
use crate::header::{self, Found, beside};
use crate::schema;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::Error;

pub(crate) const DATABASE: &str = "steadfast.db";
pub(crate) const LOCK: &str = "steadfast.lock";
/// A database in the making. It gets its name when it is complete, so a kill in between leaves nothing that could be misread.
const DRAFT: &str = "steadfast.db.new";

/// How long to wait for somebody who has the database, which can only be a person's `sqlite3`: long enough for a short statement, short
/// enough for callers to hear of it soon.
const BUSY_FOR: Duration = Duration::from_secs(1);

/// More than the writer uses, which is twenty for a busy mixture alone: a statement that has no room is compiled again each time, which takes longer than to execute it.
const STATEMENTS_MAX: usize = 64;

/// How much of the file a connection may keep in memory, in KiB; it takes what it needs. With a million keys the inner pages of the indexes alone are more than SQLite's 2 MiB.
const CACHE_KIB: i64 = 16 * 1024;

/// A process that this one has just started holds what was open here until it begins its own program, so a lock that was given back a moment ago may still be
/// taken. Somebody who really has the folder has it for longer.
const LOCK_PAUSES_MS: [u64; 8] = [5, 10, 20, 50, 100, 200, 300, 315];

/// Files up to this size are read through at opening, which takes less than a tenth of a second. With larger ones opening would be slow,
/// and a restart has to be quick; their pages are checked as they are used.
const CHECK_BYTES_MAX: i64 = 16 * 1024 * 1024;

/// A store that was found good.
pub(crate) struct Opened {
    pub(crate) path: Arc<Path>,
    pub(crate) connection: Connection,
    pub(crate) lock: File,
}

/// Opens the store in that folder, or makes it.
pub(crate) fn open(dir: &Path) -> Result<Opened, Error> {
    make_folder(dir).map_err(|error| error::io(dir, "make the folder", error))?;
    let lock = lock(&dir.join(LOCK))?;
    let path: Arc<Path> = dir.join(DATABASE).into();
    if header::inspect(&path)? == Found::Nothing {
        create(dir, &path)?;
    }
    let mut connection = connect(&path)?;
    verify(&connection, &path)?;
    prepare(&mut connection).map_err(|error| error::sqlite(&path, "prepare the database", error))?;
    Ok(Opened { path, connection, lock })
}

/// A connection that writes.
pub(crate) fn connect(path: &Path) -> Result<Connection, Error> {
    connect_as(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// A connection that reads.
pub(crate) fn connect_read_only(path: &Path) -> Result<Connection, Error> {
    connect_as(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn connect_as(path: &Path, access: OpenFlags) -> Result<Connection, Error> {
    let trouble = |error| error::sqlite(path, "open the database", error);
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(trouble)?;
    connection.busy_timeout(BUSY_FOR).map_err(trouble)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(trouble)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(trouble)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// Makes a folder and those above it. A name is durable once the folder it stands in is synced.
fn make_folder(dir: &Path) -> io::Result<()> {
    if dir.as_os_str().is_empty() || dir.is_dir() {
        return Ok(());
    }
    let above = dir.parent().unwrap_or(dir);
    make_folder(above)?;
    match fs::create_dir(dir) {
        Err(error) if !dir.is_dir() => Err(error),
        _ => sync_folder(above),
    }
}

fn sync_folder(dir: &Path) -> io::Result<()> {
    let here = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(here)?.sync_all()
}

fn lock(path: &Path) -> Result<File, Error> {
    let trouble = |error| error::io(path, "lock", error);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(trouble)?;
    for pause in LOCK_PAUSES_MS {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::park_timeout(Duration::from_millis(pause)),
            Err(TryLockError::Error(error)) => return Err(trouble(error)),
        }
    }
    Err(Error::Locked { path: path.into() })
}

fn create(dir: &Path, path: &Path) -> Result<(), Error> {
    let draft = dir.join(DRAFT);
    clear(&draft).map_err(|error| error::io(&draft, "remove", error))?;
    fill(&draft).map_err(|error| error::sqlite(&draft, "make the database", error))?;
    publish(dir, &draft, path).map_err(|error| error::io(path, "make", error))
}

/// Removes what a creation that was killed has left.
fn clear(draft: &Path) -> io::Result<()> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        match fs::remove_file(beside(draft, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The schema is written with a rollback journal, so that the header in the main file tells what it is; only then comes the log.
fn fill(draft: &Path) -> rusqlite::Result<()> {
    let mut connection = Connection::open(draft)?;
    schema::create(&mut connection)?;
    use_log(&connection)?;
    connection.close().map_err(|(_, error)| error)
}

fn publish(dir: &Path, draft: &Path, path: &Path) -> io::Result<()> {
    File::open(draft)?.sync_all()?;
    fs::rename(draft, path)?;
    sync_folder(dir)
}

/// Looks at the content. Whatever is found, closing does not write into the main file yet.
fn verify(connection: &Connection, path: &Path) -> Result<(), Error> {
    let trouble = |error| error::sqlite(path, "check the database", error);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(trouble)?;
    schema::verify(connection, path)?;
    match damage(connection).map_err(trouble)? {
        Some(why) => Err(error::corrupt(path, why)),
        None => Ok(()),
    }
}

/// The first damage that is found.
fn damage(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if pragma("page_count")?.saturating_mul(pragma("page_size")?) > CHECK_BYTES_MAX {
        return Ok(None);
    }
    let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((answer != "ok").then_some(answer))
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    use_log(connection)?;
    schema::upgrade(connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)
}

/// The mode stays with the file; it is asked for at each opening in case somebody has changed it.
fn use_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_is_synced() {
        let dir = tempfile::tempdir().unwrap();
        let Opened { path, connection, .. } = open(dir.path()).unwrap();
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        for connection in [connection, connect(&path).unwrap()] {
            let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
            assert_eq!(synchronous, 2, "FULL");
        }
    }
}
