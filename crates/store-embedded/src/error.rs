//! What SQLite and the file system say, in the words of the store. Neither puts stored values into its messages.

use crate::header::beside;
use rusqlite::{Error as Sqlite, ErrorCode};
use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use steadfast_store::Error;

/// How much room the disk is asked for: more than a small commit needs, so that a disk with a few blocks left counts as full.
const ROOM: usize = 64 * 1024;

/// Trouble with that database file while doing `what` ("read a journal").
pub(crate) fn sqlite(path: &Path, what: &str, error: Sqlite) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => return corrupt(path, error.to_string()),
        Some(ErrorCode::DiskFull) => return Error::Full { what: what.into(), source: error.into() },
        Some(ErrorCode::ReadOnly) => return Error::ReadOnly { what: what.into(), source: error.into() },
        // SQLite does not say why it could not write.
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            if let Some(error) = refused_by_the_disk(path).and_then(|why| no_room(what, why).ok()) {
                return error;
            }
        }
        _ => {}
    }
    match error {
        // The tables are STRICT, so a value of another kind than the one written means that the file was changed by something else.
        Sqlite::FromSqlConversionFailure(..)
        | Sqlite::InvalidColumnType(..)
        | Sqlite::IntegralValueOutOfRange(..)
        | Sqlite::Utf8Error(..) => corrupt(path, error.to_string()),
        _ => Error::unavailable(format!("cannot {what}"), error),
    }
}

/// Trouble with that file or folder while doing `what`.
pub(crate) fn io(path: &Path, what: &str, error: io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    no_room(&what, error).unwrap_or_else(|error| Error::unavailable(format!("cannot {what}"), error))
}

/// A disk that takes no more, or the error itself if it is another one.
fn no_room(what: &str, error: io::Error) -> Result<Error, io::Error> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Ok(Error::Full { what: what.into(), source: error.into() })
        }
        io::ErrorKind::ReadOnlyFilesystem => Ok(Error::ReadOnly { what: what.into(), source: error.into() }),
        _ => Err(error),
    }
}

/// Asks the disk for room beside the database, at the place where its log would grow, and tells why it was refused.
fn refused_by_the_disk(path: &Path) -> Option<io::Error> {
    let end = fs::metadata(beside(path, "-wal")).map_or(0, |log| log.len());
    let trial = beside(path, ".trial");
    let outcome = write_at(&trial, end);
    let _gone = fs::remove_file(&trial);
    outcome.err()
}

fn write_at(path: &Path, offset: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(&[0; ROOM])?;
    file.sync_data() // some file systems find out only now
}

/// A damaged file.
pub(crate) fn corrupt(path: &Path, why: impl Into<String>) -> Error {
    Error::Corrupt { path: path.into(), why: why.into() }
}

/// A thread of the store is gone, or the store is closing.
pub(crate) fn stopped(who: &str) -> Error {
    Error::Unavailable { what: format!("the {who} has stopped"), source: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;
    use steadfast_kernel::code;

    fn of(result: i32) -> Error {
        let dir = tempfile::tempdir().unwrap();
        sqlite(&dir.path().join("x.db"), "commit", Sqlite::SqliteFailure(ffi::Error::new(result), None))
    }

    #[test]
    fn damage_is_told_from_trouble_that_may_pass() {
        for damage in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_CORRUPT_INDEX] {
            assert_eq!(of(damage).code(), code::STORE_CORRUPT);
        }
        for passing in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_BUSY, ffi::SQLITE_CANTOPEN] {
            assert_eq!(of(passing).code(), code::STORE_UNAVAILABLE);
        }
    }

    #[test]
    fn a_disk_that_takes_no_more_is_named_and_may_take_more_later() {
        for (result, code) in [
            (ffi::SQLITE_FULL, code::STORE_FULL),
            (ffi::SQLITE_READONLY, code::STORE_READ_ONLY),
            (ffi::SQLITE_READONLY_DIRECTORY, code::STORE_READ_ONLY),
        ] {
            assert_eq!(of(result).code(), code);
            assert!(of(result).is_retryable());
        }
        for (kind, code) in [
            (io::ErrorKind::StorageFull, code::STORE_FULL),
            (io::ErrorKind::QuotaExceeded, code::STORE_FULL),
            (io::ErrorKind::FileTooLarge, code::STORE_FULL),
            (io::ErrorKind::ReadOnlyFilesystem, code::STORE_READ_ONLY),
            (io::ErrorKind::PermissionDenied, code::STORE_UNAVAILABLE),
        ] {
            assert_eq!(io(Path::new("data"), "make", kind.into()).code(), code);
        }
    }

    #[test]
    fn asking_the_disk_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refused_by_the_disk(&dir.path().join("x.db")).is_none());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
