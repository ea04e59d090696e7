//! The first hundred bytes of a database file, read before SQLite may touch it.
//!
//! Opening alone can make SQLite write (it rolls back, recovers, checkpoints), so whether a file is ours, is known and is whole is decided
//! by looking at it. The format is that of <https://www.sqlite.org/fileformat2.html#the_database_header>.

use crate::error::{self, corrupt};
use crate::schema::{APPLICATION_ID, VERSION};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use steadfast_store::Error;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No file, or an empty one.
    Nothing,
    /// A store that may be opened, as far as the header tells.
    Store,
}

/// Looks at the file at `path` without changing it.
pub(crate) fn inspect(path: &Path) -> Result<Found, Error> {
    let trouble = |error| error::io(path, "read", error);
    let log = length(&beside(path, "-wal")).map_err(trouble)? + length(&beside(path, "-journal")).map_err(trouble)?;
    let length = length(path).map_err(trouble)?;
    if length == 0 {
        return if log == 0 { Ok(Found::Nothing) } else { Err(corrupt(path, "it is gone or empty, but there is a log beside it")) };
    }
    let header = read(path).map_err(trouble)?;
    check(path, &header, length, log).map(|()| Found::Store)
}

/// The path of a file that SQLite keeps beside the main one.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The length of a file; one that is not there has none.
fn length(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// The header, or what there is of it.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut header = Vec::with_capacity(100);
    File::open(path)?.take(100).read_to_end(&mut header)?;
    Ok(header)
}

fn check(path: &Path, header: &[u8], length: u64, log: u64) -> Result<(), Error> {
    let foreign = |why: &str| Error::Foreign { path: path.into(), why: why.into() };
    let Some(header) = header.first_chunk::<100>() else { return Err(foreign("it is too short for a database")) };
    if !header.starts_with(MAGIC) {
        return Err(foreign("it is no SQLite database"));
    }
    if number(header, 68) != APPLICATION_ID {
        return Err(foreign("it is the SQLite database of another program"));
    }
    let found = number(header, 60);
    if found > VERSION {
        return Err(Error::Newer { path: path.into(), found, known: VERSION });
    }
    let Some(page) = page_size(header) else { return Err(corrupt(path, "its page size makes no sense")) };
    let whole = pages(header) * page;
    if log == 0 && length < whole {
        return Err(corrupt(path, format!("it has {length} of {whole} bytes")));
    }
    Ok(())
}

fn number(header: &[u8; 100], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

fn page_size(header: &[u8; 100]) -> Option<u64> {
    let size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536, // does not fit into two bytes
        size => u64::from(size),
    };
    (size.is_power_of_two() && size >= 512).then_some(size)
}

/// The number of pages, 0 if the header does not know: it counts only if the last writer also wrote its change counter beside it.
fn pages(header: &[u8; 100]) -> u64 {
    let known = number(header, 24) == number(header, 92);
    if known { u64::from(number(header, 28)) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::code;

    /// The header of a store with three pages of 4096 bytes.
    fn ours() -> [u8; 100] {
        let mut header = [0; 100];
        header[..16].copy_from_slice(MAGIC);
        header[16..18].copy_from_slice(&4096_u16.to_be_bytes());
        header[28..32].copy_from_slice(&3_u32.to_be_bytes());
        header[60..64].copy_from_slice(&VERSION.to_be_bytes());
        header[68..72].copy_from_slice(&APPLICATION_ID.to_be_bytes());
        header
    }

    fn code_of(header: &[u8], length: u64, log: u64) -> Option<&'static str> {
        check(Path::new("x.db"), header, length, log).err().map(|error| error.code())
    }

    fn with(at: usize, byte: u8) -> [u8; 100] {
        let mut header = ours();
        header[at] = byte;
        header
    }

    #[test]
    fn a_whole_file_of_ours_passes() {
        assert_eq!(code_of(&ours(), 3 * 4096, 0), None);
    }

    #[test]
    fn what_is_not_ours_is_foreign() {
        assert_eq!(code_of(&ours()[..99], 99, 0), Some(code::STORE_FOREIGN));
        assert_eq!(code_of(&with(0, b'X'), 3 * 4096, 0), Some(code::STORE_FOREIGN));
        assert_eq!(code_of(&with(71, 0), 3 * 4096, 0), Some(code::STORE_FOREIGN));
    }

    #[test]
    fn a_later_version_is_newer() {
        assert_eq!(code_of(&with(63, u8::try_from(VERSION + 1).unwrap()), 3 * 4096, 0), Some(code::STORE_NEWER));
        assert_eq!(code_of(&with(60, 0x80), 3 * 4096, 0), Some(code::STORE_NEWER));
    }

    #[test]
    fn a_short_file_is_damaged_unless_a_log_may_complete_it() {
        assert_eq!(code_of(&ours(), 3 * 4096 - 1, 0), Some(code::STORE_CORRUPT));
        assert_eq!(code_of(&ours(), 4096, 100), None);
    }

    #[test]
    fn a_page_count_that_was_not_kept_up_is_not_believed() {
        assert_eq!(code_of(&with(27, 9), 4096, 0), None);
    }

    #[test]
    fn page_sizes_are_powers_of_two() {
        assert_eq!(code_of(&with(17, 1), 3 * 4096, 0), Some(code::STORE_CORRUPT));
        assert_eq!(code_of(&with(16, 0), 3 * 4096, 0), Some(code::STORE_CORRUPT));
        let mut large = with(16, 0);
        large[17] = 1;
        assert_eq!(code_of(&large, 3 * 65_536, 0), None);
        assert_eq!(code_of(&large, 3 * 4096, 0), Some(code::STORE_CORRUPT));
    }
}
