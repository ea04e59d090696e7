//! The fields of a plan.

use super::step::Of;
use super::workflow::{read_name, read_schema};
use super::{STAGES_MAX, hash, steps};
use crate::definition::Definition;
use crate::document::{Fields, Node, Value};
use crate::problem::Report;
use crate::retry::Retry;
use crate::suggest;
use std::time::Duration;
use steadfast_kernel::plan::{Settings, StopWhen, TENANTS_MAX};
use steadfast_kernel::{Conflict, OnFailure, Recovery};

/// A lock that is renewed at a third of its lease needs some time for that.
const LEASE_MIN: Duration = Duration::from_secs(1);

const CONFLICTS: [(&str, Conflict); 2] = [("refuse", Conflict::Refuse), ("skip", Conflict::Skip)];
const ON_FAILURE: [(&str, OnFailure); 2] = [("keep", OnFailure::Keep), ("release", OnFailure::Release)];

pub(super) fn read(document: &Node, file: &str, text: &str, report: &mut Report) -> Option<Definition> {
    let mut fields = Fields::of(document, "the plan", report)?;
    let name = fields.need("plan", report).and_then(|node| read_name(node, "plan", report));
    let description = fields.text("description", report).map(str::to_string);
    let input = fields.take("input").and_then(|node| read_schema(node, report));
    let settings = read_settings(&mut fields, report);
    let retry = fields.take("retry").and_then(|node| Retry::read(node, report));
    let drafts = fields.need("stages", report).and_then(|node| steps::read(Of::Plan, node, STAGES_MAX, report));
    refuse_what_workflows_have(&mut fields, report);
    fields.end(report);
    let stages = steps::finish(drafts?, retry.as_ref(), settings.deadline, report);
    Some(Definition {
        name: name?,
        hash: hash(text),
        file: file.into(),
        text: text.into(),
        description,
        input,
        deadline: settings.deadline,
        recovery: Recovery::Manual,
        concurrency: None,
        answers: None,
        steps: stages?,
        output: None,
        plan: Some(settings),
    })
}

/// How it goes about its tasks. What is wrong was reported, and is left as it is by default.
fn read_settings(fields: &mut Fields<'_>, report: &mut Report) -> Settings {
    let default = Settings::default();
    let max_concurrency = fields.whole("max_concurrency", report);
    if max_concurrency == Some(0) {
        report.wrong(fields.at("max_concurrency"), "`max_concurrency` is 0, so no task could ever begin");
    }
    let canary = fields.whole("canary", report);
    if let Some(canary) = canary.filter(|canary| usize::try_from(*canary).is_ok_and(|canary| canary > TENANTS_MAX)) {
        report.wrong(fields.at("canary"), format!("`canary` is {canary}, but a plan is for {TENANTS_MAX} tenants at most"));
    }
    let stop_when = fields.take("stop_when").and_then(|node| read_stop_when(node, report));
    let conflict = fields.take("conflict").and_then(|node| read_word(node, "conflict", CONFLICTS, report));
    let on_failure = fields.take("on_failure").and_then(|node| read_word(node, "on_failure", ON_FAILURE, report));
    let deadline = fields.time_limit("deadline", report);
    let lease = fields.duration("lease", report);
    if lease.is_some_and(|lease| lease < LEASE_MIN) {
        report.wrong(fields.at("lease"), "`lease` has to be at least 1s: a lock is renewed at a third of it");
    }
    Settings {
        max_concurrency: max_concurrency.unwrap_or(default.max_concurrency),
        canary: canary.unwrap_or(default.canary),
        stop_when,
        conflict: conflict.unwrap_or(default.conflict),
        on_failure: on_failure.unwrap_or(default.on_failure),
        lease: lease.unwrap_or(default.lease),
        deadline,
    }
}

fn read_stop_when(node: &Node, report: &mut Report) -> Option<StopWhen> {
    if matches!(&node.value, Value::Map(entries) if entries.is_empty()) {
        report.wrong(node.at, "`stop_when` needs `failed` or `failed_percent`");
    }
    let mut fields = Fields::of(node, "stop_when", report)?;
    let failed = fields.whole("failed", report);
    let percent = fields.whole("failed_percent", report);
    let (number_at, percent_at) = (fields.at("failed"), fields.at("failed_percent"));
    fields.end(report);
    match (failed, percent) {
        (Some(0), _) => {
            report.wrong_with_help(number_at, "`failed` is 0, so it would stop before anything has failed", "1 stops at the first")
        }
        (_, Some(percent)) if !(1..=100).contains(&percent) => {
            report.wrong(percent_at, format!("`failed_percent` is {percent}, but it has to be from 1 to 100"));
        }
        (Some(_), Some(_)) => report.wrong(percent_at, "`stop_when` says either `failed` or `failed_percent`, not both"),
        _ => {}
    }
    failed.map(StopWhen::Failed).or_else(|| percent.map(StopWhen::FailedPercent))
}

fn read_word<T: Copy, const N: usize>(node: &Node, field: &str, words: [(&'static str, T); N], report: &mut Report) -> Option<T> {
    let written = node.text(field, report)?;
    let found = words.iter().find(|(word, _)| *word == written).map(|(_, meaning)| *meaning);
    if found.is_none() {
        report.add(node.at, format!("there is no {field} `{written}`"), suggest::help(written, words.map(|(word, _)| word)));
    }
    found
}

/// What is right in a workflow deserves a better answer than that it is unknown.
fn refuse_what_workflows_have(fields: &mut Fields<'_>, report: &mut Report) {
    for (field, help) in [
        ("steps", "what a plan does is called `stages`"),
        ("recovery", "a task that was interrupted always waits for a person"),
        ("concurrency", "`max_concurrency` says how many tasks are under way at once"),
        ("answers", "calls are answered by workflows; nobody waits for a plan"),
        ("output", "what a task returns is what the `checkpoint` of its stages have left"),
        ("vars", "variables come from the settings of the server and from whoever creates the plan; `input` says what they have to be"),
    ] {
        fields.refuse(field, help, report);
    }
}
