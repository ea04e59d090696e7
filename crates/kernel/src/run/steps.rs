//! What the code of a run did and does, step by step: for people who look at it. Nothing is decided on it.
//!
//! A journal has no entry for the beginning of a first attempt, which would cost a commit: it is taken to be the time at which the code was last told something in
//! the same branch, or one around or inside it.

use crate::{Attempt, Code, Entry, Event, Failure, Payload, Seq, StepId, TimerName, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// A step, sleep, wait or child, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepView {
    /// What the journal knows it by.
    pub id: StepId,
    /// What it is.
    pub kind: StepKind,
    /// Where it stands.
    pub status: StepStatus,
    /// How many attempts were begun.
    pub attempts: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended, if it has.
    pub ended_at: Option<Timestamp>,
    /// When the next attempt begins, or a sleep ends.
    pub next_attempt_at: Option<Timestamp>,
    /// What it returned.
    pub output: Option<Payload>,
    /// Why it failed, or why its last attempt or its undo did.
    pub failure: Option<Failure>,
    /// Its attempts, in order.
    pub tries: Vec<Try>,
}

/// What a line of the timeline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Something that the code does to the world.
    Step,
    /// It sleeps.
    Sleep,
    /// It waits for a signal, or for a person's yes or no.
    Signal,
    /// It started another run.
    Child,
}

impl StepKind {
    /// The public name.
    pub fn as_str(self) -> &'static str {
        match self {
            StepKind::Step => "step",
            StepKind::Sleep => "sleep",
            StepKind::Signal => "signal",
            StepKind::Child => "child",
        }
    }
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// An attempt is in flight, or what it waits for has not happened.
    Running,
    /// Failed, and tried again later.
    Backoff,
    /// It has its result.
    Completed,
    /// It has failed for good, or nobody waits for it any more.
    Failed,
    /// It was left out.
    Skipped,
    /// It is being undone.
    Undoing,
    /// It is undone.
    Undone,
    /// Nobody knows whether its last attempt happened.
    InDoubt,
}

impl StepStatus {
    /// The public name.
    pub fn as_str(self) -> &'static str {
        match self {
            StepStatus::Pending => "PENDING",
            StepStatus::Running => "RUNNING",
            StepStatus::Backoff => "BACKOFF",
            StepStatus::Completed => "COMPLETED",
            StepStatus::Failed => "FAILED",
            StepStatus::Skipped => "SKIPPED",
            StepStatus::Undoing => "UNDOING",
            StepStatus::Undone => "UNDONE",
            StepStatus::InDoubt => "IN_DOUBT",
        }
    }

    /// True while it has not come to its end.
    pub fn is_open(self) -> bool {
        matches!(self, StepStatus::Pending | StepStatus::Running | StepStatus::Backoff | StepStatus::InDoubt)
    }
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Try {
    /// Its number, from 1.
    pub attempt: Attempt,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended, if it has.
    pub ended_at: Option<Timestamp>,
    /// Why it failed, if it has.
    pub failure: Option<Failure>,
    /// The delay before the next one.
    pub backoff: Option<Duration>,
}

/// What a [script](super::script) comes to, in the order of their beginning. `in_flight` are the attempts that a host is making, of steps and undos: they are not
/// on record. `retried` is when the present life began, and the sequence of the event that says so.
pub fn steps(script: &[Entry], in_flight: &[(StepId, Attempt)], retried: Option<(Timestamp, Seq)>) -> Vec<StepView> {
    let mut timeline = Timeline::default();
    let mut retried = retried;
    for entry in script {
        if let Some((at, _)) = retried.take_if(|(_, seq)| *seq < entry.seq) {
            timeline.begin_again(at);
        }
        timeline.tell(entry);
    }
    if let Some((at, _)) = retried {
        timeline.begin_again(at);
    }
    in_flight.iter().for_each(|(step, attempt)| timeline.runs(step, *attempt));
    timeline.steps.sort_by_key(|step| step.started_at);
    timeline.steps
}

#[derive(Default)]
struct Timeline {
    steps: Vec<StepView>,
    /// Their places.
    places: BTreeMap<StepId, usize>,
    /// When the code was last told something, by branch.
    told: BTreeMap<String, Timestamp>,
    /// What signals said, by the sequence of their arrival.
    signals: BTreeMap<Seq, Payload>,
}

impl Timeline {
    /// Nothing of what follows began before that.
    fn begin_again(&mut self, at: Timestamp) {
        self.told.insert(String::new(), at);
    }

