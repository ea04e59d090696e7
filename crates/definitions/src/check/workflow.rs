//! The fields of a workflow.

use super::step::Of;
use super::{STEPS_MAX, hash, steps};
use crate::definition::{Concurrency, Definition};
use crate::document::{Fields, Node, Value};
use crate::kinds::check_route;
use crate::problem::Report;
use crate::retry::Retry;
use crate::schema::Schema;
use crate::suggest;
use crate::template::{Place, Template};
use steadfast_kernel::{Recovery, WorkflowName};

pub(super) fn read(document: &Node, file: &str, text: &str, report: &mut Report) -> Option<Definition> {
    let mut fields = Fields::of(document, "the workflow", report)?;
    let name = fields.need("workflow", report).and_then(|node| read_name(node, "workflow", report));
    let description = fields.text("description", report).map(str::to_string);
    let input = fields.take("input").and_then(|node| read_schema(node, report));
    let deadline = fields.time_limit("deadline", report);
    let recovery = fields.take("recovery").and_then(|node| read_recovery(node, report));
    let concurrency = fields.take("concurrency").and_then(|node| read_concurrency(node, report));
    let answers = fields.take("answers").and_then(|node| read_answers(node, report));
    let retry = fields.take("retry").and_then(|node| Retry::read(node, report));
    let drafts = fields.need("steps", report).and_then(|node| steps::read(Of::Workflow, node, STEPS_MAX, report));
    let output = fields.take("output").map(|node| Template::read(node, Place::END, report));
    fields.refuse("plan", "a file has one definition, a workflow or a plan", report);
    fields.refuse("stages", "what a workflow does is called `steps`", report);
    fields.end(report);
    let steps = steps::finish(drafts?, retry.as_ref(), deadline, report);
    let name = name?;
    Some(Definition {
        answers: answers.and_then(|answers| answers.route(&name)),
        name,
        hash: hash(text),
        file: file.into(),
        text: text.into(),
        description,
        input,
        deadline,
        recovery: recovery.unwrap_or_default(),
        concurrency,
        steps: steps?,
        output,
        plan: None,
    })
}

pub(super) fn read_name(node: &Node, field: &str, report: &mut Report) -> Option<WorkflowName> {
    WorkflowName::new(node.text(field, report)?)
        .map_err(|invalid| report.wrong(node.at, invalid.to_string()))
        .ok()
}

pub(super) fn read_schema(node: &Node, report: &mut Report) -> Option<Schema> {
    Schema::new(node.json())
        .map_err(|why| report.wrong(node.at, format!("`input` is not a JSON Schema: {why}")))
        .ok()
}

/// What a workflow says of the calls that it answers.
enum Answers {
    /// At the route of its own name, or none.
    Own(bool),
    At(String),
}

impl Answers {
    fn route(self, workflow: &WorkflowName) -> Option<String> {
        match self {
            Answers::Own(true) => Some(workflow.to_string()),
            Answers::Own(false) => None,
            Answers::At(route) => Some(route),
        }
    }
}

fn read_answers(node: &Node, report: &mut Report) -> Option<Answers> {
    match &node.value {
        Value::Bool(own) => Some(Answers::Own(*own)),
        Value::Text(route) => {
            check_route("answers", route, node, report);
            if route.starts_with("steadfast.") {
                report.wrong_with_help(node.at, "routes that begin with `steadfast.` are reserved", "give it another name");
            }
            Some(Answers::At(route.clone()))
        }
        _ => {
            let help = "true for the route of the workflow's own name, or the name of another one";
            report.wrong_with_help(node.at, format!("`answers` has to be true or a text, but this is {}", node.what()), help);
            None
        }
    }
}

fn read_recovery(node: &Node, report: &mut Report) -> Option<Recovery> {
    match node.text("recovery", report)? {
        "automatic" => Some(Recovery::Automatic),
        "manual" => Some(Recovery::Manual),
        other => {
            report.add(node.at, format!("there is no recovery `{other}`"), suggest::help(other, ["automatic", "manual"]));
            None
        }
    }
}

fn read_concurrency(node: &Node, report: &mut Report) -> Option<Concurrency> {
    let mut fields = Fields::of(node, "concurrency", report)?;
    let key = fields.need("key", report).map(|node| Template::read_one(node, "key", Place::START, report));
    let limit = fields.need("limit", report).is_some().then(|| fields.whole("limit", report)).flatten();
    if limit == Some(0) {
        report.wrong(fields.at("limit"), "`limit` is 0, so no run could ever begin");
    }
    fields.end(report);
    Some(Concurrency { key: key?, limit: limit? })
}
