//! An event out of its stored form.

use super::parts::SuppliedBody;
use super::{Body, FailureBody, MessageBody, OptionsBody, Record, plans};
use crate::random::Seed;
use crate::{Event, KeyName, Letter, LetterAbout, LimitKey, Origin, Retried, RunId, RunOptions, StepId, Timestamp, WorkflowName};
use std::time::Duration;

/// Puts the event together, or names the field that is missing or wrong.
pub(super) fn event(record: &Record, body: Body) -> Result<Event, &'static str> {
    if let Some(event) = plans::read(record, &body) {
        return event;
    }
    let subject = || record.subject.as_deref().map(StepId::from_stored).ok_or("subject");
    let attempt = || record.attempt.ok_or("attempt");
    let payload = || record.payload.clone().ok_or("payload");
    let due_at = || body.due_at.map(Timestamp::from_micros).ok_or("due_at");
    let failure = || body.failure.as_ref().and_then(FailureBody::read).ok_or("failure");
    let run = || body.run.as_deref().and_then(|run| RunId::new(run).ok()).ok_or("run");
    let workflow = || body.workflow.as_deref().and_then(|name| WorkflowName::new(name).ok()).ok_or("workflow");
    let options = || {
        body.options
            .as_ref()
            .map_or_else(|| Some(RunOptions::default()), OptionsBody::read)
            .ok_or("options")
    };
    let revision = || body.revision.ok_or("revision");
    let held = || body.held.as_ref().and_then(|held| held.read(record.payload.clone()?)).ok_or("held");
    let key = |name: &Option<String>| name.as_deref().map(KeyName::new).transpose().map_err(|_| "key");
    let origin = || Origin { by: body.by.clone(), why: body.why.clone(), command: body.command.clone() };
    Ok(match record.kind.as_str() {
        "RUN_STARTED" => Event::RunStarted {
            workflow: workflow()?,
            options: options()?,
            input: payload()?,
            seed: body.seed.as_deref().and_then(|seed| seed.try_into().ok()).map(Seed).ok_or("seed")?,
            deadline_at: body.deadline_at.map(Timestamp::from_micros),
        },
        "STEP_STARTED" => Event::StepStarted { step: subject()?, attempt: attempt()? },
        "STEP_COMPLETED" => {
            let undoable = body.undoable.unwrap_or_default();
            Event::StepCompleted { step: subject()?, attempt: attempt()?, output: payload()?, undoable }
        }
        "STEP_SKIPPED" => Event::StepSkipped { step: subject()? },
        "STEP_FAILED" => Event::StepFailed { step: subject()?, attempt: attempt()?, failure: failure()? },
        "RETRY_SCHEDULED" => Event::RetryScheduled {
            step: subject()?,
            attempt: attempt()?,
            of: body.of.ok_or("of")?,
            delay: body.delay_us.map(Duration::from_micros).ok_or("delay_us")?,
            due_at: due_at()?,
            failure: failure()?,
            details: record.payload.clone(),
        },
        "SLOT_ACQUIRED" => Event::SlotAcquired { key: body.name.as_deref().and_then(LimitKey::from_stored).ok_or("name")? },
        "STEP_HEARTBEAT" => Event::StepHeartbeat { step: subject()?, attempt: attempt()?, details: payload()? },
        "PROGRESS_NOTED" => Event::ProgressNoted { note: subject()?, text: record.reason.clone().ok_or("reason")? },
        "CHILD_STARTED" => Event::ChildStarted {
            child: subject()?,
            run: run()?,
            workflow: workflow()?,
            input: payload()?,
            deadline: body.deadline_us.map(Duration::from_micros),
            options: options()?,
        },
        "CHILD_ENDED" => {
            let outcome = if body.failure.is_some() { Err(failure()?) } else { Ok(payload()?) };
            Event::ChildEnded { child: subject()?, outcome }
        }
        "CHILD_TAKEN" => Event::ChildTaken { child: subject()? },
        "RUN_PAUSED" => Event::RunPaused { origin: origin() },
        "RUN_RESUMED" => Event::RunResumed { origin: origin() },
        "RUN_INTERRUPTED" => Event::RunInterrupted,
        "RUN_RETRIED" => {
            let output = |body: &SuppliedBody| Some((StepId::from_stored(&body.step), body.output.as_ref()?.read()?));
            Event::RunRetried(Box::new(Retried {
                origin: origin(),
                from: body.from.iter().map(|step| StepId::from_stored(step)).collect(),
                cuts: body.cuts.iter().map(|cut| (cut.at, StepId::from_stored(&cut.step))).collect(),
                cut: body.cut.ok_or("cut")?,
                reset: body.reset.iter().map(|step| StepId::from_stored(step)).collect(),
                supplied: body.supplied.iter().map(output).collect::<Option<_>>().ok_or("supplied")?,
                input: record.payload.clone(),
            }))
        }
        "RUN_CONTINUED" => Event::RunContinued { input: payload()? },
        "SLOT_REQUESTED" => {
            Event::SlotRequested { run: run()?, epoch: body.run_epoch.ok_or("run_epoch")?, slots: body.slots.ok_or("slots")? }
        }
        "SLOT_GRANTED" => Event::SlotGranted { run: run()? },
        "SLOT_RELEASED" => Event::SlotReleased { run: run()? },
        "LETTER_ADDED" => Event::LetterAdded(Box::new(Letter {
            about: match body.key {
                _ if body.message.is_some() => body.message.as_ref().and_then(MessageBody::read).ok_or("message")?,
                Some(_) => LetterAbout::Expiry { key: key(&body.key)?.ok_or("key")?, revision: revision()? },
                None => LetterAbout::Step { run: run()?, step: body.step.as_deref().map(StepId::from_stored).ok_or("step")? },
            },
            attempt: attempt()?,
            tenant: body.tenant.clone(),
            failure: failure()?,
            payload: payload()?,
        })),
        "LETTER_REDRIVEN" => Event::LetterRedriven { letter: body.signal.ok_or("signal")?, origin: origin() },
        "LETTER_FAILED" => Event::LetterFailed { letter: body.signal.ok_or("signal")?, attempt: attempt()?, failure: failure()? },
        "KEY_PUT" => Event::KeyPut(Box::new(held()?)),
        "KEY_RENEWED" => Event::KeyRenewed {
            revision: revision()?,
            ttl: body.ttl_us.map(Duration::from_micros).ok_or("ttl")?,
            expires_at: due_at()?,
            restated: body.held.is_some().then(held).transpose()?.map(Box::new),
        },
        "KEY_DELETED" => Event::KeyDeleted { revision: revision()?, with: key(&body.with)? },
        "KEY_EXPIRED" => Event::KeyExpired {
            revision: revision()?,
            ended_at: body.ended_at.map(Timestamp::from_micros).ok_or("ended_at")?,
            handled: body.handled.unwrap_or_default(),
            with: key(&body.with)?,
        },
        "CALLBACK_FAILED" => Event::CallbackFailed {
            revision: revision()?,
            attempt: attempt()?,
            of: body.of.ok_or("of")?,
            delay: body.delay_us.map(Duration::from_micros).ok_or("delay")?,
            due_at: due_at()?,
            failure: failure()?,
        },
        "CALLBACK_SETTLED" => {
            Event::CallbackSettled { revision: revision()?, attempt: attempt()?, run: body.run.is_some().then(run).transpose()? }
        }
        "LETTER_DROPPED" => Event::LetterDropped { letter: body.signal.ok_or("signal")?, origin: origin() },
        "TIMER_SET" => Event::TimerSet { sleep: subject()?, due_at: due_at()? },
        "TIMER_FIRED" => Event::TimerFired { sleep: subject()? },
        "SIGNAL_AWAITED" => {
            let until = body.due_at.map(Timestamp::from_micros);
            let approval = body.approval.as_ref().map(|approval| approval.roles.clone());
            Event::SignalAwaited { wait: subject()?, name: body.name.clone().ok_or("name")?, until, approval }
        }
        "SIGNAL_RECEIVED" => {
            let (id, by, why) = (body.id.clone(), body.by.clone(), body.why.clone());
            Event::SignalReceived { payload: payload()?, name: body.name.clone().ok_or("name")?, id, by, why }
        }
        "SIGNAL_TAKEN" => Event::SignalTaken { wait: subject()?, signal: body.signal.ok_or("signal")? },
        "RUN_CANCEL_REQUESTED" => {
            let (terminate, undo) = (body.terminate.unwrap_or_default(), body.undo.unwrap_or_default());
            Event::RunCancelRequested { origin: origin(), terminate, undo }
        }
        "RUN_COMPENSATING" => Event::RunCompensating { failure: body.failure.is_some().then(failure).transpose()? },
        "UNDO_COMPLETED" => Event::UndoCompleted { step: subject()?, attempt: attempt()? },
        "UNDO_FAILED" => Event::UndoFailed { step: subject()?, attempt: attempt()?, failure: failure()? },
        "RUN_CANCELLED" => Event::RunCancelled,
        "RUN_COMPLETED" => Event::RunCompleted { output: payload()? },
        "RUN_FAILED" => Event::RunFailed { failure: failure()? },
        _ => return Err("a known event type"),
    })
}
