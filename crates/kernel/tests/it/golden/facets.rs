//! What forms an event can have: every field that may be there or not. A field that is new does not compile here until somebody has said what forms it has; then
//! a journal has to be added that has them.

mod plans;

use std::collections::BTreeSet;
use steadfast_kernel::{
    Class, Code, Direction, EntityId, Entry, Event, Failure, Held, Letter, LetterAbout, Limiting, MessageKind, Origin, Parent, Recovery,
    Retried, RunOptions, Target, TimerName,
};

/// Every form that a golden journal must have.
pub(super) fn all() -> BTreeSet<String> {
    let either = [
        "entry.in_flight",
        "entry.held",
        "entry.abandoned",
        "entry.heard",
        "RUN_STARTED.deadline_at",
        "options.tenant",
        "options.manual",
        "options.limits",
        "options.parent",
        "options.definition",
        "options.task",
        "STEP_COMPLETED.undoable",
        "RETRY_SCHEDULED.details",
        "SIGNAL_AWAITED.until",
        "SIGNAL_AWAITED.approval",
        "approval.roles",
        "SIGNAL_RECEIVED.id",
        "SIGNAL_RECEIVED.by",
        "SIGNAL_RECEIVED.why",
        "CHILD_STARTED.deadline",
        "RUN_CANCEL_REQUESTED.terminate",
        "RUN_CANCEL_REQUESTED.undo",
        "RUN_COMPENSATING.failure",
        "RUN_RETRIED.from",
        "RUN_RETRIED.cuts",
        "RUN_RETRIED.reset",
        "RUN_RETRIED.supplied",
        "RUN_RETRIED.input",
        "LETTER_ADDED.tenant",
        "origin.by",
        "origin.why",
        "origin.command",
        "failure.causes",
        "failure.retry_after",
        "failure.max_attempts",
        "parent.detached",
        "CHILD_ENDED.failure",
        "held.owner",
        "held.directory",
        "held.on_expire",
        "KEY_RENEWED.restated",
        "KEY_DELETED.with",
        "KEY_EXPIRED.handled",
        "KEY_EXPIRED.with",
        "CALLBACK_SETTLED.run",
    ];
    let single = [
        "abandoned retry",
        "abandoned sleep",
        "heard from a run",
        "heard from a limit",
        "heard from a plan",
        "heard from a lock",
        "letter about a step",
        "letter about an expiry",
        "letter about a call that came",
        "letter about a tell that came",
        "letter about a frame that came",
        "letter about a call that went",
        "letter about a tell that went",
        "letter about a frame that went",
        "letter of json",
        "letter of bytes",
        "target is an address",
        "target is a run",
        "target is a handler",
    ]
    .map(String::from);
    let classes = [Class::Transient, Class::Permanent, Class::Poison].map(|class| format!("class {}", class.as_str()));
    let codes = Code::ALL.iter().map(|code| format!("code {code}"));
    let both = either.iter().chain(&plans::EITHER).flat_map(|field| [present(field, true), present(field, false)]);
    both.chain(single).chain(plans::single()).chain(classes).chain(codes).collect()
}

fn present(field: &str, is_there: bool) -> String {
    format!("{field} {}", if is_there { "present" } else { "absent" })
}

/// The forms that an entry has.
pub(super) fn facets(entry: &Entry) -> Vec<String> {
    let Entry { seq: _, epoch: _, at: _, in_flight, held, abandoned, heard, event } = entry;
    let mut facets = vec![
        present("entry.in_flight", in_flight.is_some()),
        present("entry.held", *held > 0),
        present("entry.abandoned", !abandoned.is_empty()),
        present("entry.heard", heard.is_some()),
    ];
    facets.extend(abandoned.iter().map(|name| match name {
        TimerName::Retry(_) => "abandoned retry".to_string(),
        TimerName::Sleep(_) => "abandoned sleep".to_string(),
        other => format!("abandoned {other}"),
    }));
    facets.extend(heard.iter().map(|heard| format!("heard from a {}", whom(&heard.from))));
    facets.extend(of_event(event));
    facets
}

fn whom(from: &EntityId) -> &'static str {
    match from {
        EntityId::Run(_) => "run",
        EntityId::Limit(_) => "limit",
        EntityId::Letters(_) => "letter box",
        EntityId::Key(_) => "key",
        EntityId::Plan(_) => "plan",
        EntityId::Lock(_) => "lock",
        EntityId::Route(_) => "route",
    }
}

