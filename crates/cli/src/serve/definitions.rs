//! The definitions of a running server: what changes in the folder becomes a new version.

use super::catalogue::Catalogue;
use crate::error::Error;
use crate::output::time;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use steadfast::messages::durable_route;
use steadfast_definitions::{Changes, Definition, Library, Settings};
use steadfast_kernel::WorkflowName;
use steadfast_messaging::Node;
use steadfast_runtime::Engine;
use steadfast_runtime::host::Registry;
use steadfast_store::{Batch, Store};

/// What tells a file from itself a moment ago.
type Fingerprint = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The library, and what has to be done when its folder changes.
pub(super) struct Definitions {
    folder: PathBuf,
    library: Library,
    catalogue: Catalogue,
    store: Arc<dyn Store>,
    seen: Fingerprint,
    node: Node,
    /// The routes that are answered, and the workflows that do.
    answered: BTreeMap<String, WorkflowName>,
}

impl Definitions {
    /// Reads the folder and what the store has kept.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub(super) async fn open(
        folder: &Path,
        vars: serde_json::Map<String, serde_json::Value>,
        store: Arc<dyn Store>,
        node: Node,
    ) -> Result<Self, Error> {
        let kept = store
            .definitions()
            .await
            .map_err(|error| Error::failed("cannot read the definitions of the store", &error))?;
        let seen = fingerprint(folder);
        let unreadable = |error| Error::Failed(format!("cannot read the definitions folder {}: {error}", folder.display()));
        let (library, changes) = Library::open(folder, vars, Settings::default(), kept.clone()).map_err(unreadable)?;
        library.set_node(node.clone());
        let catalogue = Catalogue::new(&library, &kept);
        let definitions = Definitions { folder: folder.into(), library, catalogue, store, seen, node, answered: BTreeMap::new() };
        for definition in changes.added.iter().filter(|definition| !kept.iter().any(|kept| kept.hash == definition.hash)) {
            definitions
                .keep(definition)
                .await
                .map_err(|error| Error::failed("cannot keep a definition", &error))?;
        }
        tell(&changes);
        Ok(definitions)
    }

    /// The code of every workflow and plan of which a version is known: runs that began with an old one go on.
    pub(super) fn registry(&self) -> Registry {
        let registry = Registry::default();
        for name in self.library.names() {
            registry.insert(name.clone(), self.library.registered(&name));
        }
        registry
    }

    /// What the API says of them.
    pub(super) fn catalogue(&self) -> Catalogue {
        self.catalogue.clone()
    }

    /// How many workflows and plans there are.
    pub(super) fn count(&self) -> usize {
        self.library.describe().len()
    }

    /// Has the calls and tells of other nodes answered, as the definitions say now.
    pub(super) fn answer(&mut self, engine: &Engine) {
        let answers = self.library.answers();
        for route in self.answered.keys().filter(|route| !answers.contains_key(*route)) {
            self.node.remove_route(route);
        }
        for (route, workflow) in &answers {
            if self.answered.get(route) != Some(workflow) {
                self.node.route_by(route, durable_route(engine, workflow.clone()));
            }
        }
        self.answered = answers;
    }

    /// Looks at the folder, and reads it again if something there has changed.
    pub(super) async fn reload_if_changed(&mut self, engine: &Engine) {
        let folder = self.folder.clone();
        let now = tokio::task::spawn_blocking(move || fingerprint(&folder)).await.unwrap_or_default();
        if now != self.seen {
            self.reload(engine).await;
        }
    }

    /// Reads the folder again. What is new is kept before any run can begin with it.
    pub(super) async fn reload(&mut self, engine: &Engine) {
        self.seen = fingerprint(&self.folder);
        let look = match self.library.look() {
            Ok(look) => look,
            Err(error) => {
                tracing::error!(folder = %self.folder.display(), %error, "the definitions cannot be read; what was in use stays in use");
                return;
            }
        };
        for definition in look.definitions() {
            if self.library.version(&definition.hash).is_none()
                && let Err(error) = self.keep(definition).await
            {
                tracing::error!(workflow = %definition.name, %error, "a definition cannot be kept; what was in use stays in use");
                self.seen.clear(); // so that it is tried again
                return;
            }
        }
        let changes = self.library.take(look);
        for definition in changes.added.iter().chain(&changes.changed) {
            engine.register(definition.name.clone(), self.library.registered(&definition.name)); // a workflow may have become a plan
        }
        self.answer(engine);
        tell(&changes);
    }

    async fn keep(&self, definition: &Definition) -> Result<(), steadfast_store::Error> {
        let kept = definition.kept(time::now());
        self.store.commit(Batch { definitions: vec![kept.clone()], ..Batch::default() }).await?;
        self.catalogue.add(&kept);
        Ok(())
    }
}

/// Logs what has changed, and what is wrong.
fn tell(changes: &Changes) {
    for (what, definitions) in [("is new", &changes.added), ("has a new version", &changes.changed)] {
        for definition in definitions {
            let (file, version) = (&definition.file, &definition.hash[..definition.hash.len().min(12)]);
            tracing::debug!(name = %definition.name, file, version, "a {} {what}", definition.what());
        }
    }
    for name in &changes.removed {
        tracing::info!(%name, "a workflow or plan is gone; its runs go on, but none is started");
    }
    for problem in changes.problems() {
        let place = format!("{}:{}:{}", problem.file, problem.line, problem.column);
        tracing::error!(place, help = problem.help, "a definition is not used: {}", problem.message);
    }
}

fn fingerprint(folder: &Path) -> Fingerprint {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let metadata = std::fs::metadata(entry.path()).ok()?;
            Some((entry.path(), (metadata.modified().ok(), metadata.len())))
        })
        .collect()
}
