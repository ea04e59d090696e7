//! The definitions of a folder, in all versions that runs may still need.

mod code;
mod folder;

pub use code::Defined;
pub use folder::{Broken, Look};

use crate::check::check;
use crate::definition::{Definition, Description};
use crate::kinds::{Settings, Tools};
use crate::problem::Problem;
use crate::template::value;
use minijinja::Value;
use parking_lot::RwLock;
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_kernel::WorkflowName;
use steadfast_messaging::Node;
use steadfast_runtime::Registered;

/// The definitions of a folder. Clones are the same library.
///
/// The current version of a workflow is that of its file; new runs begin with it. Earlier versions stay, for runs that began with them: the store keeps
/// their texts. A file that was changed and is broken leaves the version before it in use, also when the program starts with it; a workflow whose file is gone has no current version, and
/// no new runs, while those under way go on.
#[derive(Clone)]
pub struct Library(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    vars: Value,
    tools: Arc<Tools>,
    shelves: RwLock<Shelves>,
}

#[derive(Default)]
struct Shelves {
    current: BTreeMap<WorkflowName, Arc<Definition>>,
    /// Every version that is known, by hash.
    versions: BTreeMap<String, Arc<Definition>>,
    /// The version that was current last, also of workflows that have no current one.
    last: BTreeMap<WorkflowName, Arc<Definition>>,
}

/// What another look at the folder has changed.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Workflows that had no current version.
    pub added: Vec<Arc<Definition>>,
    /// Workflows that have another version now.
    pub changed: Vec<Arc<Definition>>,
    /// Workflows whose file is gone.
    pub removed: Vec<WorkflowName>,
    /// Files that cannot be used, and why. What was in use before stays in use.
    pub broken: Vec<Broken>,
}

impl Changes {
    /// Everything that is wrong, file by file.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.broken.iter().flat_map(|broken| &broken.problems)
    }

    /// True if nothing has changed and nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty() && self.broken.is_empty()
    }
}

