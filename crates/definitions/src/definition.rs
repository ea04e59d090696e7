//! A definition that was checked: what is carried out.

use crate::kinds::Kind;
use crate::schema::Schema;
use crate::template::Template;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::plan::Settings;
use steadfast_kernel::{Policy, Recovery, Timestamp, WorkflowName};

/// A workflow or a plan as a file defines it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name of the workflow or plan.
    pub name: WorkflowName,
    /// What tells this version from all others: SHA-256 of the text, in hexadecimal.
    pub hash: String,
    /// The file it came from.
    pub file: String,
    /// The text, as it stands in the file.
    pub text: String,
    pub(crate) description: Option<String>,
    pub(crate) input: Option<Schema>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) recovery: Recovery,
    pub(crate) concurrency: Option<Concurrency>,
    /// The route whose calls and tells its runs answer.
    pub(crate) answers: Option<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) output: Option<Template>,
    /// If it is a plan: how it goes about its tasks. Then its steps are stages.
    pub(crate) plan: Option<Settings>,
}

/// Of all runs with the same key, so many may be under way at once.
#[derive(Clone, Debug)]
pub(crate) struct Concurrency {
    pub(crate) key: Template,
    pub(crate) limit: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) kind: Arc<Kind>,
    /// The steps that it comes after, by number.
    pub(crate) after: Vec<usize>,
    /// The steps whose outputs its templates use, by number: all of them come before it.
    pub(crate) sees: Vec<usize>,
    pub(crate) when: Option<Template>,
    pub(crate) foreach: Option<Foreach>,
    pub(crate) policy: Policy,
    pub(crate) timeout: Option<Duration>,
    pub(crate) not_repeatable: bool,
    pub(crate) undo: Option<Undo>,
    /// What a stage leaves for those after it: a map.
    pub(crate) checkpoint: Option<Template>,
}

/// A branch per item of a list.
#[derive(Clone, Debug)]
pub(crate) struct Foreach {
    pub(crate) items: Template,
    /// How many at once; all if it is not said.
    pub(crate) concurrency: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Undo {
    pub(crate) kind: Arc<Kind>,
    pub(crate) policy: Policy,
    pub(crate) timeout: Option<Duration>,
}

impl Definition {
    /// True for a plan.
    pub fn is_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// What it is called in messages: `workflow` or `plan`.
    pub fn what(&self) -> &'static str {
        if self.is_plan() { "plan" } else { "workflow" }
    }

    /// How a plan goes about its tasks; nothing for a workflow.
    pub fn settings(&self) -> Option<&Settings> {
        self.plan.as_ref()
    }

    /// Whether its runs go on by themselves after their process died.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// The route whose calls and tells its runs answer, if it answers any.
    pub fn answers(&self) -> Option<&str> {
        self.answers.as_deref()
    }

    /// The workflows that its steps start, each with the name of the step.
    pub fn starts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().filter_map(|step| match &*step.kind {
            Kind::Start(start) => Some((step.name.as_str(), start.workflow.as_str())),
            _ => None,
        })
    }

    /// What is shown of it.
    pub fn describe(&self) -> Description {
        let names = |after: &[usize]| after.iter().map(|index| self.steps[*index].name.clone()).collect();
        let steps =
            self.steps
                .iter()
                .map(|step| DescribedStep { name: step.name.clone(), kind: step.kind.name(), after: names(&step.after) });
        Description {
            kind: self.what(),
            name: self.name.to_string(),
            version: self.hash.clone(),
            file: self.file.clone(),
            description: self.description.clone(),
            steps: steps.collect(),
            answers: self.answers.clone(),
            input: self.input.as_ref().map(|schema| schema.json.clone()),
            deadline_ms: self.deadline.map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// What the store keeps of it.
    pub fn kept(&self, at: Timestamp) -> steadfast_store::Definition {
        steadfast_store::Definition { hash: self.hash.clone(), workflow: self.name.clone(), text: self.text.clone(), kept_at: at }
    }
}

/// What is shown of a definition.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// `workflow` or `plan`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What tells this version from all others.
    pub version: String,
    /// The file it came from.
    pub file: String,
    /// What it is for, in the words of its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its steps or stages, in the order in which they stand in the file.
    pub steps: Vec<DescribedStep>,
    /// The route whose calls and tells its runs answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// The JSON Schema of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<serde_json::Value>,
    /// How long a run may take in all; of a plan, how long it may take before it pauses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// What is shown of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedStep {
    /// Its name.
    pub name: String,
    /// What it does: `http`, `run`, `call`, `wait`, `approve`, `start`, `set` or `fail`.
    pub kind: &'static str,
    /// The steps that it comes after.
    pub after: Vec<String>,
}
