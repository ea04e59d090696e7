//! A look at the folder of the definitions.

use crate::check::check;
use crate::definition::Definition;
use crate::problem::Problem;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_kernel::WorkflowName;

/// What a look at the folder has found.
#[derive(Clone, Debug, Default)]
pub struct Look {
    pub(super) found: BTreeMap<WorkflowName, Arc<Definition>>,
    /// Workflows whose file is broken, with its name: the version before it stays in use.
    pub(super) kept: BTreeMap<WorkflowName, String>,
    pub(super) broken: Vec<Broken>,
}

impl Look {
    /// What was found, for their texts to be kept in the store.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.found.values()
    }

    /// Who answers the calls that the definition is to answer.
    fn answering(&self, definition: &Definition) -> Option<&Arc<Definition>> {
        let route = definition.answers()?;
        self.found.values().find(|other| other.answers() == Some(route))
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
        let text = std::fs::read(&path);
        let checked = match text.as_deref().map(std::str::from_utf8) {
            Ok(Ok(text)) => check(&file, text),
            Ok(Err(_)) => Err(vec![problem(&file, "the file is not text in UTF-8".into())]),
            Err(error) => Err(vec![problem(&file, format!("the file cannot be read: {error}"))]),
        };
        let checked = checked.and_then(|definition| match (look.found.get(&definition.name), look.answering(&definition)) {
            (Some(other), _) => Err(vec![problem(&file, twice(&definition, other))]),
            (None, Some(other)) => Err(vec![problem(&file, both_answer(&definition, other))]),
            (None, None) => Ok(definition),
        });
        match checked {
            Ok(definition) => drop(look.found.insert(definition.name.clone(), Arc::new(definition))),
            Err(problems) => {
                let name = used.get(&file).cloned().or_else(|| named(&text.unwrap_or_default()));
                if let Some(name) = name {
                    look.kept.entry(name).or_insert_with(|| file.clone());
                }
                look.broken.push(Broken { file, problems });
            }
        }
    }
    Ok(look)
}

/// Workflows and plans have their names in common: two files of one name are a mistake.
fn twice(definition: &Definition, other: &Definition) -> String {
    let (name, file) = (&definition.name, &other.file);
    match (definition.what(), other.what()) {
        (what, other) if what == other => format!("the {what} {name} is defined by {file} already"),
        (what, other) => format!("the {what} {name} has the name of a {other}, which is defined by {file}"),
    }
}

/// A call has one answer, so a route leads to one workflow.
fn both_answer(definition: &Definition, other: &Definition) -> String {
    let route = definition.answers().unwrap_or_default();
    format!("the route {route} is answered by the workflow {} already, which is defined by {}", other.name, other.file)
}

/// The workflow or plan that a broken file is about, if some line of it still says so.
fn named(text: &[u8]) -> Option<WorkflowName> {
    let text = String::from_utf8_lossy(text);
    let said = text.lines().map(|line| line.trim_start_matches('\u{feff}'));
    let said = said
        .filter_map(|line| line.strip_prefix("workflow:").or_else(|| line.strip_prefix("plan:")))
        .next()?;
    let said = said.split_once(" #").map_or(said, |(said, _)| said).trim();
    WorkflowName::new(said.trim_matches(['"', '\''])).ok()
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
