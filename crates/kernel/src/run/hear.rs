//! Hear what another entity says: a parent, a child, a limit. What was heard before, or is of no concern, changes nothing.
//! – --StartChild--> running | ready · ready --GrantSlot--> ready | running · open --CancelChild, ChildEnded--> open · what tasks hear: `task`

use super::evolve::evolve;
use super::{Decision, Run, cancel, start, task};
use crate::{
    Answer, CancelRun, Code, Completion, Effect, EntityId, Entry, Envelope, Epoch, Event, Failure, Heard, Message, Payload, RunId,
    StartChild, StartRun, StepId, Timestamp,
};

pub(super) fn decide(id: &RunId, state: Option<&Run>, envelope: Envelope, now: Timestamp) -> Decision {
    let Envelope { from, seq, message, .. } = envelope;
    let heard_before = state.and_then(|run| run.heard.get(&from)).is_some_and(|last| seq != 0 && *last >= seq);
    let decision = match (state, message) {
        _ if heard_before => None,
        (None, Message::StartChild(child)) => Some(begin(id, child, now)),
        (Some(run), Message::StartChild(child)) if child.options.task.is_some() => {
            (run.options.task != child.options.task).then(|| task::taken(id, &from, seq))
        }
        (Some(run), Message::StartChild(child)) => Some(taken(run, &from, &child)),
        (Some(run), Message::AdmitTask { epoch }) if is_plan(run, &from) => task::admit(run, epoch, now),
        (Some(run), Message::RecallTask { epoch }) if is_plan(run, &from) => task::recall(run, epoch, now),
        (Some(run), Message::OperateTask { verb, origin }) if is_plan(run, &from) => task::operate(run, (&from, seq), verb, origin, now),
        (_, Message::OperateTask { .. }) => Some(task::taken(id, &from, seq)), // another run, or it was removed
        (Some(run), Message::LockGranted { lease, asked }) => task::locked(run, &from, (*lease, asked), now),
        (Some(run), Message::LockRefused { asked, holder }) => task::refused(run, asked, &holder, now),
        (Some(run), Message::LockLost { fence, origin }) => task::lock_lost(run, fence, origin, now),
        (run, Message::ConfirmLock { fence, seen }) => Some(task::confirm(id, run, &from, fence, seen)),
        (Some(run), Message::GrantSlot { epoch }) => acquire(run, &from, epoch, now),
        (Some(run), Message::CancelChild { origin }) if is_parent(run, &from) => {
            cancel::decide(run, CancelRun { origin, blocked: false }, now).ok()
        }
        (Some(run), Message::ChildEnded { child, outcome }) => child_ended(run, &from, child, outcome, now),
        _ => None,
    };
    let mut decision = decision.unwrap_or_default();
    if let Some(first) = decision.entries.first_mut()
        && seq != 0
    {
        first.heard = Some(Heard { from, seq });
    }
    decision.effects.retain(|effect| !matches!(effect, Effect::Answer(_)));
    if !decision.effects.iter().any(|effect| matches!(effect, Effect::Bounce(_))) {
        decision.effects.push(Effect::Answer(Answer::Heard));
    }
    decision
}

fn begin(id: &RunId, child: StartChild, now: Timestamp) -> Decision {
    let StartChild { workflow, input, seed, deadline, options } = child;
    start::begin(StartRun { run: id.clone(), workflow, input, seed, deadline, options }, now)
}

/// Another run may have the id that a child was to have.
fn is_parent(run: &Run, from: &EntityId) -> bool {
    run.options.parent.as_ref().is_some_and(|parent| from.run() == Some(&parent.run))
}

fn is_plan(run: &Run, from: &EntityId) -> bool {
    matches!(from, EntityId::Plan(plan) if run.task_options().is_some_and(|options| options.plan == *plan))
}

/// There is a run of that id. If it is not the child itself, the parent has to know that there will be none; if it is and has ended, it does not say
/// so again by itself. A child of an earlier run of the parent's id, which was removed before its child, counts only if it was given the same work.
fn taken(run: &Run, from: &EntityId, child: &StartChild) -> Decision {
    let Some(parent) = child.options.parent.as_ref().filter(|parent| !parent.detached) else { return Decision::default() };
    let is_another = run.options.parent.as_ref() != Some(parent) || run.workflow != child.workflow || run.given != child.input;
    let outcome = match run.ended() {
        _ if is_another => {
            let message = format!("run {} exists already, and is not a child of this run", run.id);
            Err(Failure::permanent(message).code(Code::FailedPrecondition))
        }
        Some(ended) => ended.outcome.clone(),
        None => return Decision::default(),
    };
    let message = Message::ChildEnded { child: parent.child.clone(), outcome };
    let envelope = Envelope { from: EntityId::from(&run.id), seq: 0, to: from.clone(), message };
    Decision { entries: Vec::new(), effects: vec![Effect::Bounce(Box::new(envelope))] }
}

/// It has the slot that it waits for. With the last one it begins.
fn acquire(run: &Run, from: &EntityId, epoch: Epoch, now: Timestamp) -> Option<Decision> {
    let EntityId::Limit(key) = from else { return None };
    if !run.is_ready() || run.slots.epoch != epoch || run.wanted() != Some(key) {
        return None;
    }
    let entry = Entry::new(run.seq + 1, run.epoch, now, Event::SlotAcquired { key: key.clone() });
    let next = evolve(&run.id, Some(run.clone()), &entry).ok()?;
    let begins = !next.is_ready() && next.open().is_some_and(|open| !open.stands_still());
    let arm = next.timers().into_iter().map(Effect::Arm).filter(|_| begins); // what an earlier life has left, and the deadline if it has passed
    Some(Decision { entries: vec![entry], effects: arm.chain(begins.then_some(Effect::Host)).collect() })
}

fn child_ended(run: &Run, from: &EntityId, child: StepId, outcome: Result<Payload, Failure>, now: Timestamp) -> Option<Decision> {
    let on_record = run.open()?.children.get(&child)?;
    if on_record.ended || on_record.detached || from.run() != Some(&on_record.run) {
        return None;
    }
    let entry = Entry::new(run.seq + 1, run.epoch, now, Event::ChildEnded { child: child.clone(), outcome: outcome.clone() });
    Some(Decision { entries: vec![entry], effects: vec![Effect::Deliver(Completion::ChildEnded { child, outcome })] })
}
