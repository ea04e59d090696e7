//! A look at the folder of the definitions.

use crate::check::check;
use crate::definition::Definition;
use crate::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_kernel::WorkflowName;

/// What a look at the folder has found.
#[derive(Clone, Debug, Default)]
pub struct Look {
    pub(super) found: BTreeMap<WorkflowName, Arc<Definition>>,
    /// Workflows whose file is broken, so that the version before it stays in use.
    pub(super) kept: BTreeSet<WorkflowName>,
    pub(super) broken: Vec<Broken>,
}

impl Look {
    /// What was found, for their texts to be kept in the store.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.found.values()
    }
}

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its name in the folder.
    pub file: String,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// Reads every `*.yaml` and `*.yml` of a folder, in the order of their names. `used` tells which file the version in use came from.
pub(super) fn look(folder: &Path, used: &BTreeMap<String, WorkflowName>) -> io::Result<Look> {
    let mut look = Look::default();
    for path in files(folder)? {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let checked = match std::fs::read_to_string(&path) {
            Ok(text) => check(&file, &text),
            Err(error) => Err(vec![problem(&file, format!("the file cannot be read: {error}"))]),
        };
        let checked = checked.and_then(|definition| match look.found.get(&definition.name) {
            Some(other) => Err(vec![problem(&file, format!("the workflow {} is defined by {} already", definition.name, other.file))]),
            None => Ok(definition),
        });
        match checked {
            Ok(definition) => drop(look.found.insert(definition.name.clone(), Arc::new(definition))),
            Err(problems) => {
                look.kept.extend(used.get(&file).cloned());
                look.broken.push(Broken { file, problems });
            }
        }
    }
    Ok(look)
}

fn problem(file: &str, message: String) -> Problem {
    Problem { file: file.into(), line: 1, column: 1, message, help: None }
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths: io::Result<Vec<PathBuf>> = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") && path.is_file());
    paths.sort();
    Ok(paths)
}
