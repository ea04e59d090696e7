//! The steps of a workflow, or the stages of a plan, as a whole.

use super::graph::Graph;
use super::step::{self, Draft, Of};
use super::templates;
use crate::definition::Step;
use crate::document::Node;
use crate::duration;
use crate::kinds::Kind;
use crate::problem::Report;
use crate::retry::Retry;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Reads the list of them: at least one, and at most so many.
pub(super) fn read(of: Of, node: &Node, max: usize, report: &mut Report) -> Option<Vec<Draft>> {
    let (whole, word) = (of.whole(), of.word());
    let nodes = node.list(of.field(), report)?;
    if nodes.is_empty() {
        report.wrong(node.at, format!("the {whole} has no {word}s"));
        return None;
    }
    if nodes.len() > max {
        report.wrong(node.at, format!("the {whole} has {} {word}s, at most {max} are allowed", nodes.len()));
        return None;
    }
    Some(nodes.iter().enumerate().map(|(index, node)| step::read(of, node, index, report)).collect())
}

/// What they are once all of the document was read: which comes after which, what their templates name, and whether there is time enough.
pub(super) fn finish(drafts: Vec<Draft>, retry: Option<&Retry>, deadline: Option<Duration>, report: &mut Report) -> Option<Vec<Step>> {
    let graph = Graph::of(&drafts, report);
    let sees = templates::check(&drafts, &graph, report);
    if let Some(deadline) = deadline {
        check_deadline(deadline, retry, &drafts, report);
    }
    let steps = drafts.into_iter().zip(graph.after).zip(sees);
    steps.map(|((draft, after), sees)| finish_one(draft, after, sees, retry)).collect()
}

/// A step for which everything is known. The document's `retry` is for those that have none of their own.
fn finish_one(draft: Draft, after: Vec<usize>, sees: BTreeSet<usize>, retry: Option<&Retry>) -> Option<Step> {
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
        checkpoint: draft.checkpoint,
    })
}

/// What cannot be over before the deadline.
fn check_deadline(deadline: Duration, retry: Option<&Retry>, drafts: &[Draft], report: &mut Report) {
    let whole = drafts.first().map_or("workflow", |draft| draft.of.whole());
    let own = drafts.iter().filter_map(|draft| draft.retry.as_ref());
    for retry in own.chain(retry).filter(|retry| retry.deadline().is_none()) {
        retry.check_fits(deadline, &format!("the {whole}'s deadline"), report);
    }
    for draft in drafts {
        if let Some(Kind::Wait(wait)) = &draft.kind
            && let Some(time) = wait.constant().filter(|time| *time >= deadline)
        {
            let (time, deadline) = (duration::show(time), duration::show(deadline));
            report.wrong(draft.at, format!("{} waits for {time}, but the {whole}'s deadline is {deadline}", draft.shown()));
        }
    }
}
