//! The fields of a step, and of a stage.

use crate::definition::{Foreach, Undo};
use crate::document::{At, Fields, Node, Value};
use crate::kinds::Kind;
use crate::problem::Report;
use crate::retry::Retry;
use crate::template::{Place, Template};
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::StepId;

/// What a step is part of. In a plan it is called a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Workflow,
    Plan,
}

impl Of {
    /// What one of them is called.
    pub(super) fn word(self) -> &'static str {
        match self {
            Of::Workflow => "step",
            Of::Plan => "stage",
        }
    }

    /// The field that lists them.
    pub(super) fn field(self) -> &'static str {
        match self {
            Of::Workflow => "steps",
            Of::Plan => "stages",
        }
    }

    /// What it is part of.
    pub(super) fn whole(self) -> &'static str {
        match self {
            Of::Workflow => "workflow",
            Of::Plan => "plan",
        }
    }

    fn place(self, index: usize) -> Place {
        match self {
            Of::Workflow => Place::step(index),
            Of::Plan => Place::stage(index),
        }
    }
}

/// A step as it was read: what is missing was reported.
pub(super) struct Draft {
    pub(super) of: Of,
    pub(super) at: At,
    pub(super) index: usize,
    pub(super) name: Option<String>,
    pub(super) after: Option<Vec<(At, String)>>,
    pub(super) kind: Option<Kind>,
    pub(super) when: Option<(At, Template)>,
    pub(super) foreach: Option<Foreach>,
    pub(super) retry: Option<Retry>,
    pub(super) timeout: Option<Duration>,
    pub(super) not_repeatable: bool,
    pub(super) undo: Option<Undo>,
    pub(super) checkpoint: Option<Template>,
}

impl Draft {
    /// What it is called in messages.
    pub(super) fn shown(&self) -> String {
        shown(self.of, self.name.as_deref(), self.index)
    }

    /// It fails whenever it is carried out, and it always is.
    pub(super) fn always_fails(&self) -> bool {
        matches!(self.kind, Some(Kind::Fail(_))) && self.when.is_none() && self.foreach.is_none()
    }
}

fn shown(of: Of, name: Option<&str>, index: usize) -> String {
    let word = of.word();
    name.map_or_else(|| format!("{word} number {}", index + 1), |name| format!("{word} `{name}`"))
}

pub(super) fn read(of: Of, node: &Node, index: usize, report: &mut Report) -> Draft {
    let mut draft = Draft {
        of,
        at: node.at,
        index,
        name: None,
        after: None,
        kind: None,
        when: None,
        foreach: None,
        retry: None,
        timeout: None,
        not_repeatable: false,
        undo: None,
        checkpoint: None,
    };
    let Some(mut fields) = Fields::of(node, shown(of, None, index), report) else { return draft };
    draft.name = fields.need("name", report).and_then(|node| read_name(node, report));
    fields.what = draft.shown();
    let place = of.place(index);
    if of == Of::Workflow {
        draft.after = fields.take("after").and_then(|node| read_after(node, report));
    }
    draft.when = fields.take("when").map(|node| (node.at, read_when(of, node, place, report)));
    if of == Of::Workflow {
        draft.foreach = fields.take("foreach").and_then(|node| read_foreach(node, place, report));
    }
    let place = place.each_item(draft.foreach.is_some());
    draft.kind = Kind::read(&mut fields, place, report);
    draft.retry = fields.take("retry").and_then(|node| Retry::read(node, report));
    draft.timeout = fields.time_limit("timeout", report);
    draft.not_repeatable = fields.truth("not_repeatable", report).unwrap_or(false);
    draft.undo = fields.take("undo").and_then(|node| read_undo(node, place.undo(), report));
    check_fit(&draft, &fields, report);
    if of == Of::Workflow {
        fields.refuse("checkpoint", "stages of plans have one; in a workflow the output of a step is steps.NAME.output", report);
    } else {
        draft.checkpoint = fields.take("checkpoint").and_then(|node| read_checkpoint(node, place, report));
        fields.refuse("after", "stages run one after another, in the order in which they stand here", report);
        fields.refuse("foreach", "the tenants are the list: every stage is done once for each of them", report);
    }
    fields.end(report);
    draft
}