    fn tell(&mut self, entry: &Entry) {
        let at = entry.at;
        match &entry.event {
            Event::RunStarted { .. } => drop(self.told.insert(String::new(), at)),
            Event::StepStarted { step, attempt } => self.try_of(step, *attempt).started_at = at,
            Event::StepCompleted { step, attempt, output, .. } if !step.is_version() => self.done(step, *attempt, at, Ok(output.clone())),
            Event::StepFailed { step, attempt, failure } => self.done(step, *attempt, at, Err(failure.clone())),
            Event::StepSkipped { step } => {
                let view = self.step(step, StepKind::Step, Some(at));
                (view.status, view.ended_at, view.attempts) = (StepStatus::Skipped, Some(at), 0);
                view.tries.clear();
            }
            Event::RetryScheduled { step, attempt, delay, due_at, failure, .. } => {
                self.retried(step, *attempt, (at, *delay, *due_at), failure.clone());
            }
            Event::TimerSet { sleep, due_at } => self.step(sleep, StepKind::Sleep, Some(at)).next_attempt_at = Some(*due_at),
            Event::TimerFired { sleep } => self.over(sleep, at),
            Event::SignalAwaited { wait, until, .. } => self.awaits(wait, *until, at),
            Event::SignalReceived { payload, .. } => drop(self.signals.insert(entry.seq, payload.clone())),
            Event::SignalTaken { wait, signal } => self.taken(wait, *signal, at),
            Event::ChildStarted { child, options, .. } => {
                let view = self.step(child, StepKind::Child, Some(at));
                if options.parent.as_ref().is_some_and(|parent| parent.detached) {
                    (view.status, view.ended_at) = (StepStatus::Completed, Some(at)); // nobody waits for it
                }
            }
            Event::ChildEnded { child, outcome } => self.end(child, at, outcome.clone()),
            Event::ChildTaken { child } => self.moved(child, at),
            Event::UndoCompleted { step, .. } => {
                let view = self.step(step, StepKind::Step, None);
                (view.status, view.next_attempt_at, view.failure) = (StepStatus::Undone, None, None);
            }
            Event::UndoFailed { step, failure, .. } => {
                let view = self.step(step, StepKind::Step, None);
                (view.status, view.failure, view.next_attempt_at) = (StepStatus::Undoing, Some(failure.clone()), None);
            }
            Event::RunCompensating { .. } => self.close(at),
            Event::RunCompleted { .. } | Event::RunFailed { .. } | Event::RunCancelled => {
                self.close(at);
                self.leave_undone();
            }
            _ => {}
        }
        for name in &entry.abandoned {
            if let TimerName::Retry(id) | TimerName::Sleep(id) = name {
                self.abandon(id, at);
            }
        }
    }

    /// The view of something, which begins now if there is none.
    fn step(&mut self, id: &StepId, kind: StepKind, began: Option<Timestamp>) -> &mut StepView {
        let started_at = began.unwrap_or_else(|| self.last_told(id));
        let place = *self.places.entry(id.clone()).or_insert_with(|| {
            let tries = vec![Try { attempt: 1, started_at, ended_at: None, failure: None, backoff: None }];
            let tries = if kind == StepKind::Step { tries } else { Vec::new() };
            self.steps.push(StepView {
                id: id.clone(),
                kind,
                status: StepStatus::Running,
                attempts: u32::try_from(tries.len()).unwrap_or(1),
                started_at,
                ended_at: None,
                next_attempt_at: None,
                output: None,
                failure: None,
                tries,
            });
            self.steps.len() - 1
        });
        &mut self.steps[place]
    }

    /// When the code was last told something that this can have followed from.
    fn last_told(&self, id: &StepId) -> Timestamp {
        let branch = branch_of(id);
        let related = self.told.iter().filter(|(other, _)| is_around(other, branch) || is_around(branch, other));
        related.map(|(_, at)| *at).max().unwrap_or(Timestamp::EPOCH)
    }

    fn moved(&mut self, id: &StepId, at: Timestamp) {
        self.told.insert(branch_of(id).to_string(), at);
    }

    /// That attempt of a step.
    fn try_of(&mut self, step: &StepId, attempt: Attempt) -> &mut Try {
        let view = self.step(step, StepKind::Step, None);
        view.attempts = view.attempts.max(attempt);
        let place = view.tries.iter().position(|tried| tried.attempt == attempt).unwrap_or_else(|| {
            let after = |last: &Try| Some(last.ended_at?.saturating_add(last.backoff.unwrap_or_default()));
            let started_at = view.tries.last().and_then(after).unwrap_or(view.started_at);
            view.tries.push(Try { attempt, started_at, ended_at: None, failure: None, backoff: None });
            view.tries.len() - 1
        });
        &mut view.tries[place]
    }

    fn done(&mut self, step: &StepId, attempt: Attempt, at: Timestamp, outcome: Result<Payload, Failure>) {
        let tried = self.try_of(step, attempt);
        tried.ended_at = Some(at);
        tried.failure = outcome.as_ref().err().cloned();
        self.end(step, at, outcome);
        self.moved(step, at);
    }

