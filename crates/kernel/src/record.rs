//! The stored form of a journal entry.
//!
//! What people query is a column (type, subject, attempt, backoff, reason, time); the user's bytes are kept exactly as they came; the rest is
//! one small protobuf message whose numbered fields can grow. A stored record is never decoded and written again.

mod keys;
mod parts;
mod plans;
mod read;

use keys::HeldBody;
use parts::{ApprovalBody, CutBody, SuppliedBody};
pub(crate) use parts::{FailureBody, MessageBody, OptionsBody};

use crate::{
    Attempt, EntityId, Entry, Epoch, Event, Heard, Letter, LetterAbout, Origin, Payload, Retried, Seq, StepId, TimerName, Timestamp,
};
use bytes::Bytes;
use prost::Message;
use std::time::Duration;

/// A journal entry as a store keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Counted from 1 per entity, without gaps.
    pub seq: Seq,
    /// Which life of the run.
    pub epoch: Epoch,
    /// The event type, upper snake.
    pub kind: String,
    /// When.
    pub at: Timestamp,
    /// The step or sleep it is about.
    pub subject: Option<String>,
    /// The attempt it is about; for a scheduled retry the one to come.
    pub attempt: Option<Attempt>,
    /// The drawn delay, in whole milliseconds, rounded up.
    pub backoff_ms: Option<u64>,
    /// Why something failed, for people.
    pub reason: Option<String>,
    /// The user's bytes.
    pub payload: Option<Payload>,
    /// Everything else.
    pub body: Bytes,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} ({kind}) cannot be read: {why}")]
pub struct Unreadable {
    /// Its place.
    pub seq: Seq,
    /// Its type.
    pub kind: String,
    /// What is missing or wrong.
    pub why: String,
}

/// The fields of all event types. Numbers are for ever; a field that falls out of use keeps its number.
#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(uint32, optional, tag = "1")]
    in_flight: Option<u32>,
    #[prost(string, optional, tag = "2")]
    workflow: Option<String>,
    #[prost(bytes = "vec", optional, tag = "3")]
    seed: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "4")]
    deadline_at: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    due_at: Option<i64>,
    #[prost(uint64, optional, tag = "6")]
    delay_us: Option<u64>,
    #[prost(uint32, optional, tag = "7")]
    of: Option<u32>,
    #[prost(message, optional, tag = "8")]
    failure: Option<FailureBody>,
    #[prost(string, repeated, tag = "9")]
    abandoned: Vec<String>,
    #[prost(bool, optional, tag = "10")]
    undoable: Option<bool>,
    #[prost(string, optional, tag = "11")]
    name: Option<String>,
    #[prost(string, optional, tag = "12")]
    id: Option<String>,
    #[prost(uint64, optional, tag = "13")]
    signal: Option<u64>,
    #[prost(string, optional, tag = "14")]
    by: Option<String>,
    #[prost(string, optional, tag = "15")]
    why: Option<String>,
    #[prost(message, optional, tag = "16")]
    options: Option<OptionsBody>,
    #[prost(string, optional, tag = "17")]
    heard_from: Option<String>,
    #[prost(uint64, optional, tag = "18")]
    heard_seq: Option<u64>,
    #[prost(string, optional, tag = "19")]
    command: Option<String>,
    #[prost(string, optional, tag = "20")]
    run: Option<String>,
    #[prost(uint64, optional, tag = "21")]
    deadline_us: Option<u64>,
    #[prost(uint32, optional, tag = "22")]
    run_epoch: Option<u32>,
    #[prost(uint32, optional, tag = "23")]
    slots: Option<u32>,
    #[prost(uint64, optional, tag = "24")]
    cut: Option<u64>,
    #[prost(string, repeated, tag = "25")]
    reset: Vec<String>,
    #[prost(message, repeated, tag = "26")]
    supplied: Vec<SuppliedBody>,
    #[prost(string, repeated, tag = "27")]
    from: Vec<String>,
    #[prost(bool, optional, tag = "28")]
    terminate: Option<bool>,
    #[prost(string, optional, tag = "29")]
    tenant: Option<String>,
    #[prost(message, repeated, tag = "30")]
    cuts: Vec<CutBody>,
    #[prost(string, optional, tag = "31")]
    step: Option<String>,
    #[prost(message, optional, tag = "32")]
    approval: Option<ApprovalBody>,
    #[prost(uint64, optional, tag = "33")]
    revision: Option<u64>,
    #[prost(message, optional, tag = "34")]
    held: Option<HeldBody>,
    #[prost(uint64, optional, tag = "35")]
    ttl_us: Option<u64>,
    #[prost(int64, optional, tag = "36")]
    ended_at: Option<i64>,
    #[prost(bool, optional, tag = "37")]
    handled: Option<bool>,
    #[prost(string, optional, tag = "38")]
    with: Option<String>,
    #[prost(string, optional, tag = "39")]
    key: Option<String>,
    #[prost(bool, optional, tag = "40")]
    undo: Option<bool>,
    /// Events of tasks, plans and locks, as JSON.
    #[prost(bytes = "vec", optional, tag = "41")]
    task: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "42")]
    plan: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "43")]
    lock: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "44")]
    held_back: Option<u32>,
    #[prost(message, optional, tag = "45")]
    message: Option<MessageBody>,
}

