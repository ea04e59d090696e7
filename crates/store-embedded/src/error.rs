//! What SQLite and the file system say, in the words of the store. Neither puts stored values into its messages.

use rusqlite::{Error as Sqlite, ErrorCode};
use std::io;
use std::path::Path;
use steadfast_store::Error;

/// Trouble with that database file while doing `what` ("read a journal").
pub(crate) fn sqlite(path: &Path, what: &str, error: Sqlite) -> Error {
    match error {
        Sqlite::SqliteFailure(inner, _) if matches!(inner.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            corrupt(path, error.to_string())
        }
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
    Error::unavailable(format!("cannot {what} {}", path.display()), error)
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

    fn code_of(result: i32) -> &'static str {
        sqlite(Path::new("x.db"), "commit", Sqlite::SqliteFailure(ffi::Error::new(result), None)).code()
    }

    #[test]
    fn damage_is_told_from_trouble_that_may_pass() {
        for damage in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_CORRUPT_INDEX] {
            assert_eq!(code_of(damage), code::STORE_CORRUPT);
        }
        for passing in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_BUSY, ffi::SQLITE_READONLY, ffi::SQLITE_CANTOPEN] {
            assert_eq!(code_of(passing), code::STORE_UNAVAILABLE);
        }
    }
}
