//! The journal in public: one event, with what people ask for first beside it.

mod plans;
mod types;

use super::step::step_name;
use super::time::millis;
use super::{Data, Failure, Locked, OnExpire, Time};
use serde::{Deserialize, Serialize};
use steadfast_kernel::{self as kernel, Entry, Held, LetterAbout, Origin, StepId};
use utoipa::ToSchema;

/// An event of a run, a plan, a task, a lock, a key or a dead letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Event)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The run, or what else it happened to.
    #[schema(examples("wf-12345"))]
    pub workflow_id: String,
    /// What happened.
    #[schema(examples("RETRY_SCHEDULED"))]
    pub event_type: String,
    /// Its place in the journal, counted from 1 without gaps.
    pub sequence: u64,
    /// Which life of the run.
    pub epoch: u32,
    /// When.
    pub timestamp: Time,
    /// What belongs to it.
    pub payload: EventPayload,
    /// The attempt it is about; the attempt to come for `RETRY_SCHEDULED`; 1 where there is none.
    pub attempt_number: u32,
    /// The delay that was drawn before the attempt to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_delay_ms: Option<u64>,
    /// Why something failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
}

macro_rules! payload {
    ($($(#[$meta:meta])* $name:ident: $type:ty,)+) => {
        /// What belongs to an event; what does not apply is left out.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
        #[schema(as = EventPayload)]
        #[serde(rename_all = "camelCase")]
        pub struct EventPayload {
            $($(#[$meta])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)+
        }
    };
}

payload! {
    /// The name of the step, sleep, wait or child it is about.
    task_id: String,
    /// Its place in the run: `BRANCH/NAME#OCCURRENCE`.
    path: String,
    /// Why: what somebody said who asked for it, or the message of a failure.
    reason: String,
    /// Who asked for it.
    by: String,
    /// What tells the request from others.
    command: String,
    /// What failed, in full.
    failure: Failure,
    /// What a step, a child or the run returned.
    #[schema(value_type = Data)]
    output: Data,
    /// What the code, or that of a child, is given.
    #[schema(value_type = Data)]
    input: Data,
    /// What a signal says.
    #[schema(value_type = Data)]
    payload: Data,
    /// What an attempt says of how far it has come.
    #[schema(value_type = Data)]
    details: Data,
    /// What the code says of how far it has come.
    note: String,
    /// The workflow of a run or a child.
    workflow: String,
    /// The child, or the run that a limit or a letter is about.
    run: String,
    /// The run that started it.
    parent: String,
    /// Whose work it is.
    tenant: String,
    /// How many attempts there are in all.
    of: u32,
    /// When something is due.
    due_at: Time,
    /// When it must be over.
    deadline_at: Time,
    /// The step has to be undone if the run does not complete.
    undoable: bool,
    /// Nothing is undone.
    terminate: bool,
    /// The name of a signal.
    signal: String,
    /// What tells a signal from others.
    signal_id: String,
    /// The sequence of the signal that was taken.
    signal_sequence: u64,
    /// Who may say yes or no; everybody if it names nobody.
    roles: Vec<String>,
    /// The version of the definition that a run began with, by hash.
    definition: String,
    /// The limit, or the key that has expired.
    key: String,
    /// How many slots a limit has.
    slots: u32,
    /// Where another life begins again.
    from: Vec<String>,
    /// The steps and children that begin again.
    runs_again: Vec<String>,
    /// The steps whose output was supplied.
    supplied: Vec<String>,
    /// The sequence of a letter's arrival in its box.
    letter: u64,
    /// What a message was for.
    route: String,
    /// Whether a message was `received` or `sent`.
    direction: String,
    /// What a message was: a `call`, a `tell`, or a `frame` that nobody could read.
    message_kind: String,
    /// Who sent a message, or was to have it.
    peer: String,
    /// The id that the one who sent a message gave it.
    request: String,
    /// The revision of a key: the one from here on, or the one that ended.
    revision: u64,
    /// The value of a key.
    #[schema(value_type = Data)]
    value: Data,
    /// For how long a key lives from here on.
    ttl_ms: u64,
    /// Until when it lives.
    expires_at: Time,
    /// Who may change a key.
    owner: String,
    /// The keys below it end with it.
    directory: bool,
    /// Who is told of its expiry.
    on_expire: OnExpire,
    /// When the time of a key was over.
    ended_at: Time,
    /// The directory that a key ended with.
    with: String,
    /// The plan.
    plan: String,
    /// Where a task stands.
    status: String,
    /// The names of the stages of a plan, in order.
    stages: Vec<String>,
    /// The stage it is about.
    stage: String,
    /// Which one, counted from 0.
    index: u32,
    /// What the stages so far have left for those after them.
    #[schema(value_type = Data)]
    context_data: Data,
    /// Whom a plan is for, in order.
    tenants: Vec<String>,
    /// Whom it leaves out, and who has their lock.
    skipped: Vec<Locked>,
    /// How many tasks of a plan may be under way at once.
    max_concurrency: u32,
    /// Why a plan is paused.
    cause: String,
    /// What was done is to be undone.
    undo: bool,
    /// Who has a lock: `PLAN:TASK`, or `PLAN:TASK:INSTANCE:FENCE` if another instance has it.
    holder: String,
    /// The number of a holding.
    fence: u64,
    /// The instance that a task comes from, or goes to.
    instance: String,
}

impl EventPayload {
    fn about(step: &StepId) -> Self {
        EventPayload { task_id: Some(step_name(step).into()), path: Some(step.to_string()), ..Self::default() }
    }

    fn asked(origin: &Origin) -> Self {
        let Origin { by, why, command } = origin.clone();
        EventPayload { by, reason: why, command, ..Self::default() }
    }

    fn failed(self, failure: &kernel::Failure) -> Self {
        EventPayload { reason: Some(failure.message.clone()), failure: Some(failure.into()), ..self }
    }

    fn returned(self, output: &kernel::Payload) -> Self {
        EventPayload { output: Some(output.into()), ..self }
    }

    fn held(held: &Held) -> Self {
        EventPayload {
            revision: Some(held.revision),
            value: Some((&held.value).into()),
            ttl_ms: Some(millis(held.ttl)),
            expires_at: Some(Time(held.expires_at)),
            owner: held.owner.clone(),
            directory: Some(held.directory).filter(|directory| *directory),
            on_expire: held.on_expire.as_ref().map(OnExpire::from),
            ..Self::default()
        }
    }

    fn of(event: &kernel::Event) -> Self {
        use kernel::Event as E;
        let none = Self::default;
        match event {
            E::RunStarted { workflow, input, deadline_at, options, .. } => EventPayload {
                workflow: Some(workflow.to_string()),
                input: Some(input.into()),
                deadline_at: deadline_at.map(Time),
                tenant: options.tenant.clone(),
                parent: options.parent.as_ref().map(|parent| parent.run.to_string()),
                definition: options.definition.clone(),
                plan: options.task.as_ref().map(|task| task.plan.to_string()),
                stages: options.task.as_ref().map(|task| task.stages.clone()),
                ..none()
            },
            E::SlotAcquired { key } => EventPayload { key: Some(key.to_string()), ..none() },
            E::StepCompleted { step, output, undoable, .. } => {
                EventPayload { undoable: Some(*undoable).filter(|undoable| *undoable), ..Self::about(step).returned(output) }
            }
            E::StepStarted { step, .. } | E::StepSkipped { step } | E::UndoCompleted { step, .. } => Self::about(step),
            E::StepFailed { step, failure, .. } | E::UndoFailed { step, failure, .. } => Self::about(step).failed(failure),
            E::RetryScheduled { step, of, due_at, failure, details, .. } => EventPayload {
                of: Some(*of),
                due_at: Some(Time(*due_at)),
                details: details.as_ref().map(Data::from),
                ..Self::about(step).failed(failure)
            },
            E::StepHeartbeat { step, details, .. } => EventPayload { details: Some(details.into()), ..Self::about(step) },
            E::ProgressNoted { note, text } => EventPayload { note: Some(text.clone()), path: Some(note.to_string()), ..none() },
            E::TimerSet { sleep, due_at } => EventPayload { due_at: Some(Time(*due_at)), ..Self::about(sleep) },
            E::TimerFired { sleep } => Self::about(sleep),
            E::SignalAwaited { wait, name, until, approval } => {
                EventPayload { signal: Some(name.clone()), due_at: until.map(Time), roles: approval.clone(), ..Self::about(wait) }
            }
            E::SignalReceived { name, id, payload, by, why } => EventPayload {
                signal: Some(name.clone()),
                signal_id: id.clone(),
                payload: Some(payload.into()),
                by: by.clone(),
                reason: why.clone(),
                ..none()
            },
            E::SignalTaken { wait, signal } => EventPayload { signal_sequence: Some(*signal), ..Self::about(wait) },
            E::ChildStarted { child, run, workflow, input, options, .. } => EventPayload {
                run: Some(run.to_string()),
                workflow: Some(workflow.to_string()),
                input: Some(input.into()),
                tenant: options.tenant.clone(),
                ..Self::about(child)
            },
            E::ChildEnded { child, outcome: Ok(output) } => Self::about(child).returned(output),
            E::ChildEnded { child, outcome: Err(failure) } => Self::about(child).failed(failure),
            E::ChildTaken { child } => Self::about(child),
            E::RunPaused { origin } | E::RunResumed { origin } => Self::asked(origin),
            E::RunCancelRequested { origin, terminate, undo } => EventPayload {
                terminate: Some(*terminate).filter(|terminate| *terminate),
                undo: Some(*undo).filter(|undo| *undo),
                ..Self::asked(origin)
            },
            E::RunInterrupted | E::RunCancelled => none(),
            E::RunRetried(retried) => {
                let texts = |steps: &[StepId]| Some(steps.iter().map(ToString::to_string).collect());
                EventPayload {
                    from: texts(&retried.from),
                    runs_again: texts(&retried.reset),
                    supplied: Some(retried.supplied.iter().map(|(step, _)| step.to_string()).collect()),
                    input: retried.input.as_ref().map(Data::from),
                    ..Self::asked(&retried.origin)
                }
            }
            E::RunContinued { input } => EventPayload { input: Some(input.into()), ..none() },
            E::RunCompensating { failure: None } => none(),
            E::RunCompensating { failure: Some(failure) } | E::RunFailed { failure } => none().failed(failure),
            E::RunCompleted { output } => none().returned(output),
            E::SlotRequested { run, slots, .. } => EventPayload { run: Some(run.to_string()), slots: Some(*slots), ..none() },
            E::SlotGranted { run } | E::SlotReleased { run } => EventPayload { run: Some(run.to_string()), ..none() },
            E::LetterAdded(letter) => {
                let about = match &letter.about {
                    LetterAbout::Step { run, step } => EventPayload { run: Some(run.to_string()), ..Self::about(step) },
                    LetterAbout::Expiry { key, revision } => {
                        EventPayload { key: Some(key.to_string()), revision: Some(*revision), ..none() }
                    }
                    LetterAbout::Message { route, direction, kind, peer, request } => EventPayload {
                        route: Some(route.to_string()),
                        direction: Some(direction.as_str().into()),
                        message_kind: Some(kind.as_str().into()),
                        peer: Some(peer.clone()),
                        request: Some(request.clone()),
                        ..none()
                    },
                };
                let (tenant, payload) = (letter.tenant.clone(), Some((&letter.payload).into()));
                EventPayload { tenant, payload, ..about.failed(&letter.failure) }
            }
            E::LetterFailed { letter, failure, .. } => EventPayload { letter: Some(*letter), ..none().failed(failure) },
            E::KeyPut(held) => Self::held(held),
            E::KeyRenewed { revision, ttl, expires_at, .. } => {
                EventPayload { revision: Some(*revision), ttl_ms: Some(millis(*ttl)), expires_at: Some(Time(*expires_at)), ..none() }
            }
            E::KeyDeleted { revision, with } => {
                EventPayload { revision: Some(*revision), with: with.as_ref().map(ToString::to_string), ..none() }
            }
            E::KeyExpired { revision, ended_at, with, .. } => EventPayload {
                revision: Some(*revision),
                ended_at: Some(Time(*ended_at)),
                with: with.as_ref().map(ToString::to_string),
                ..none()
            },
            E::CallbackFailed { revision, of, due_at, failure, .. } => {
                EventPayload { revision: Some(*revision), of: Some(*of), due_at: Some(Time(*due_at)), ..none().failed(failure) }
            }
            E::CallbackSettled { revision, run, .. } => {
                EventPayload { revision: Some(*revision), run: run.as_ref().map(ToString::to_string), ..none() }
            }
            E::LetterRedriven { letter, origin } | E::LetterDropped { letter, origin } => {
                EventPayload { letter: Some(*letter), ..Self::asked(origin) }
            }
            E::Task(event) => Self::of_task(event),
            E::Plan(event) => Self::of_plan(event),
            E::Lock(event) => Self::of_lock(event),
        }
    }
}

impl Event {
    /// What an entry of the journal of that run, or of what else it is, says in public.
    pub fn of(run: &str, entry: &Entry) -> Self {
        let payload = EventPayload::of(&entry.event);
        Event {
            workflow_id: run.into(),
            event_type: entry.event.kind().into(),
            sequence: entry.seq,
            epoch: entry.epoch,
            timestamp: Time(entry.at),
            attempt_number: attempt(&entry.event).unwrap_or(1),
            backoff_delay_ms: backoff_ms(&entry.event),
            failure_reason: payload.failure.as_ref().map(|failure| failure.message.clone()),
            payload,
        }
    }
}

/// The attempt that an event is about.
fn attempt(event: &kernel::Event) -> Option<u32> {
    use kernel::Event as E;
    match event {
        E::StepStarted { attempt, .. }
        | E::StepCompleted { attempt, .. }
        | E::StepFailed { attempt, .. }
        | E::RetryScheduled { attempt, .. }
        | E::StepHeartbeat { attempt, .. }
        | E::UndoCompleted { attempt, .. }
        | E::UndoFailed { attempt, .. }
        | E::CallbackFailed { attempt, .. }
        | E::CallbackSettled { attempt, .. } => Some(*attempt),
        E::LetterAdded(letter) => Some(letter.attempt),
        _ => None,
    }
}

fn backoff_ms(event: &kernel::Event) -> Option<u64> {
    match event {
        kernel::Event::RetryScheduled { delay, .. } | kernel::Event::CallbackFailed { delay, .. } => Some(millis(*delay)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use steadfast_kernel::Timestamp;

    #[test]
    fn a_scheduled_retry_reads_as_it_is_promised() {
        let event = kernel::Event::RetryScheduled {
            step: StepId::new("", "processPayment", 1).unwrap(),
            attempt: 2,
            of: 5,
            delay: Duration::from_micros(2_346_500),
            due_at: Timestamp::from_micros(1_763_461_817_347_000),
            failure: kernel::Failure::transient("Connection timeout"),
            details: None,
        };
        let entry = Entry::new(5, 1, Timestamp::from_micros(1_763_461_815_000_000), event);
        let json: serde_json::Value = serde_json::to_value(Event::of("wf-12345", &entry)).unwrap();
        let promised = serde_json::json!({
            "workflowId": "wf-12345", "eventType": "RETRY_SCHEDULED", "sequence": 5, "epoch": 1, "timestamp": "2025-11-18T10:30:15Z",
            "payload": {
                "taskId": "processPayment", "path": "processPayment#1", "reason": "Connection timeout", "of": 5, "dueAt": "2025-11-18T10:30:17.347Z",
                "failure": {"class": "transient", "code": "UNAVAILABLE", "message": "Connection timeout", "causes": [], "attempts": 0},
            },
            "attemptNumber": 2, "backoffDelayMs": 2347, "failureReason": "Connection timeout",
        });
        assert_eq!(json, promised);
    }
}