impl From<&Entry> for Record {
    fn from(entry: &Entry) -> Self {
        let abandoned = entry.abandoned.iter().map(ToString::to_string).collect();
        let heard = entry.heard.as_ref();
        let mut body = Body {
            in_flight: entry.in_flight,
            held_back: Some(entry.held).filter(|held| *held > 0),
            abandoned,
            heard_from: heard.map(|heard| heard.from.to_string()),
            heard_seq: heard.map(|heard| heard.seq),
            ..Body::default()
        };
        let mut record = Record {
            seq: entry.seq,
            epoch: entry.epoch,
            kind: entry.event.kind().to_string(),
            at: entry.at,
            subject: entry.event.subject().map(|step| step.to_string()),
            attempt: None,
            backoff_ms: None,
            reason: None,
            payload: None,
            body: Bytes::new(),
        };
        match &entry.event {
            Event::RunStarted { workflow, input, seed, deadline_at, options } => {
                body.options = options.stored();
                record.payload = Some(input.clone());
                body.workflow = Some(workflow.to_string());
                body.seed = Some(seed.0.to_vec());
                body.deadline_at = deadline_at.map(Timestamp::as_micros);
            }
            Event::StepStarted { attempt, .. } | Event::UndoCompleted { attempt, .. } => record.attempt = Some(*attempt),
            Event::StepCompleted { attempt, output, undoable, .. } => {
                record.attempt = Some(*attempt);
                record.payload = Some(output.clone());
                body.undoable = undoable.then_some(true);
            }
            Event::StepFailed { attempt, failure, .. } | Event::UndoFailed { attempt, failure, .. } => {
                record.attempt = Some(*attempt);
                record.reason = Some(failure.message.clone());
                body.failure = Some(failure.into());
            }
            Event::RetryScheduled { attempt, of, delay, due_at, failure, details, .. } => {
                record.payload.clone_from(details);
                record.attempt = Some(*attempt);
                record.backoff_ms = Some(whole_millis(*delay));
                record.reason = Some(failure.message.clone());
                body.of = Some(*of);
                body.delay_us = Some(micros(*delay));
                body.due_at = Some(due_at.as_micros());
                body.failure = Some(failure.into());
            }
            Event::TimerSet { due_at, .. } => body.due_at = Some(due_at.as_micros()),
            Event::SignalAwaited { name, until, approval, .. } => {
                body.approval = approval.clone().map(|roles| ApprovalBody { roles });
                body.name = Some(name.clone());
                body.due_at = until.map(Timestamp::as_micros);
            }
            Event::SignalReceived { name, id, payload, by, why } => {
                record.payload = Some(payload.clone());
                record.reason.clone_from(why);
                (body.by, body.why) = (by.clone(), why.clone());
                (body.name, body.id) = (Some(name.clone()), id.clone());
            }
            Event::SignalTaken { signal, .. } => body.signal = Some(*signal),
            Event::RunCancelRequested { origin, terminate, undo } => {
                (body.terminate, body.undo) = (terminate.then_some(true), undo.then_some(true));
                set_origin(&mut record, &mut body, origin);
            }
            Event::RunPaused { origin } | Event::RunResumed { origin } => set_origin(&mut record, &mut body, origin),
            Event::SlotAcquired { key } => body.name = Some(key.to_string()),
            Event::StepHeartbeat { attempt, details, .. } => {
                record.attempt = Some(*attempt);
                record.payload = Some(details.clone());
            }
            Event::ProgressNoted { text, .. } => record.reason = Some(text.clone()),
            Event::ChildStarted { run, workflow, input, deadline, options, .. } => {
                record.payload = Some(input.clone());
                body.run = Some(run.to_string());
                body.workflow = Some(workflow.to_string());
                body.deadline_us = deadline.map(micros);
                body.options = options.stored();
            }
            Event::ChildEnded { outcome: Ok(output), .. } => record.payload = Some(output.clone()),
            Event::ChildEnded { outcome: Err(failure), .. } => {
                record.reason = Some(failure.message.clone());
                body.failure = Some(failure.into());
            }
            Event::RunRetried(retried) => {
                let Retried { origin, from, cut, cuts, reset, supplied, input } = &**retried;
                record.payload.clone_from(input);
                set_origin(&mut record, &mut body, origin);
                body.from = from.iter().map(ToString::to_string).collect();
                body.cuts = cuts.iter().map(|(at, step)| CutBody { at: *at, step: step.to_string() }).collect();
                body.cut = Some(*cut);
                body.reset = reset.iter().map(ToString::to_string).collect();
                let stored = |(step, output): &(StepId, Payload)| SuppliedBody { step: step.to_string(), output: Some(output.into()) };
                body.supplied = supplied.iter().map(stored).collect();
            }
            Event::RunContinued { input } => record.payload = Some(input.clone()),
            Event::SlotRequested { run, epoch, slots } => {
                (body.run, body.run_epoch, body.slots) = (Some(run.to_string()), Some(*epoch), Some(*slots));
            }
            Event::SlotGranted { run } | Event::SlotReleased { run } => body.run = Some(run.to_string()),
            Event::LetterAdded(letter) => {
                let Letter { about, attempt, tenant, failure, payload } = &**letter;
                record.attempt = Some(*attempt);
                record.reason = Some(failure.message.clone());
                record.payload = Some(payload.clone());
                match about {
                    LetterAbout::Step { run, step } => (body.run, body.step) = (Some(run.to_string()), Some(step.to_string())),
                    LetterAbout::Expiry { key, revision } => (body.key, body.revision) = (Some(key.to_string()), Some(*revision)),
                    LetterAbout::Message { .. } => body.message = MessageBody::of(about),
                }
                body.tenant.clone_from(tenant);
                body.failure = Some(failure.into());
            }
            Event::LetterRedriven { letter, origin } | Event::LetterDropped { letter, origin } => {
                body.signal = Some(*letter);
                set_origin(&mut record, &mut body, origin);
            }
            Event::LetterFailed { letter, attempt, failure } => {
                record.attempt = Some(*attempt);
                record.reason = Some(failure.message.clone());
                (body.signal, body.failure) = (Some(*letter), Some(failure.into()));
            }
            Event::RunCompensating { failure } => {
                record.reason = failure.as_ref().map(|failure| failure.message.clone());
                body.failure = failure.as_ref().map(Into::into);
            }
            Event::StepSkipped { .. }
            | Event::TimerFired { .. }
            | Event::ChildTaken { .. }
            | Event::RunInterrupted
            | Event::RunCancelled => {}
            Event::KeyPut(held) => {
                record.payload = Some(held.value.clone());
                body.held = Some((&**held).into());
            }
            Event::KeyRenewed { revision, ttl, expires_at, restated } => {
                record.payload = restated.as_ref().map(|held| held.value.clone());
                body.held = restated.as_ref().map(|held| (&**held).into());
                (body.revision, body.ttl_us, body.due_at) = (Some(*revision), Some(micros(*ttl)), Some(expires_at.as_micros()));
            }
            Event::KeyDeleted { revision, with } => {
                (body.revision, body.with) = (Some(*revision), with.as_ref().map(ToString::to_string));
            }
            Event::KeyExpired { revision, ended_at, handled, with } => {
                (body.revision, body.ended_at) = (Some(*revision), Some(ended_at.as_micros()));
                (body.handled, body.with) = (handled.then_some(true), with.as_ref().map(ToString::to_string));
            }
            Event::CallbackFailed { revision, attempt, of, delay, due_at, failure } => {
                record.attempt = Some(*attempt);
                record.backoff_ms = Some(whole_millis(*delay));
                record.reason = Some(failure.message.clone());
                (body.revision, body.of, body.delay_us) = (Some(*revision), Some(*of), Some(micros(*delay)));
                (body.due_at, body.failure) = (Some(due_at.as_micros()), Some(failure.into()));
            }
            Event::CallbackSettled { revision, attempt, run } => {
                record.attempt = Some(*attempt);
                (body.revision, body.run) = (Some(*revision), run.as_ref().map(ToString::to_string));
            }
            Event::Task(event) => plans::write_task(event, &mut record, &mut body),
            Event::Plan(event) => plans::write_plan(event, &mut record, &mut body),
            Event::Lock(event) => plans::write_lock(event, &mut record, &mut body),
            Event::RunCompleted { output } => record.payload = Some(output.clone()),
            Event::RunFailed { failure } => {
                record.reason = Some(failure.message.clone());
                body.failure = Some(failure.into());
            }
        }
        record.body = body.encode_to_vec().into();
        record
    }
}

