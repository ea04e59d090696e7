//! What a run says to other entities: a function of its state and the entry that is about to be folded in, so that the outbox is a fold too.

use super::{Open, Run, task};
use crate::{Class, EntityId, Entry, Event, Failure, Letter, LetterAbout, Message, Origin, Parent, Payload, Retried, StartChild, StepId};

/// To whom, and what, in order. `run` is the state before the entry; for the first entry, the one that it begins.
pub(super) fn said(run: &Run, entry: &Entry) -> Vec<(EntityId, Message)> {
    let mut said = said_by_any(run, entry);
    said.extend(task::said(run, entry));
    said
}

fn said_by_any(run: &Run, entry: &Entry) -> Vec<(EntityId, Message)> {
    match &entry.event {
        Event::RunStarted { .. } => request(run, 0, entry).into_iter().collect(),
        Event::SlotAcquired { .. } => request(run, run.slots.held + 1, entry).into_iter().collect(),
        Event::StepFailed { step, attempt, failure } if failure.class == Class::Poison => vec![post(run, step, *attempt, failure)],
        Event::ChildStarted { child, run: id, workflow, input, deadline, options } => {
            let seed = run.seed.derive(child.as_str(), "child");
            let (workflow, input, deadline, mut options) = (workflow.clone(), input.clone(), *deadline, options.clone());
            options.tenant = options.tenant.or_else(|| run.options.tenant.clone()); // the work is whose the parent's is
            vec![(id.into(), Message::StartChild(StartChild { workflow, input, seed, deadline, options }))]
        }
        Event::RunCompensating { .. } => cancel_children(run, run.records(), |_| true),
        Event::RunCompleted { output } => [ended(run, Ok(output.clone()))].into_iter().flatten().chain(release(run)).collect(),
        Event::RunFailed { failure } => not_completed(run, failure.clone()),
        Event::RunCancelled => not_completed(run, Failure::new(crate::Code::Cancelled, format!("run {} was cancelled", run.id))),
        Event::RunRetried(retried) => said_by_retry(run, entry, retried),
        _ => Vec::new(),
    }
}

fn request(run: &Run, index: usize, entry: &Entry) -> Option<(EntityId, Message)> {
    let limit = run.options.limits.get(index)?;
    let epoch = if index == 0 { entry.epoch } else { run.slots.epoch };
    Some((EntityId::Limit(limit.key.clone()), Message::RequestSlot { epoch, slots: limit.slots }))
}

fn release(run: &Run) -> impl Iterator<Item = (EntityId, Message)> {
    let epoch = run.slots.epoch;
    let asked = run.options.limits.iter().take(run.slots.asked);
    asked.map(move |limit| (EntityId::Limit(limit.key.clone()), Message::ReleaseSlot { epoch }))
}

fn post(run: &Run, step: &StepId, attempt: crate::Attempt, failure: &Failure) -> (EntityId, Message) {
    let (tenant, failure, payload) = (run.options.tenant.clone(), failure.clone(), run.input.clone());
    let letter = Letter { about: LetterAbout::Step { run: run.id.clone(), step: step.clone() }, attempt, tenant, failure, payload };
    (EntityId::Letters(run.workflow.clone()), Message::PostLetter(letter))
}

/// The parent waits for it.
fn ended(run: &Run, outcome: Result<Payload, Failure>) -> Option<(EntityId, Message)> {
    let Parent { run: parent, child, .. } = run.options.parent.as_ref().filter(|parent| !parent.detached)?;
    Some((parent.into(), Message::ChildEnded { child: child.clone(), outcome }))
}

fn not_completed(run: &Run, failure: Failure) -> Vec<(EntityId, Message)> {
    let children = cancel_children(run, run.records(), |_| true);
    ended(run, Err(failure)).into_iter().chain(release(run)).chain(children).collect()
}

fn cancel_children(run: &Run, open: &Open, which: impl Fn(&StepId) -> bool) -> Vec<(EntityId, Message)> {
    let origin =
        || Origin { by: Some(format!("run {}", run.id)), why: Some("the run that started it has not completed".into()), command: None };
    let told = open.open_children().filter(|(id, child)| !child.cancelled && which(id));
    told.map(|(_, child)| (EntityId::from(&child.run), Message::CancelChild { origin: origin() }))
        .collect()
}

/// A run that had ended needs its slots again; children that are discarded end; letters of steps that are tried again are settled.
fn said_by_retry(run: &Run, entry: &Entry, retried: &Retried) -> Vec<(EntityId, Message)> {
    let slot = request(run, 0, entry).filter(|_| run.ended().is_some());
    let children = cancel_children(run, run.records(), |child| retried.resets(child));
    let letters = retried.reset.iter().filter(|step| run.letters.contains(step));
    let settled = letters
        .map(|step| (EntityId::Letters(run.workflow.clone()), Message::SettleLetter { step: step.clone(), after: run.numbered_from() }));
    slot.into_iter().chain(children).chain(settled).collect()
}
