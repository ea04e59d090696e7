//! The fields of a workflow.

use super::graph::Graph;
use super::step::{self, Draft};
use super::{STEPS_MAX, hash, templates};
use crate::definition::{Concurrency, Definition, Step};
use crate::document::{Fields, Node};
use crate::duration;
use crate::kinds::Kind;
use crate::problem::Report;
use crate::retry::Retry;
use crate::schema::Schema;
use crate::suggest;
use crate::template::{Place, Template};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Recovery, WorkflowName};

pub(super) fn read(document: &Node, file: &str, text: &str, report: &mut Report) -> Option<Definition> {
    let mut fields = Fields::of(document, "the workflow", report)?;
    let name = fields.need("workflow", report).and_then(|node| read_name(node, report));
    let description = fields.text("description", report).map(str::to_string);
    let input = fields.take("input").and_then(|node| read_schema(node, report));
    let deadline = fields.time_limit("deadline", report);
    let recovery = fields.take("recovery").and_then(|node| read_recovery(node, report));
    let concurrency = fields.take("concurrency").and_then(|node| read_concurrency(node, report));
    let retry = fields.take("retry").and_then(|node| Retry::read(node, report));
    let drafts = fields.need("steps", report).and_then(|node| read_steps(node, report));
    let output = fields.take("output").map(|node| Template::read(node, Place::END, report));
    fields.end(report);
    let drafts = drafts?;
    let graph = Graph::of(&drafts, report);
    let sees = templates::check(&drafts, &graph, report);
    if let Some(deadline) = deadline {
        check_deadline(deadline, retry.as_ref(), &drafts, report);
    }
    let steps = drafts.into_iter().zip(graph.after).zip(sees);
    let steps: Option<Vec<Step>> = steps.map(|((draft, after), sees)| finish(draft, after, sees, retry.as_ref())).collect();
    Some(Definition {
        name: name?,
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
    })
}

/// A step for which everything is known. The workflow's `retry` is for those that have none of their own.
fn finish(draft: Draft, after: Vec<usize>, sees: BTreeSet<usize>, retry: Option<&Retry>) -> Option<Step> {
    let policy = draft.retry.as_ref().or(retry).map(|retry| retry.policy.clone()).unwrap_or_default();
    Some(Step {
        name: draft.name?,
        kind: Arc::new(draft.kind?),
        after,
        sees: sees.into_iter().collect(),
        when: draft.when.map(|(_, when)| when),
        foreach: draft.foreach,
        policy,
        timeout: draft.timeout,
        not_repeatable: draft.not_repeatable,
        undo: draft.undo,
    })
}

/// What cannot be over before the run's deadline.
fn check_deadline(deadline: Duration, retry: Option<&Retry>, drafts: &[Draft], report: &mut Report) {
    let own = drafts.iter().filter_map(|draft| draft.retry.as_ref());
    for retry in own.chain(retry).filter(|retry| retry.deadline().is_none()) {
        retry.check_fits(deadline, "the workflow's deadline", report);
    }
    for draft in drafts {
        if let Some(Kind::Wait(wait)) = &draft.kind
            && let Some(time) = wait.constant().filter(|time| *time >= deadline)
        {
            let (time, deadline) = (duration::show(time), duration::show(deadline));
            report.wrong(draft.at, format!("{} waits for {time}, but the workflow's deadline is {deadline}", draft.shown()));
        }
    }
}

fn read_steps(node: &Node, report: &mut Report) -> Option<Vec<Draft>> {
    let nodes = node.list("steps", report)?;
    if nodes.is_empty() {
        report.wrong(node.at, "the workflow has no steps");
        return None;
    }
    if nodes.len() > STEPS_MAX {
        report.wrong(node.at, format!("the workflow has {} steps, at most {STEPS_MAX} are allowed", nodes.len()));
        return None;
    }
    Some(nodes.iter().enumerate().map(|(index, node)| step::read(node, index, report)).collect())
}

fn read_name(node: &Node, report: &mut Report) -> Option<WorkflowName> {
    WorkflowName::new(node.text("workflow", report)?)
        .map_err(|invalid| report.wrong(node.at, invalid.to_string()))
        .ok()
}

fn read_schema(node: &Node, report: &mut Report) -> Option<Schema> {
    Schema::new(node.json())
        .map_err(|why| report.wrong(node.at, format!("`input` is not a JSON Schema: {why}")))
        .ok()
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