    fn end(&mut self, id: &StepId, at: Timestamp, outcome: Result<Payload, Failure>) {
        let view = self.step(id, StepKind::Step, None);
        (view.ended_at, view.next_attempt_at) = (Some(at), None);
        match outcome {
            Ok(output) => (view.status, view.output, view.failure) = (StepStatus::Completed, Some(output), None),
            Err(failure) => (view.status, view.failure) = (StepStatus::Failed, Some(failure)),
        }
    }

    /// An attempt of a step or an undo has failed, and `attempt` follows it.
    fn retried(&mut self, id: &StepId, attempt: Attempt, (at, delay, due_at): (Timestamp, Duration, Timestamp), failure: Failure) {
        if let Some(step) = id.undone() {
            let view = self.step(&step, StepKind::Step, None);
            (view.status, view.failure, view.next_attempt_at) = (StepStatus::Undoing, Some(failure), Some(due_at));
            return;
        }
        let tried = self.try_of(id, attempt.saturating_sub(1));
        (tried.ended_at, tried.backoff, tried.failure) = (Some(at), Some(delay), Some(failure.clone()));
        let view = self.step(id, StepKind::Step, None);
        (view.status, view.failure, view.next_attempt_at) = (StepStatus::Backoff, Some(failure), Some(due_at));
    }

    fn awaits(&mut self, wait: &StepId, until: Option<Timestamp>, at: Timestamp) {
        if let Some(step) = wait.doubted() {
            self.step(&step, StepKind::Step, None).status = StepStatus::InDoubt;
        } else if !wait.is_about_undo() {
            self.step(wait, StepKind::Signal, Some(at)).next_attempt_at = until;
        }
    }

    fn taken(&mut self, wait: &StepId, signal: Seq, at: Timestamp) {
        if let Some(step) = wait.doubted() {
            self.step(&step, StepKind::Step, None).status = StepStatus::Running;
        } else if !wait.is_about_undo() {
            let said = self.signals.remove(&signal).unwrap_or_else(|| Payload::json("null"));
            self.end(wait, at, Ok(said));
            self.moved(wait, at);
        }
    }

    /// A sleep is over, or a wait for a signal was too long.
    fn over(&mut self, sleep: &StepId, at: Timestamp) {
        let waited = self.places.get(sleep).is_some_and(|place| self.steps[*place].kind == StepKind::Signal);
        let late = || Failure::permanent("it did not come in time").code(Code::DeadlineExceeded);
        self.end(sleep, at, if waited { Err(late()) } else { Ok(Payload::json("null")) });
        self.moved(sleep, at);
    }

    /// The code is over: nobody waits any more for what has not ended.
    fn close(&mut self, at: Timestamp) {
        let open: Vec<StepId> = self.steps.iter().filter(|step| step.status.is_open()).map(|step| step.id.clone()).collect();
        open.iter().for_each(|id| self.abandon(id, at));
    }

    /// What could not be undone stays done, and says why.
    fn leave_undone(&mut self) {
        for view in self.steps.iter_mut().filter(|view| view.status == StepStatus::Undoing) {
            (view.status, view.next_attempt_at) = (StepStatus::Completed, None);
        }
    }

    fn abandon(&mut self, id: &StepId, at: Timestamp) {
        let Some(view) = self
            .places
            .get(id)
            .and_then(|place| self.steps.get_mut(*place))
            .filter(|view| view.status.is_open())
        else {
            return;
        };
        let nobody = || Failure::new(Code::Cancelled, "nobody waits for it any more");
        (view.status, view.ended_at, view.next_attempt_at) = (StepStatus::Failed, Some(at), None);
        view.failure.get_or_insert_with(nobody);
        if let Some(last) = view.tries.last_mut().filter(|last| last.ended_at.is_none()) {
            (last.ended_at, last.failure) = (Some(at), Some(nobody()));
        }
    }

    /// A host makes that attempt now.
    fn runs(&mut self, id: &StepId, attempt: Attempt) {
        if let Some(step) = id.undone() {
            let view = self.step(&step, StepKind::Step, None);
            (view.status, view.next_attempt_at) = (StepStatus::Undoing, None);
            return;
        }
        let due = self.step(id, StepKind::Step, None).next_attempt_at.take();
        let tried = self.try_of(id, attempt);
        tried.started_at = due.unwrap_or(tried.started_at);
        self.step(id, StepKind::Step, None).status = StepStatus::Running;
    }
}

fn branch_of(id: &StepId) -> &str {
    id.as_str().rsplit_once('/').map_or("", |(branch, _)| branch)
}

/// Whether a branch is that one, or inside it.
fn is_around(outer: &str, inner: &str) -> bool {
    outer.is_empty() || inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}
