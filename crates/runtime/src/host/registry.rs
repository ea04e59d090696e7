//! The workflows that this process has the code of.

use super::Context;
use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::plan::Settings;
use steadfast_kernel::{Failure, Payload, Recovery, WorkflowName};

/// The code of a workflow, as the host sees it: bytes in, bytes out.
pub trait Code: Send + Sync + 'static {
    /// Begins the workflow. The future is polled by turns, and is dropped when the run ends or is closed.
    fn begin(&self, context: Context, input: Payload) -> BoxFuture<'static, Result<Payload, Failure>>;

    /// What goes for a run that is started now with that input.
    ///
    /// # Errors
    /// If no run is to be started with it.
    fn terms(&self, _input: &Payload) -> Result<Terms, Failure> {
        Ok(Terms::default())
    }

    /// What goes for plans that are created now, whatever they are given; nothing if it is no plan.
    fn plan(&self) -> Option<PlanSpec> {
        None
    }

    /// What goes for plans of the definition of that hash; nothing if it is not known here.
    fn plan_of(&self, hash: &str) -> Option<PlanSpec> {
        self.plan().filter(|spec| crate::commons::definition_hash(None, &spec.stages) == hash)
    }

    /// The versions of its definition that runs can go on with here, by hash; nothing if it takes every run.
    fn versions(&self) -> Option<BTreeSet<String>> {
        None
    }

    /// Whether a run that began with that version of a definition can go on here.
    fn knows(&self, _definition: Option<&str>) -> bool {
        true
    }
}

/// What goes for one run, beside what its caller wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// Whether it goes on by itself after its process died; as its workflow says if there is nothing here.
    pub recovery: Option<Recovery>,
    /// How long it may take in all.
    pub deadline: Option<Duration>,
    /// Keys of limits, and how many runs of each may be under way at once.
    pub limits: Vec<(String, u32)>,
    /// The version of its definition, by hash. The run keeps it.
    pub definition: Option<String>,
    /// The plan that it is; then it is not started by itself.
    pub plan: Option<Box<PlanSpec>>,
}

/// What goes for plans of a definition that are created now.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSpec {
    /// The names of its stages, in order.
    pub stages: Vec<String>,
    /// Which of them can be undone.
    pub undoable: Vec<bool>,
    /// How it goes about its tasks.
    pub settings: Settings,
}

/// A workflow that this process has the code of, and what goes for all runs of it that are started here.
#[derive(Clone)]
pub struct Registered {
    /// Its code.
    pub code: Arc<dyn Code>,
    /// Whether its runs go on by themselves after their process died.
    pub recovery: Recovery,
    /// How many of its runs may be under way at once.
    pub slots: Option<u32>,
    /// Its runs are tasks of plans.
    pub is_plan: bool,
}

impl Registered {
    /// Code with nothing special about it.
    pub fn new(code: Arc<dyn Code>) -> Self {
        Registered { code, recovery: Recovery::Automatic, slots: None, is_plan: false }
    }

    /// The code of the tasks of a plan.
    pub fn plan(code: Arc<dyn Code>) -> Self {
        Registered { code, recovery: Recovery::Manual, slots: None, is_plan: true }
    }
}

/// The workflows that this process has the code of. Clones are the same one, and it may grow while the engine runs.
#[derive(Clone, Default)]
pub struct Registry(Arc<RwLock<BTreeMap<WorkflowName, Registered>>>);

impl Registry {
    /// Adds a workflow. The one that had the name before, if any.
    pub fn insert(&self, name: WorkflowName, registered: Registered) -> Option<Registered> {
        self.0.write().insert(name, registered)
    }

    /// The workflow of that name.
    pub fn get(&self, name: &WorkflowName) -> Option<Registered> {
        self.0.read().get(name).cloned()
    }

    /// The code of a run of that workflow, if it is here in that version.
    pub(crate) fn code(&self, name: &WorkflowName, definition: Option<&str>) -> Option<Arc<dyn Code>> {
        Some(self.get(name)?.code).filter(|code| code.knows(definition))
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<WorkflowName> {
        self.0.read().keys().cloned().collect()
    }
}
