//! The code of a workflow, or of the tasks of a plan, that a definition says.

use super::Library;
use crate::definition::Definition;
use crate::interpret;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use steadfast_kernel::{Code, Failure, Payload, WorkflowName};
use steadfast_runtime::host;

/// A workflow of a library, as the engine's host sees it. A run keeps the version that it began with.
#[derive(Clone)]
pub struct Defined {
    pub(super) library: Library,
    pub(super) name: WorkflowName,
}

impl Defined {
    /// The version that a run began with; the current one for a run that knows of none.
    fn version(&self, hash: Option<&str>) -> Option<Arc<Definition>> {
        match hash {
            Some(hash) => self.library.version(hash).filter(|definition| definition.name == self.name),
            None => self.library.current(&self.name),
        }
    }
}

impl host::Code for Defined {
    fn begin(&self, context: host::Context, input: Payload) -> BoxFuture<'static, Result<Payload, Failure>> {
        match self.version(context.definition()) {
            Some(definition) => {
                let (vars, tools) = (self.library.0.vars.clone(), Arc::clone(&self.library.0.tools));
                interpret::begin(definition, vars, tools, context, input).boxed()
            }
            None => std::future::pending().boxed(), // the host has asked whether it is known, so it is gone since then: nothing may happen
        }
    }

    fn terms(&self, input: &Payload) -> Result<host::Terms, Failure> {
        match self.library.current(&self.name) {
            Some(definition) => interpret::terms(&definition, &self.library.0.vars, input),
            None => {
                let message = format!("the definition of {} is gone; runs under way go on, but none is started", self.name);
                Err(Failure::permanent(message).code(Code::NotFound))
            }
        }
    }

    fn plan(&self) -> Option<host::PlanSpec> {
        let definition = self.library.current(&self.name)?;
        definition.plan.as_ref().map(|settings| interpret::spec(&definition, settings))
    }

    fn plan_of(&self, hash: &str) -> Option<host::PlanSpec> {
        let definition = self.version(Some(hash))?;
        definition.plan.as_ref().map(|settings| interpret::spec(&definition, settings))
    }

    fn versions(&self) -> Option<BTreeSet<String>> {
        Some(self.library.versions_of(&self.name))
    }

    fn knows(&self, definition: Option<&str>) -> bool {
        self.version(definition).is_some()
    }
}
