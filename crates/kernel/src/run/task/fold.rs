//! What is known of a task is a fold of its journal: which event may come next, and what each of them leaves.

use super::{HandedOver, Task};
use crate::run::{How, Run, Step};
use crate::{Checkpoint, Entry, OnFailure, Payload, Retried, Seq, StepId, TaskEvent, TaskStatus};

/// Whether that event may happen to it; the reason if not.
pub(in crate::run) fn may_follow(run: &Run, event: &TaskEvent) -> Result<(), String> {
    let Some(task) = run.task() else { return Err("the run is no task".into()) };
    may_come(run, task, event)
}

/// The same, after what has come before it in a turn.
pub(in crate::run) fn may_come(run: &Run, task: &Task, event: &TaskEvent) -> Result<(), String> {
    let Some(options) = run.task_options() else { return Err("the run is no task".into()) };
    let total = u32::try_from(options.stages.len()).unwrap_or(u32::MAX);
    let done = u32::try_from(task.completed.len()).unwrap_or(u32::MAX);
    let fits = match event {
        TaskEvent::Admitted { .. } => run.waits_for_its_turn(),
        TaskEvent::Recalled { .. } => run.is_ready() && task.admitted && !task.rolls_back,
        TaskEvent::LockAcquired(lease) => {
            let takes = run.is_ready() && task.admitted;
            lease.task == run.id && task.lock.as_ref().map_or(takes, |held| held.fence < lease.fence)
        }
        TaskEvent::LockLost { fence, .. } => task.lock.as_ref().is_some_and(|lock| lock.fence == *fence),
        TaskEvent::Started => run.is_ready() && task.admitted && task.lock.is_some(),
        TaskEvent::Adopted { index, .. } => {
            let is_new = run.task_status() == Some(TaskStatus::Pending) && done == 0 && !task.adopting;
            is_new && index.is_none_or(|index| index < total)
        }
        TaskEvent::HandedOver { .. } => task.handed_over.is_none(),
        TaskEvent::StageStarted { index, .. } | TaskEvent::StageCompleted { index, .. } | TaskEvent::StageFailed { index, .. } => {
            *index < total && *index >= done
        }
        TaskEvent::CheckpointSaved { index, .. } => {
            *index + 1 < total && task.checkpoint.as_ref().is_none_or(|checkpoint| checkpoint.index < *index)
        }
    };
    if fits { Ok(()) } else { Err(format!("it does not fit a task with {done} of {total} stages done")) }
}

/// What is kept of an event.
pub(in crate::run) fn record(task: &mut Task, entry: &Entry, event: &TaskEvent) {
    match event {
        TaskEvent::Admitted { .. } => (task.admitted, task.asked) = (true, entry.seq),
        TaskEvent::Recalled { .. } => task.admitted = false,
        TaskEvent::LockAcquired(lease) => {
            task.fence = task.fence.max(lease.fence);
            task.lock = Some(lease.clone());
        }
        TaskEvent::LockLost { .. } => task.lock = None,
        TaskEvent::Started => {
            task.started = true;
            task.started_at.get_or_insert(entry.at);
        }
        TaskEvent::Adopted { started_at, fence, index, alone, half_undone, data, .. } => {
            let base = index.map(|index| Checkpoint { index, data: data.clone(), saved_at: entry.at, version: entry.seq });
            (task.adopting, task.alone, task.staged, task.half_undone) = (true, *alone, base.is_some(), *half_undone);
            task.started_at = task.started_at.or(*started_at).or_else(|| base.as_ref().map(|base| base.saved_at)); // what is done has begun
            task.fence = task.fence.max(*fence);
            task.checkpoint.clone_from(&base);
            task.adopted = base;
        }
        TaskEvent::HandedOver { to, .. } => {
            task.handed_over = Some(HandedOver { to: to.clone() });
            (task.lock, task.admitted, task.started, task.adopting) = (None, false, false, false);
        }
        TaskEvent::StageStarted { .. } => task.staged = true,
        TaskEvent::StageCompleted { .. } => task.completed.push(entry.seq),
        TaskEvent::StageFailed { .. } => {}
        TaskEvent::CheckpointSaved { index, data, .. } => {
            task.checkpoint = Some(Checkpoint { index: *index, data: data.clone(), saved_at: entry.at, version: entry.seq });
        }
    }
}

/// A stage that was done elsewhere is on record.
pub(in crate::run) fn record_done(task: &mut Task, entry: &Entry) {
    if task.adopting {
        task.completed.push(entry.seq);
        task.checkpoint
            .iter_mut()
            .chain(&mut task.adopted)
            .for_each(|checkpoint| checkpoint.version = entry.seq);
    }
}

/// Where the stage begins in which a task has failed, if it has.
pub(in crate::run) fn refused_stage(run: &Run) -> Option<Seq> {
    let task = run.task().filter(|task| !task.rolls_back)?;
    run.ended().filter(|ended| ended.outcome.is_err() && !ended.cancelled)?;
    let checkpoint = task.checkpoint.as_ref().map(|checkpoint| checkpoint.version);
    let done = checkpoint.max(task.completed.last().copied());
    Some(done.map_or(2, |done| done + 1))
}

/// Another life begins: what was discarded is not done any more, and it needs its turn again.
pub(in crate::run) fn begin_again(task: &mut Task, retried: &Retried) {
    task.completed.retain(|done| *done < retried.cut);
    task.checkpoint = task.checkpoint.take().filter(|checkpoint| checkpoint.version < retried.cut);
    task.adopted = task.adopted.take().filter(|done| done.version < retried.cut);
    task.undoing = task.undoing.take().filter(|_| task.completed.last().is_some());
    task.half_undone &= retried.cut > 2;
    (task.admitted, task.started, task.rolls_back, task.adopting, task.handed_over) = (false, false, false, false, None);
    task.staged &= !task.completed.is_empty() || retried.cut > 2;
}

/// It has ended: the lock is given back unless it is kept for a person.
pub(in crate::run) fn end(run: &mut Run, failed: bool) {
    let keeps = failed && run.task_options().is_some_and(|options| options.on_failure == OnFailure::Keep);
    if let Some(task) = &mut run.task {
        task.lock = task.lock.take().filter(|_| keeps);
        (task.admitted, task.started) = (false, false);
    }
}

/// What was done is being undone: no retry goes on from there.
pub(in crate::run) fn undo(run: &mut Run, entry: &Entry) {
    let last = last_done(run);
    if let Some(task) = &mut run.task {
        let before = task.checkpoint.take().or_else(|| task.undoing.take());
        let done = last.into_iter().chain(task.completed.len().checked_sub(1)).max();
        let index = done.and_then(|done| u32::try_from(done).ok());
        let data = before.map_or_else(|| Payload::json("{}"), |checkpoint| checkpoint.data);
        task.undoing = index.map(|index| Checkpoint { index, data, saved_at: entry.at, version: entry.seq });
    }
}

/// The last stage of which a step is on record as done, whether or not the stage is.
fn last_done(run: &Run) -> Option<usize> {
    let (open, options) = (run.open()?, run.task_options()?);
    let is_done = |stage: &String| {
        let step = StepId::new("", stage, 1).ok().and_then(|step| open.steps.get(&step));
        matches!(step, Some(Step::Done { how: How::Completed, .. }))
    };
    options.stages.iter().rposition(is_done)
}
