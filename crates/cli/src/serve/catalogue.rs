//! What the API says of workflows that come from definitions.

use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_definitions::{Description, Library};
use steadfast_kernel::{Recovery, WorkflowName};
use steadfast_server::Planned;
use steadfast_server::shapes::{Data, Time, Version, Workflow};
use steadfast_store::Definition;

/// Answers from the library, as it is at that moment. Clones are the same one.
#[derive(Clone)]
pub(super) struct Catalogue {
    library: Library,
    /// Of each workflow, the oldest first.
    versions: Arc<RwLock<BTreeMap<WorkflowName, Vec<Version>>>>,
}

impl Catalogue {
    pub(super) fn new(library: &Library, kept: &[Definition]) -> Self {
        let catalogue = Catalogue { library: library.clone(), versions: Arc::default() };
        kept.iter().for_each(|kept| catalogue.add(kept));
        catalogue
    }

    /// A version that the store keeps from here on.
    pub(super) fn add(&self, kept: &Definition) {
        let version = Version { hash: kept.hash.clone(), kept_at: Time(kept.kept_at) };
        self.versions.write().entry(kept.workflow.clone()).or_default().push(version);
    }

    /// The versions of a workflow, the one that new runs get first, then the newest first.
    fn versions(&self, name: &WorkflowName, current: &str) -> Vec<Version> {
        let mut versions: Vec<Version> = self.versions.read().get(name).into_iter().flatten().rev().cloned().collect();
        versions.sort_by_key(|version| version.hash != current);
        versions
    }

    fn workflow(&self, described: Description) -> Option<Workflow> {
        let name = WorkflowName::new(&described.name).ok()?;
        let recovery = match self.library.current(&name)?.recovery() {
            Recovery::Automatic => "automatic",
            Recovery::Manual => "manual",
        };
        Some(Workflow {
            versions: self.versions(&name, &described.version),
            name: described.name,
            kind: "workflow".into(), // the server knows which are plans
            source: "definition".into(),
            recovery: recovery.into(),
            slots: None,
            description: described.description,
            input: described.input.and_then(|schema| serde_json::value::to_raw_value(&schema).ok()).map(Data),
            steps: described.steps.into_iter().map(|step| step.name).collect(),
            plan: None,
        })
    }
}

impl steadfast_server::Catalogue for Catalogue {
    fn describe(&self) -> Vec<Workflow> {
        self.library.describe().into_iter().filter_map(|described| self.workflow(described)).collect()
    }

    fn defines(&self, workflow: &str) -> bool {
        self.library.names().iter().any(|name| name.as_str() == workflow)
    }

    fn plan(&self, hash: &str) -> Vec<Planned> {
        let steps = self.library.version(hash).map(|definition| definition.describe().steps).unwrap_or_default();
        steps
            .into_iter()
            .map(|step| Planned { name: step.name, kind: step.kind.into(), after: step.after })
            .collect()
    }
}
