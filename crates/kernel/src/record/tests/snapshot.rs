//! Compares the bytes of every stored event with their snapshot.

use super::*;
use crate::{LockEvent, PlanEvent, TaskEvent};
use steadfast_test_snapshots::bytes::{Page, Schema};
use steadfast_test_snapshots::{assert_snapshot, labels};

labels!(Events of Event {
    Event::RunStarted { .. } => "RUN_STARTED",
    Event::SlotAcquired { .. } => "SLOT_ACQUIRED",
    Event::StepCompleted { .. } => "STEP_COMPLETED",
    Event::StepStarted { .. } => "STEP_STARTED",
    Event::StepFailed { .. } => "STEP_FAILED",
    Event::RetryScheduled { .. } => "RETRY_SCHEDULED",
    Event::StepSkipped { .. } => "STEP_SKIPPED",
    Event::StepHeartbeat { .. } => "STEP_HEARTBEAT",
    Event::ProgressNoted { .. } => "PROGRESS_NOTED",
    Event::TimerSet { .. } => "TIMER_SET",
    Event::TimerFired { .. } => "TIMER_FIRED",
    Event::SignalAwaited { .. } => "SIGNAL_AWAITED",
    Event::SignalReceived { .. } => "SIGNAL_RECEIVED",
    Event::SignalTaken { .. } => "SIGNAL_TAKEN",
    Event::ChildStarted { .. } => "CHILD_STARTED",
    Event::ChildEnded { .. } => "CHILD_ENDED",
    Event::ChildTaken { .. } => "CHILD_TAKEN",
    Event::RunPaused { .. } => "RUN_PAUSED",
    Event::RunResumed { .. } => "RUN_RESUMED",
    Event::RunInterrupted => "RUN_INTERRUPTED",
    Event::RunRetried(_) => "RUN_RETRIED",
    Event::RunContinued { .. } => "RUN_CONTINUED",
    Event::RunCancelRequested { .. } => "RUN_CANCEL_REQUESTED",
    Event::RunCompensating { .. } => "RUN_COMPENSATING",
    Event::UndoCompleted { .. } => "UNDO_COMPLETED",
    Event::UndoFailed { .. } => "UNDO_FAILED",
    Event::RunCancelled => "RUN_CANCELLED",
    Event::RunCompleted { .. } => "RUN_COMPLETED",
    Event::RunFailed { .. } => "RUN_FAILED",
    Event::SlotRequested { .. } => "SLOT_REQUESTED",
    Event::SlotGranted { .. } => "SLOT_GRANTED",
    Event::SlotReleased { .. } => "SLOT_RELEASED",
    Event::LetterAdded(_) => "LETTER_ADDED",
    Event::LetterRedriven { .. } => "LETTER_REDRIVEN",
    Event::LetterDropped { .. } => "LETTER_DROPPED",
    Event::LetterFailed { .. } => "LETTER_FAILED",
    Event::KeyPut(_) => "KEY_PUT",
    Event::KeyRenewed { .. } => "KEY_RENEWED",
    Event::KeyDeleted { .. } => "KEY_DELETED",
    Event::KeyExpired { .. } => "KEY_EXPIRED",
    Event::CallbackFailed { .. } => "CALLBACK_FAILED",
    Event::CallbackSettled { .. } => "CALLBACK_SETTLED",
    Event::Task(_) => "event of a task",
    Event::Plan(_) => "event of a plan",
    Event::Lock(_) => "event of a lock",
});

labels!(TaskEvents of TaskEvent {
    TaskEvent::Admitted { .. } => "TASK_ADMITTED",
    TaskEvent::Recalled { .. } => "TASK_RECALLED",
    TaskEvent::LockAcquired(_) => "task: LOCK_ACQUIRED",
    TaskEvent::LockLost { .. } => "task: LOCK_LOST",
    TaskEvent::Started => "TASK_STARTED",
    TaskEvent::StageStarted { .. } => "STAGE_STARTED",
    TaskEvent::StageCompleted { .. } => "STAGE_COMPLETED",
    TaskEvent::StageFailed { .. } => "STAGE_FAILED",
    TaskEvent::CheckpointSaved { .. } => "CHECKPOINT_SAVED",
    TaskEvent::Adopted { .. } => "TASK_ADOPTED",
    TaskEvent::HandedOver { .. } => "TASK_HANDED_OVER",
});