fn of_event(event: &Event) -> Vec<String> {
    match event {
        Event::RunStarted { workflow: _, input: _, seed: _, deadline_at, options } => {
            [vec![present("RUN_STARTED.deadline_at", deadline_at.is_some())], of_options(options)].concat()
        }
        Event::StepCompleted { step: _, attempt: _, output: _, undoable } => vec![present("STEP_COMPLETED.undoable", *undoable)],
        Event::StepFailed { step: _, attempt: _, failure }
        | Event::UndoFailed { step: _, attempt: _, failure }
        | Event::RunFailed { failure } => of_failure(failure),
        Event::RetryScheduled { step: _, attempt: _, of: _, delay: _, due_at: _, failure, details } => {
            [vec![present("RETRY_SCHEDULED.details", details.is_some())], of_failure(failure)].concat()
        }
        Event::SignalAwaited { wait: _, name: _, until, approval } => {
            let roles = approval.as_ref().map(|roles| present("approval.roles", !roles.is_empty()));
            let fields = [present("SIGNAL_AWAITED.until", until.is_some()), present("SIGNAL_AWAITED.approval", approval.is_some())];
            fields.into_iter().chain(roles).collect()
        }
        Event::SignalReceived { name: _, id, payload: _, by, why } => {
            [("SIGNAL_RECEIVED.id", id), ("SIGNAL_RECEIVED.by", by), ("SIGNAL_RECEIVED.why", why)]
                .map(|(field, text)| present(field, text.is_some()))
                .into()
        }
        Event::ChildStarted { child: _, run: _, workflow: _, input: _, deadline, options } => {
            [vec![present("CHILD_STARTED.deadline", deadline.is_some())], of_options(options)].concat()
        }
        Event::ChildEnded { child: _, outcome } => {
            let failure = outcome.as_ref().err();
            [vec![present("CHILD_ENDED.failure", failure.is_some())], failure.map(of_failure).unwrap_or_default()].concat()
        }
        Event::RunPaused { origin }
        | Event::RunResumed { origin }
        | Event::LetterRedriven { letter: _, origin }
        | Event::LetterDropped { letter: _, origin } => of_origin(origin),
        Event::RunRetried(retried) => of_retried(retried),
        Event::RunCancelRequested { origin, terminate, undo } => {
            let fields = vec![present("RUN_CANCEL_REQUESTED.terminate", *terminate), present("RUN_CANCEL_REQUESTED.undo", *undo)];
            [fields, of_origin(origin)].concat()
        }
        Event::RunCompensating { failure } => {
            [vec![present("RUN_COMPENSATING.failure", failure.is_some())], failure.as_ref().map(of_failure).unwrap_or_default()].concat()
        }
        Event::LetterAdded(letter) => {
            let Letter { about, attempt: _, tenant, failure, payload } = &**letter;
            let about = match about {
                LetterAbout::Step { run: _, step: _ } => "letter about a step",
                LetterAbout::Expiry { key: _, revision: _ } => "letter about an expiry",
                LetterAbout::Message { route: _, direction, kind, peer: _, request: _ } => match (direction, kind) {
                    (Direction::Received, MessageKind::Call) => "letter about a call that came",
                    (Direction::Received, MessageKind::Tell) => "letter about a tell that came",
                    (Direction::Received, MessageKind::Frame) => "letter about a frame that came",
                    (Direction::Sent, MessageKind::Call) => "letter about a call that went",
                    (Direction::Sent, MessageKind::Tell) => "letter about a tell that went",
                    (Direction::Sent, MessageKind::Frame) => "letter about a frame that went",
                },
            };
            let bytes = format!("letter of {}", payload.encoding.as_str());
            [vec![about.to_string(), bytes, present("LETTER_ADDED.tenant", tenant.is_some())], of_failure(failure)].concat()
        }
        Event::LetterFailed { letter: _, attempt: _, failure } => of_failure(failure),
        Event::KeyPut(held) => of_held(held),
        Event::KeyRenewed { revision: _, ttl: _, expires_at: _, restated } => {
            let held = restated.as_deref().map(of_held).unwrap_or_default();
            [vec![present("KEY_RENEWED.restated", restated.is_some())], held].concat()
        }
        Event::KeyDeleted { revision: _, with } => vec![present("KEY_DELETED.with", with.is_some())],
        Event::KeyExpired { revision: _, ended_at: _, handled, with } => {
            vec![present("KEY_EXPIRED.handled", *handled), present("KEY_EXPIRED.with", with.is_some())]
        }
        Event::CallbackFailed { revision: _, attempt: _, of: _, delay: _, due_at: _, failure } => of_failure(failure),
        Event::CallbackSettled { revision: _, attempt: _, run } => vec![present("CALLBACK_SETTLED.run", run.is_some())],
        Event::Task(event) => plans::of_task(event),
        Event::Plan(event) => plans::of_plan(event),
        Event::Lock(event) => plans::of_lock(event),
        Event::SlotAcquired { key: _ }
        | Event::StepStarted { step: _, attempt: _ }
        | Event::StepSkipped { step: _ }
        | Event::StepHeartbeat { step: _, attempt: _, details: _ }
        | Event::ProgressNoted { note: _, text: _ }
        | Event::TimerSet { sleep: _, due_at: _ }
        | Event::TimerFired { sleep: _ }
        | Event::SignalTaken { wait: _, signal: _ }
        | Event::ChildTaken { child: _ }
        | Event::RunInterrupted
        | Event::RunContinued { input: _ }
        | Event::UndoCompleted { step: _, attempt: _ }
        | Event::RunCancelled
        | Event::RunCompleted { output: _ }
        | Event::SlotRequested { run: _, epoch: _, slots: _ }
        | Event::SlotGranted { run: _ }
        | Event::SlotReleased { run: _ } => Vec::new(),
    }
}

