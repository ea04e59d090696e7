//! Who the owner of a data folder is: an id that is made once and outlives the process, so that others know it again.

use crate::error;
use rand::TryRng;
use rand::rngs::SysRng;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use steadfast_kernel::InstanceId;
use steadfast_store::Error;

/// The file in the data folder.
const FILE: &str = "steadfast.instance";

/// The id of the instance whose data is in that folder. It is made the first time.
///
/// # Errors
/// If the file cannot be read or written, or holds something else than an id.
pub fn instance(folder: impl AsRef<Path>) -> Result<InstanceId, Error> {
    let folder = folder.as_ref();
    let path = folder.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => make(folder, &path)?,
        Err(error) => return Err(error::io(&path, "read", error)),
    };
    let damaged = |invalid: steadfast_kernel::InvalidId| error::corrupt(&path, format!("it should hold the id of the instance: {invalid}"));
    InstanceId::new(text.trim()).map_err(damaged)
}

/// Makes one. It has its name when it is complete, so a kill in between leaves nothing that could be misread.
fn make(folder: &Path, path: &Path) -> Result<String, Error> {
    let trouble = |error| error::io(path, "write", error);
    fs::create_dir_all(folder).map_err(trouble)?;
    let mut chance = [0; 16];
    SysRng.try_fill_bytes(&mut chance).map_err(|error| trouble(std::io::Error::other(error)))?;
    let id: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
    let draft = folder.join(format!("{FILE}.new"));
    let mut file = File::create(&draft).map_err(trouble)?;
    file.write_all(format!("{id}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(trouble)?;
    fs::rename(&draft, path).map_err(trouble)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(trouble)?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_outlives_the_process_and_differs_between_folders() {
        let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let first = instance(one.path()).expect("an id");
        assert_eq!(instance(one.path()).expect("an id"), first);
        assert_ne!(instance(other.path()).expect("an id"), first);
    }

    #[test]
    fn a_damaged_file_is_not_taken_for_an_id() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(FILE), "two:words").expect("a file");
        assert!(matches!(instance(folder.path()), Err(Error::Corrupt { .. })));
    }
}
