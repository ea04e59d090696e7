//! A look at a store from outside: nothing is made, and nothing of it changes, also while another process uses it.

use crate::header::{self, Found};
use crate::open::{DATABASE, LOCK, connect_read_only};
use crate::{error, schema};
use std::fs::{File, TryLockError};
use std::path::Path;
use steadfast_store::Error;

/// The version of the files that this program writes, and the last one that it reads.
pub const FORMAT: u32 = schema::VERSION;

/// What a look at a store has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The version of its files.
    pub format: u32,
    /// How large its main file is.
    pub bytes: u64,
    /// True if a process uses it now.
    pub in_use: bool,
}

/// Looks at the store in that folder, and reads all of it; nothing if there is none.
///
/// # Errors
/// [`Error::Foreign`], [`Error::Newer`] or [`Error::Corrupt`] if there is a file that must not be used, [`Error::Unavailable`] if it cannot be read.
pub fn look(dir: impl AsRef<Path>) -> Result<Option<Look>, Error> {
    let (path, lock) = (dir.as_ref().join(DATABASE), dir.as_ref().join(LOCK));
    if header::inspect(&path)? == Found::Nothing {
        return Ok(None);
    }
    let in_use = in_use(&lock)?;
    let trouble = |error| error::sqlite(&path, "read the database", error);
    let connection = connect_read_only(&path)?;
    schema::verify(&connection, &path)?;
    let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(trouble)?;
    if answer != "ok" {
        return Err(error::corrupt(&path, answer));
    }
    let format = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(trouble)?;
    let bytes = std::fs::metadata(&path).map_err(|error| error::io(&path, "read", error))?.len();
    Ok(Some(Look { format, bytes, in_use }))
}

/// Whether a process holds the lock.
fn in_use(lock: &Path) -> Result<bool, Error> {
    let trouble = |error| error::io(lock, "look at", error);
    match File::open(lock) {
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(trouble(error)),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(trouble(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Embedded;
    use steadfast_kernel::code;

    #[test]
    fn a_look_makes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(look(dir.path()).unwrap(), None);
        assert_eq!(look(dir.path().join("not there")).unwrap(), None);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_look_tells_whether_it_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let store = Embedded::open(dir.path()).unwrap();
        let found = look(dir.path()).unwrap().unwrap();
        assert!(found.in_use && found.format == FORMAT && found.bytes > 0, "{found:?}");
        drop(store);
        assert!(!look(dir.path()).unwrap().unwrap().in_use);
        Embedded::open(dir.path()).unwrap();
    }

    #[test]
    fn what_is_not_ours_is_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(DATABASE), [7; 5000]).unwrap();
        assert_eq!(look(dir.path()).unwrap_err().code(), code::STORE_FOREIGN);
    }
}