fn of_options(options: &RunOptions) -> Vec<String> {
    let RunOptions { tenant, recovery, limits, parent, definition, task } = options;
    limits.iter().for_each(|Limiting { key: _, slots: _ }| {});
    let mut facets = vec![
        present("options.tenant", tenant.is_some()),
        present("options.manual", *recovery == Recovery::Manual),
        present("options.limits", !limits.is_empty()),
        present("options.parent", parent.is_some()),
        present("options.definition", definition.is_some()),
        present("options.task", task.is_some()),
    ];
    facets.extend(task.as_deref().map(plans::of_task_options).into_iter().flatten());
    facets.extend(parent.iter().map(|Parent { run: _, child: _, detached }| present("parent.detached", *detached)));
    facets
}

fn of_held(held: &Held) -> Vec<String> {
    let Held { revision: _, value: _, ttl: _, expires_at: _, owner, directory, on_expire, put_at: _ } = held;
    let target = on_expire.as_ref().map(|target| match target {
        Target::Url(_) => "target is an address",
        Target::StartRun { workflow: _, input: _ } => "target is a run",
        Target::Handler => "target is a handler",
    });
    let fields =
        [present("held.owner", owner.is_some()), present("held.directory", *directory), present("held.on_expire", on_expire.is_some())];
    fields.into_iter().chain(target.map(ToString::to_string)).collect()
}

fn of_origin(Origin { by, why, command }: &Origin) -> Vec<String> {
    [("origin.by", by), ("origin.why", why), ("origin.command", command)]
        .map(|(field, text)| present(field, text.is_some()))
        .into()
}

fn of_retried(retried: &Retried) -> Vec<String> {
    let Retried { origin, from, cut: _, cuts, reset, supplied, input } = retried;
    let mut facets = of_origin(origin);
    facets.extend([
        present("RUN_RETRIED.from", !from.is_empty()),
        present("RUN_RETRIED.cuts", !cuts.is_empty()),
        present("RUN_RETRIED.reset", !reset.is_empty()),
        present("RUN_RETRIED.supplied", !supplied.is_empty()),
        present("RUN_RETRIED.input", input.is_some()),
    ]);
    facets
}

/// A failure may get fields that are not for everybody; it cannot be taken apart outside of the kernel.
fn of_failure(failure: &Failure) -> Vec<String> {
    vec![
        format!("class {}", failure.class.as_str()),
        format!("code {}", failure.code),
        present("failure.causes", !failure.causes.is_empty()),
        present("failure.retry_after", failure.retry_after.is_some()),
        present("failure.max_attempts", failure.max_attempts.is_some()),
    ]
}