labels!(PlanEvents of PlanEvent {
    PlanEvent::Created(_) => "PLAN_CREATED",
    PlanEvent::Started { .. } => "PLAN_STARTED",
    PlanEvent::Paused { .. } => "PLAN_PAUSED",
    PlanEvent::Resumed { .. } => "PLAN_RESUMED",
    PlanEvent::CancelRequested { .. } => "PLAN_CANCEL_REQUESTED",
    PlanEvent::TaskChanged { .. } => "TASK_CHANGED",
    PlanEvent::TaskAdmitted { .. } => "plan: TASK_ADMITTED",
    PlanEvent::TaskRecalled { .. } => "plan: TASK_RECALLED",
    PlanEvent::Completed => "PLAN_COMPLETED",
    PlanEvent::Failed { .. } => "PLAN_FAILED",
    PlanEvent::Cancelled => "PLAN_CANCELLED",
    PlanEvent::Degraded { .. } => "DEGRADED",
    PlanEvent::Restored { .. } => "RESTORED",
});

labels!(LockEvents of LockEvent {
    LockEvent::Requested(_) => "LOCK_REQUESTED",
    LockEvent::Acquired(_) => "LOCK_ACQUIRED",
    LockEvent::Renewed { .. } => "LOCK_RENEWED",
    LockEvent::Suspected { .. } => "LOCK_SUSPECTED",
    LockEvent::Released { .. } => "LOCK_RELEASED",
    LockEvent::Lost { .. } => "LOCK_LOST",
    LockEvent::BrokenElsewhere { .. } => "LOCK_BROKEN elsewhere",
    LockEvent::Broken { .. } => "LOCK_BROKEN",
});

/// The label of an event, noted as covered.
fn cover(event: &Event, page: &mut Page) -> &'static str {
    page.cover(Events::of(event));
    let label = match event {
        Event::Task(event) => TaskEvents::of(event),
        Event::Plan(event) => PlanEvents::of(event),
        Event::Lock(event) => LockEvents::of(event),
        event => Events::of(event),
    };
    page.cover(label);
    label
}

fn write(label: &str, entry: &Entry, schema: &mut Schema, page: &mut Page) {
    let Record { seq, epoch, kind, at, subject, attempt, backoff_ms, reason, payload, body } = Record::from(entry);
    page.form(label);
    page.value("seq", seq);
    page.value("epoch", epoch);
    page.value("type", kind);
    page.value("at", at.as_micros());
    let attempt = attempt.map(|attempt| attempt.to_string());
    let backoff_ms = backoff_ms.map(|backoff| backoff.to_string());
    for (name, column) in [("subject", subject), ("attempt", attempt), ("backoff_ms", backoff_ms), ("reason", reason)] {
        if let Some(column) = column {
            page.value(name, column);
        }
    }
    if let Some(payload) = payload {
        page.value("payload", payload.encoding.as_str());
        page.hex(&payload.bytes);
    }
    page.protobuf(&body, schema);
}

/// An event with every field that an entry may have beside it.
fn full_entry() -> Entry {
    Entry {
        in_flight: Some(3),
        held: 2,
        abandoned: vec![TimerName::Sleep(step()), TimerName::Retry(step())],
        heard: Some(Heard { from: EntityId::Letters(workflow()), seq: 1 << 40 }),
        ..Entry::new(4, 2, Timestamp::from_micros(1_700_000), Event::RunInterrupted)
    }
}

fn events() -> impl Iterator<Item = Event> {
    let of_runs = every_event().into_iter().chain(every_event_of_keys());
    of_runs.chain(every_event_of_plans()).chain(every_event_of_routes())
}

#[test]
fn stored_events_match_snapshot() {
    let mut schema = Schema::of(|bytes| Body::decode(bytes).is_ok());
    let mut page = Page::default();
    write("full entry", &full_entry(), &mut schema, &mut page);
    for event in events() {
        let label = cover(&event, &mut page);
        write(label, &Entry::new(4, 2, Timestamp::from_micros(1_700_000), event), &mut schema, &mut page);
    }
    for labels in [Events::ALL, TaskEvents::ALL, PlanEvents::ALL, LockEvents::ALL] {
        page.assert_covers(labels);
    }
    schema.assert_shown();
    assert_snapshot("bytes/events.txt", page.text());
}

fn helds() -> impl Iterator<Item = Held> {
    every_event_of_keys().into_iter().filter_map(|event| match event {
        Event::KeyPut(held) => Some(*held),
        _ => None,
    })
}

#[test]
fn stored_rows_match_snapshot() {
    let mut page = Page::default();
    let mut schema = Schema::of(|bytes| FailureBody::decode(bytes).is_ok());
    page.form("failure");
    page.protobuf(&failure().encode(), &mut schema);
    schema.assert_shown();
    let mut schema = Schema::of(|bytes| HeldBody::decode(bytes).is_ok());
    for held in helds() {
        page.form("key");
        page.protobuf(&held.encode(), &mut schema);
    }
    schema.assert_shown();
    assert_snapshot("bytes/rows.txt", page.text());
}