impl Library {
    /// Reads a folder. `vars` is what templates see under that name, `kept` are the versions that the store has, oldest first.
    ///
    /// The answer also says what was found; files that are broken do not keep the others from being used. Before any run begins with a version its text
    /// has to be in the store: keep [`Definition::kept`] of everything that was added.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn open(
        folder: &Path,
        vars: Map<String, Json>,
        settings: Settings,
        kept: Vec<steadfast_store::Definition>,
    ) -> io::Result<(Self, Changes)> {
        let tools = Arc::new(Tools::new(settings, &std::path::absolute(folder)?));
        let shelves = RwLock::new(Shelves::of(kept));
        let inner = Inner { folder: folder.into(), vars: value(&Json::Object(vars)), tools, shelves };
        let library = Library(Arc::new(inner));
        let changes = library.reload()?;
        Ok((library, changes))
    }

    /// Reads the folder again and takes what it finds: [`look`](Library::look) and [`take`](Library::take) in one.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn reload(&self) -> io::Result<Changes> {
        Ok(self.take(self.look()?))
    }

    /// Reads the folder again; nothing changes yet, so that new texts can be kept in the store first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn look(&self) -> io::Result<Look> {
        let used = self
            .0
            .shelves
            .read()
            .current
            .values()
            .map(|definition| (definition.file.clone(), definition.name.clone()))
            .collect();
        folder::look(&self.0.folder, &used)
    }

    /// From here on new runs begin with what was found.
    pub fn take(&self, look: Look) -> Changes {
        let mut shelves = self.0.shelves.write();
        let mut changes = Changes { broken: look.broken, ..Changes::default() };
        let is_gone = |name: &WorkflowName| !look.found.contains_key(name) && !look.kept.contains_key(name);
        let gone: Vec<_> = shelves.current.keys().filter(|name| is_gone(name)).cloned().collect();
        for name in gone {
            shelves.current.remove(&name);
            changes.removed.push(name);
        }
        for (name, file) in look.kept {
            let is_there = look.found.contains_key(&name) || shelves.current.contains_key(&name);
            if let Some(last) = shelves.last.get(&name).filter(|_| !is_there) {
                let last = Arc::new(Definition { file, ..Definition::clone(last) });
                shelves.current.insert(name, Arc::clone(&last));
                changes.added.push(last);
            }
        }
        for (name, definition) in look.found {
            shelves.last.insert(name.clone(), Arc::clone(&definition));
            shelves.versions.insert(definition.hash.clone(), Arc::clone(&definition));
            match shelves.current.insert(name, Arc::clone(&definition)) {
                None => changes.added.push(definition),
                Some(before) if before.hash != definition.hash => changes.changed.push(definition),
                Some(_) => {}
            }
        }
        changes
    }

    /// The current version of a workflow.
    pub fn current(&self, name: &WorkflowName) -> Option<Arc<Definition>> {
        self.0.shelves.read().current.get(name).cloned()
    }

    /// A version of a workflow, by its hash.
    pub fn version(&self, hash: &str) -> Option<Arc<Definition>> {
        self.0.shelves.read().versions.get(hash).cloned()
    }

    /// The hashes of all versions of that workflow.
    pub(super) fn versions_of(&self, name: &WorkflowName) -> BTreeSet<String> {
        let shelves = self.0.shelves.read();
        let of_it = shelves.versions.iter().filter(|(_, definition)| definition.name == *name);
        of_it.map(|(hash, _)| hash.clone()).collect()
    }

    /// The names of all workflows of which some version is known, also of those whose file is gone.
    pub fn names(&self) -> Vec<WorkflowName> {
        let shelves = self.0.shelves.read();
        let mut names: Vec<_> = shelves.versions.values().map(|definition| definition.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// What is shown of the current versions, by name.
    pub fn describe(&self) -> Vec<Description> {
        self.0.shelves.read().current.values().map(|definition| definition.describe()).collect()
    }

    /// The routes whose calls and tells are answered by runs of the current versions, with the workflows that do.
    pub fn answers(&self) -> BTreeMap<String, WorkflowName> {
        let shelves = self.0.shelves.read();
        let answering = shelves
            .current
            .values()
            .filter_map(|definition| Some((definition.answers()?.to_owned(), definition.name.clone())));
        answering.collect()
    }

    /// `call` steps go out by that node from here on; without one they fail. The first one stays.
    pub fn set_node(&self, node: Node) {
        self.0.tools.set_node(node);
    }

    /// How the engine is to know the workflow or plan of that name: by the current version, or else by the one that was current last.
    ///
    /// The code follows the library, so that this is needed once, and again when the name is defined as the other kind.
    pub fn registered(&self, name: &WorkflowName) -> Registered {
        let code = Arc::new(self.code(name));
        let is_plan = self.0.shelves.read().last.get(name).is_some_and(|definition| definition.is_plan());
        if is_plan { Registered::plan(code) } else { Registered::new(code) }
    }

    /// The code of a workflow or of the tasks of a plan, to be registered with the engine once: it follows the library.
    pub fn code(&self, name: &WorkflowName) -> Defined {
        Defined { library: self.clone(), name: name.clone() }
    }
}

impl Shelves {
    /// The versions that the store has, oldest first. One that this program no longer understands is left out, and its runs wait.
    fn of(kept: Vec<steadfast_store::Definition>) -> Self {
        let mut shelves = Shelves::default();
        for kept in kept {
            match check(kept.workflow.as_str(), &kept.text) {
                Ok(definition) => {
                    let definition = Arc::new(definition);
                    shelves.last.insert(definition.name.clone(), Arc::clone(&definition));
                    shelves.versions.insert(kept.hash, definition);
                }
                Err(problems) => {
                    let problem = problems.first().map(ToString::to_string).unwrap_or_default();
                    tracing::warn!(workflow = %kept.workflow, hash = kept.hash, problem, "a version of a definition is not understood any more");
                }
            }
        }
        shelves
    }
}