/// Fields that have no meaning for what the step does.
fn check_fit(draft: &Draft, fields: &Fields<'_>, report: &mut Report) {
    let Some(kind) = &draft.kind else { return };
    let name = kind.name();
    for (field, is_there) in
        [("retry", draft.retry.is_some()), ("timeout", draft.timeout.is_some()), ("not_repeatable", draft.not_repeatable)]
    {
        if is_there && !kind.is_retried() {
            let help = if field == "timeout" && name == "approve" { "say `within` in `approve`" } else { "leave it out" };
            report.wrong_with_help(
                fields.at(field),
                format!("`{field}` is for `http`, `run` and `call`; `{name}` makes no attempts"),
                help,
            );
        }
    }
    if draft.undo.is_some() && !matches!(kind, Kind::Http(_) | Kind::Run(_) | Kind::Call(_) | Kind::Set(_)) {
        let message = format!("`undo` is for `http`, `run`, `call` and `set`; there is nothing to undo of `{name}`");
        report.wrong(fields.at("undo"), message);
    }
    if draft.foreach.is_some() && matches!(kind, Kind::Approve(_)) {
        let help = "ask once for the whole list, or start a workflow per item that asks";
        report.wrong_with_help(fields.at("foreach"), "approvals of several items could not be told apart", help);
    }
}

fn read_name(node: &Node, report: &mut Report) -> Option<String> {
    let name = node.text("name", report)?;
    match StepId::new("", name, 1) {
        Ok(_) => Some(name.into()),
        Err(invalid) => {
            report.wrong(node.at, invalid.to_string());
            None
        }
    }
}

fn read_after(node: &Node, report: &mut Report) -> Option<Vec<(At, String)>> {
    let items = node.list("after", report)?;
    Some(items.iter().filter_map(|item| Some((item.at, item.text("after", report)?.to_string()))).collect())
}

/// A map, so that what several stages leave can be put together.
fn read_checkpoint(node: &Node, place: Place, report: &mut Report) -> Option<Template> {
    node.map("checkpoint", report)?;
    Some(Template::read(node, place.kept(), report))
}

fn read_when(of: Of, node: &Node, place: Place, report: &mut Report) -> Template {
    let when = Template::read(node, place, report);
    match when.constant() {
        Some(Json::Bool(false)) => {
            report.wrong(node.at, format!("this {} is never carried out: its `when` is always false", of.word()));
        }
        Some(Json::Bool(true)) | None => {}
        Some(_) => report.wrong_with_help(node.at, "`when` is not true or false", "write a condition: \"{{ input.amount > 100 }}\""),
    }
    when
}

fn read_foreach(node: &Node, place: Place, report: &mut Report) -> Option<Foreach> {
    let (items, concurrency) = if let Value::Map(_) = &node.value {
        let mut fields = Fields::of(node, "foreach", report)?;
        let items = fields.need("items", report);
        let concurrency = fields.whole("concurrency", report);
        if concurrency == Some(0) {
            report.wrong(fields.at("concurrency"), "`concurrency` is 0, so no item would ever be begun");
        }
        fields.end(report);
        (items?, concurrency)
    } else {
        (node, None)
    };
    let template = Template::read(items, place, report);
    if template.constant().is_some_and(|value| !value.is_array()) {
        report.wrong_with_help(items.at, "`foreach` is not a list", "write a template that gives one: \"{{ input.items }}\"");
    }
    Some(Foreach { items: template, concurrency: concurrency.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0) })
}

fn read_undo(node: &Node, place: Place, report: &mut Report) -> Option<Undo> {
    let mut fields = Fields::of(node, "undo", report)?;
    let kind = Kind::read(&mut fields, place, report);
    let retry = fields.take("retry").and_then(|node| Retry::read(node, report));
    let timeout = fields.time_limit("timeout", report);
    if let Some(kind @ (Kind::Wait(_) | Kind::Approve(_) | Kind::Start(_))) = &kind {
        let message = format!("`{}` cannot undo anything", kind.name());
        report.wrong_with_help(fields.at(kind.name()), message, "an undo is one of: http, run, call, set, fail");
    }
    fields.end(report);
    Some(Undo { kind: Arc::new(kind?), policy: retry.map(|retry| retry.policy).unwrap_or_default(), timeout })
}
