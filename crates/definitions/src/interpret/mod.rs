//! Carries a definition out, as the code of its runs.
//!
//! Every decision comes from what is on record (the input, the outputs of steps, what signals said) and from the definition, of which a run keeps
//! its version; so it takes the same way again when it is replayed. `http`, `run`, `set` and `fail` are steps of the root branch under their own
//! names; `wait`, `approve` and `start` have a branch of their name each, and so have the items of a `foreach`. One that cannot be begun, because a
//! template of it fails, is a step with one failed attempt. The stages of a plan are carried out as steps are.

mod begin;
mod graph;
mod step;
mod task;

pub(crate) use begin::{begin, terms};
pub(crate) use task::spec;

use crate::definition::{Definition, Step};
use crate::kinds::Tools;
use crate::template::{Scope, value};
use minijinja::Value;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_kernel::{Failure, Payload};
use steadfast_runtime::host::Context;

/// One run of a definition. Clones are the same one.
#[derive(Clone)]
struct Play {
    definition: Arc<Definition>,
    context: Context,
    tools: Arc<Tools>,
    /// What all templates see.
    scope: Scope,
}

/// What steps returned, by number.
type Outputs = Vec<Option<Value>>;

impl Play {
    fn step(&self, index: usize) -> &Step {
        &self.definition.steps[index]
    }

    /// What the templates of a step see: beside what all see, the outputs that they name.
    fn scope_of(&self, sees: impl IntoIterator<Item = usize>, outputs: &Outputs) -> Scope {
        let seen = sees.into_iter().filter_map(|index| Some((index, outputs[index].clone()?)));
        let steps: BTreeMap<&str, Value> = seen.map(|(index, output)| (self.step(index).name.as_str(), of_step(output))).collect();
        self.scope.clone().with("steps", Value::from(steps))
    }
}

fn of_step(output: Value) -> Value {
    Value::from(BTreeMap::from([("output", output)]))
}

/// Bytes on record, as templates see them.
fn recorded(payload: &Payload, what: &str) -> Result<Value, Failure> {
    decode(payload, what).map(|json| value(&json))
}

fn decode(payload: &Payload, what: &str) -> Result<Json, Failure> {
    serde_json::from_slice(&payload.bytes).map_err(|_| Failure::poison(format!("{what} is not JSON")))
}

fn encode(json: &Json) -> Payload {
    Payload::json(json.to_string())
}
