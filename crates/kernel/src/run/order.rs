//! What may come next. Everything that the fold and the decisions check about order is here.

use super::{Await, Open, Phase, Run, Stage, Status, Step, Task, task};
use crate::{Attempt, Event, Recovery, Seq, StepId};

impl Run {
    /// Whether that event may come next; the reason if not.
    pub(super) fn may_follow(&self, event: &Event) -> Result<(), String> {
        if let Event::RunRetried(_) = event {
            return self.may_be_retried(); // from where is decided when it is asked for
        }
        if self.is_handed_over() {
            return match event {
                Event::RunCancelled if self.open().is_some() => Ok(()),
                _ => Err("another instance goes on with the task".into()),
            };
        }
        if let Event::Task(event) = event
            && event.stage().is_none()
        {
            return task::may_follow(self, event);
        }
        if let Some(Task { adopting: true, .. }) = self.task() {
            match (event, self.open()) {
                (Event::StepCompleted { step, attempt, .. }, Some(open)) => return open.attempt_is(step, *attempt),
                (Event::RunInterrupted, Some(_)) => return Ok(()),
                _ => {}
            }
        }
        let is_asked_for = self.task().is_some_and(|task| !task.rolls_back);
        match event {
            Event::RunCancelRequested { .. } if task::may_be_called_off(self) => return Ok(()),
            Event::RunCancelled if task::may_be_called_off(self) && is_asked_for => return Ok(()),
            _ => {}
        }
        let Phase::Open(open) = &self.phase else { return Err("the run has ended".into()) };
        if is_of_the_code(event) {
            self.may_go_on()?;
        }
        if event.is_end() {
            open.is_not_interrupted()?;
        }
        match (&open.stage, event) {
            (_, Event::RunStarted { .. }) => Err("the run has started already".into()),
            (_, Event::SlotAcquired { key }) if self.is_ready() && self.wanted() == Some(key) => Ok(()),
            (_, Event::SlotAcquired { key }) => Err(format!("the run does not wait for a slot of {key}")),
            (_, Event::RunPaused { .. }) if open.stands_still() => Err("the run stands still already".into()),
            (_, Event::RunPaused { .. }) => Ok(()),
            (_, Event::RunInterrupted) if self.options.recovery == Recovery::Automatic => Err("the run goes on by itself".into()),
            (_, Event::RunInterrupted) if self.is_let_begin_by_nobody() => Ok(()),
            (_, Event::RunInterrupted) => self.may_go_on(),
            (_, Event::RunResumed { .. }) if open.paused.is_some() && open.interrupted.is_none() => Ok(()),
            (_, Event::RunResumed { .. }) => Err("the run is not paused".into()),
            (
                Stage::Running,
                Event::StepStarted { step, attempt } | Event::StepCompleted { step, attempt, .. } | Event::StepFailed { step, attempt, .. },
            ) => open.attempt_is(step, *attempt),
            (_, Event::RetryScheduled { step, attempt, .. }) => open.may_be_tried(step, attempt.saturating_sub(1)),
            (_, Event::StepHeartbeat { step, attempt, .. }) => open.may_be_tried(step, *attempt),
            (Stage::Running, Event::TimerSet { sleep, .. }) => match open.sleeps.get(sleep) {
                None => Ok(()),
                Some(_) => Err(format!("{sleep} is set already")),
            },
            (_, Event::TimerFired { sleep }) => open.may_fire(sleep),
            (_, Event::SignalAwaited { wait, .. }) => match open.awaits.get(wait) {
                None => Ok(()),
                Some(_) => Err(format!("{wait} is on record already")),
            },
            (_, Event::SignalTaken { wait, signal }) => match open.awaits.get(wait) {
                Some(awaited) if awaited.is_open() => open.may_take(&awaited.name, *signal),
                Some(_) => Err(format!("{wait} is settled already")),
                None => Err(format!("{wait} was never asked for")),
            },
            (Stage::Running, Event::ChildStarted { child, .. }) => match open.children.get(child) {
                None => Ok(()),
                Some(_) => Err(format!("{child} is on record already")),
            },
            (_, Event::ChildEnded { child, .. }) => match open.children.get(child) {
                Some(on_record) if on_record.detached => Err(format!("nobody waits for {child}")),
                Some(on_record) if on_record.ended => Err(format!("{child} has ended already")),
                Some(_) => Ok(()),
                None => Err(format!("{child} was never started")),
            },
            (Stage::Running, Event::ChildTaken { child }) => match open.children.get(child) {
                Some(on_record) if on_record.ended && on_record.taken.is_none() => Ok(()),
                _ => Err(format!("there is no outcome of {child} to be taken")),
            },
            (Stage::Compensating { .. }, Event::UndoCompleted { step, attempt } | Event::UndoFailed { step, attempt, .. }) => {
                open.may_be_tried(&step.undo(), *attempt)
            }
            (_, Event::RunCancelRequested { terminate: false, .. })
                if open.cancel_requested && !open.stands_still() && self.task.is_none() =>
            {
                Err("it was asked for already".into())
            }
            (_, Event::RunCancelled) if !open.cancel_requested => Err("nobody asked for it".into()),
            (_, Event::RunFailed { .. }) if self.is_held_back() => Err("the task has not begun".into()),
            (Stage::Running, Event::RunCompleted { .. } | Event::RunFailed { .. }) if self.task().is_some_and(|task| task.rolls_back) => {
                Err("what the task did is to be undone first".into())
            }
            (Stage::Running, Event::RunCompensating { .. }) if self.task().is_some_and(|task| !task.rolls_back) => {
                Err("a task is undone only if a person wants it".into())
            }
            (Stage::Running, Event::RunCompensating { .. } | Event::RunCompleted { .. } | Event::RunContinued { .. }) => Ok(()),
            (Stage::Running, Event::ProgressNoted { .. }) => Ok(()),
            (Stage::Running, Event::Task(event)) => task::may_follow(self, event),
            (Stage::Running, Event::StepSkipped { step }) => open.attempt_is(step, 1),
            (_, Event::SignalReceived { .. } | Event::RunCancelRequested { .. } | Event::RunCancelled | Event::RunFailed { .. }) => Ok(()),
            (
                _,
                Event::SlotRequested { .. }
                | Event::SlotGranted { .. }
                | Event::SlotReleased { .. }
                | Event::LetterAdded(_)
                | Event::LetterRedriven { .. }
                | Event::LetterDropped { .. }
                | Event::KeyPut(_)
                | Event::KeyRenewed { .. }
                | Event::KeyDeleted { .. }
                | Event::KeyExpired { .. }
                | Event::CallbackFailed { .. }
                | Event::CallbackSettled { .. }
                | Event::Plan(_)
                | Event::Lock(_),
            ) => Err("no such event can happen to a run".into()),
            (Stage::Compensating { .. }, _) => Err("the run is being undone".into()),
            (Stage::Running, _) => Err("the run is not being undone".into()),
        }
    }

