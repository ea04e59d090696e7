//! A task goes from one instance to another. Who has it is for the commons to say; here it is put on record.
//! – --AdoptRun--> interrupted: RUN_STARTED, TASK_ADOPTED, STEP_COMPLETED for each stage that is done, RUN_INTERRUPTED
//! handed over --AdoptRun--> interrupted: RUN_RETRIED, and the same · any task --HandOverRun--> ended: TASK_HANDED_OVER, RUN_CANCELLED if it was open

use super::turn::disarm_all;
use super::{Decision, Run, retry, start};
use crate::{
    AdoptRun, Answer, Effect, Entry, Event, HandOver, Origin, Payload, Refusal, RetryFrom, RetryRun, RunId, StepId, TaskEvent, Timestamp,
};

pub(super) fn decide(id: &RunId, state: Option<&Run>, command: AdoptRun, now: Timestamp) -> Result<Decision, Refusal> {
    let AdoptRun { start, from, origin, started_at, fence, done, half_undone, data, alone } = command;
    let Some(options) = start.options.task.clone() else { return Err(Refusal::RunNotFound { run: id.clone() }) };
    let begun = match state {
        None => start::begin(start, now),
        Some(run) if !run.is_handed_over() => return Err(run.refuse("it is this instance's own: no other has to hand it over")),
        Some(run) => {
            let own = Run {
                task: run.task.clone().map(|mut task| {
                    task.handed_over = None;
                    task
                }),
                ..run.clone()
            };
            // The command is kept for what its person wants of the task after this.
            let by = Origin { command: None, ..origin.clone() };
            let again = RetryRun { origin: by, from: RetryFrom::Start, ..RetryRun::default() };
            retry::begin(&own, again, now)?
        }
    };
    let done: Vec<bool> = done.into_iter().take(options.stages.len()).collect();
    let index = u32::try_from(done.len()).ok().and_then(|done| done.checked_sub(1));
    let adopted = Event::Task(Box::new(TaskEvent::Adopted { from, origin, started_at, fence, index, alone, half_undone, data }));
    let steps = options.stages.iter().zip(done).filter_map(|(stage, undoable)| {
        let step = StepId::new("", stage, 1).ok()?;
        Some(Event::StepCompleted { step, attempt: 1, output: Payload::json("null"), undoable })
    });
    let (seq, epoch) = begun.entries.last().map_or((0, 1), |entry| (entry.seq, entry.epoch));
    let events = [adopted].into_iter().chain(steps).chain([Event::RunInterrupted]);
    let follow = (seq + 1..).zip(events).map(|(seq, event)| Entry::new(seq, epoch, now, event));
    let mut entries: Vec<Entry> = begun.entries.into_iter().chain(follow).collect();
    if let Some(last) = entries.last_mut() {
        last.in_flight = Some(0);
    }
    Ok(Decision { entries, effects: vec![Effect::Close, Effect::Answer(Answer::Created)] })
}

/// Another instance goes on with it: whatever it was doing does not count any more.
pub(super) fn hand_over(run: &Run, command: HandOver, now: Timestamp) -> Result<Decision, Refusal> {
    if run.task().is_none() {
        return Err(run.refuse("only tasks of plans are handed over"));
    }
    if run.is_handed_over() {
        return Ok(Decision::answer(Answer::HandedOver));
    }
    let HandOver { to, origin } = command;
    let mut entries = vec![run.entry(0, now, None, Event::Task(Box::new(TaskEvent::HandedOver { to, origin })))];
    let mut effects = disarm_all(run);
    if run.open().is_some() {
        entries.push(run.entry(1, now, Some(0), Event::RunCancelled));
        effects.extend([Effect::Close, Effect::AnnounceEnd]);
    }
    effects.push(Effect::Answer(Answer::HandedOver));
    Ok(Decision { entries, effects })
}