impl TryFrom<&Record> for Entry {
    type Error = Unreadable;

    fn try_from(record: &Record) -> Result<Self, Unreadable> {
        let unreadable = |why: String| Unreadable { seq: record.seq, kind: record.kind.clone(), why };
        let body = Body::decode(record.body.clone()).map_err(|error| unreadable(error.to_string()))?;
        let wrong = |missing: &str| unreadable(format!("{missing} is missing or wrong"));
        let (in_flight, held) = (body.in_flight, body.held_back.unwrap_or_default());
        let abandoned = body
            .abandoned
            .iter()
            .map(|name| TimerName::from_stored(name).ok_or_else(|| wrong("abandoned")))
            .collect::<Result<_, _>>()?;
        let heard = match (&body.heard_from, body.heard_seq) {
            (Some(from), Some(seq)) => Some(Heard { from: EntityId::from_stored(from).ok_or_else(|| wrong("heard_from"))?, seq }),
            _ => None,
        };
        let event = read::event(record, body).map_err(wrong)?;
        Ok(Entry { seq: record.seq, epoch: record.epoch, at: record.at, in_flight, held, abandoned, heard, event })
    }
}

fn set_origin(record: &mut Record, body: &mut Body, origin: &Origin) {
    record.reason.clone_from(&origin.why);
    (body.by, body.why, body.command) = (origin.by.clone(), origin.why.clone(), origin.command.clone());
}

/// Rounded up.
fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