    /// Whether a host may say anything: not while a person has to decide, and not before the run has its slots.
    pub(super) fn may_go_on(&self) -> Result<(), String> {
        match self.open() {
            Some(open) => open.is_not_interrupted()?,
            None => return Err("the run has ended".into()),
        }
        match self.is_ready() {
            true if self.is_held_back() => Err("the run waits for its turn, or for its lock".into()),
            true => Err("the run waits for a slot".into()),
            false => Ok(()),
        }
    }

    fn may_be_retried(&self) -> Result<(), String> {
        match self.status() {
            Status::Ready if self.waits_again() => Ok(()),
            Status::Ready | Status::Paused | Status::Compensating => Err(format!("the run is {}", self.status().as_str())),
            _ => Ok(()),
        }
    }
}

/// What only comes of the code being executed, or of what it did being undone.
pub(super) fn is_of_the_code(event: &Event) -> bool {
    matches!(
        event,
        Event::StepStarted { .. }
            | Event::StepCompleted { .. }
            | Event::StepFailed { .. }
            | Event::StepHeartbeat { .. }
            | Event::RetryScheduled { .. }
            | Event::TimerSet { .. }
            | Event::TimerFired { .. }
            | Event::SignalAwaited { .. }
            | Event::SignalTaken { .. }
            | Event::ProgressNoted { .. }
            | Event::StepSkipped { .. }
            | Event::ChildStarted { .. }
            | Event::ChildTaken { .. }
            | Event::RunCompensating { .. }
            | Event::UndoCompleted { .. }
            | Event::UndoFailed { .. }
            | Event::RunContinued { .. }
            | Event::RunCompleted { .. }
    ) || matches!(event, Event::Task(event) if event.stage().is_some())
}

impl Open {
    fn is_not_interrupted(&self) -> Result<(), String> {
        if self.interrupted.is_some() { Err("the run is interrupted".into()) } else { Ok(()) }
    }

    /// Whether that is the attempt to come.
    fn attempt_is(&self, step: &StepId, attempt: Attempt) -> Result<(), String> {
        match self.attempt_to_come(step) {
            Some(due) if due == attempt => Ok(()),
            Some(due) => Err(format!("{step} is at attempt {due}, not {attempt}")),
            None => Err(format!("{step} has its outcome already")),
        }
    }

    /// Whether that is the attempt to come of something that is being done: steps while the code runs, undos after it.
    pub(super) fn may_be_tried(&self, step: &StepId, attempt: Attempt) -> Result<(), String> {
        match (&self.stage, step.undone()) {
            (Stage::Running, None) => self.attempt_is(step, attempt),
            (Stage::Running, Some(_)) => Err("the run is not being undone".into()),
            (Stage::Compensating { .. }, None) => Err("the run is being undone".into()),
            (Stage::Compensating { .. }, Some(done)) if self.undoable.contains(&done) => self.attempt_is(step, attempt),
            (Stage::Compensating { .. }, Some(done)) => Err(format!("there is nothing of {done} to undo")),
        }
    }

    /// Whether that is the attempt to come, after a failure that is on record.
    pub(super) fn is_scheduled(&self, step: &StepId, attempt: Attempt) -> bool {
        matches!(self.steps.get(step), Some(Step::Backoff { .. })) && self.may_be_tried(step, attempt).is_ok()
    }

    /// Whether a sleep, or the end of a wait, is pending.
    fn may_fire(&self, sleep: &StepId) -> Result<(), String> {
        match (self.sleeps.get(sleep), self.awaits.get(sleep)) {
            (Some(set), _) if set.fired.is_none() => Ok(()),
            (_, Some(Await { until: Some(_), settled: None, .. })) => Ok(()),
            (Some(_), _) => Err(format!("{sleep} has fired already")),
            (None, Some(Await { settled: Some(_), .. })) => Err(format!("{sleep} is settled already")),
            (None, Some(_) | None) => Err(format!("{sleep} was never set")),
        }
    }

    /// Whether that signal is there to be taken by somebody who waits for that name.
    pub(super) fn may_take(&self, name: &str, signal: Seq) -> Result<(), String> {
        match self.signals.get(&signal) {
            Some(arrived) if arrived == name => Ok(()),
            Some(arrived) => Err(format!("signal {signal} is {arrived}, not {name}")),
            None => Err(format!("there is no signal {signal} to be taken")),
        }
    }
}
