//! Journals to look at and to check. Whatever is not as it should be is shown with the whole journal.

use super::meddler::is_meant;
use crate::{Code, Entry, Event, Run, Status};
use std::collections::BTreeSet;
use std::fmt;

/// The journal of a run. Every check panics with the whole journal if it does not hold, and can be followed by another one.
#[derive(Clone, Debug)]
pub struct Journal {
    run: String,
    entries: Vec<Entry>,
}

impl Journal {
    pub(super) fn new(run: &str, entries: Vec<Entry>) -> Self {
        Journal { run: run.into(), entries }
    }

    /// The journal of any run.
    ///
    /// # Panics
    /// If it cannot be read.
    pub async fn of(run: &Run) -> Self {
        let entries = run
            .journal()
            .await
            .unwrap_or_else(|error| panic!("the journal of run {} cannot be read: {error:?}", run.id()));
        Journal::new(run.id().as_str(), entries)
    }

    /// The entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// A [line](Journal::line) per entry.
    pub fn lines(&self) -> Vec<String> {
        self.entries.iter().map(Journal::line).collect()
    }

    /// An entry as a line: its type, what it is about, the attempt, and the code of a failure.
    pub fn line(entry: &Entry) -> String {
        line(&entry.event)
    }

    /// Checks the types of all entries, in order.
    #[track_caller]
    pub fn kinds<const N: usize>(&self, kinds: [&str; N]) -> &Self {
        let found: Vec<_> = self.entries.iter().map(|entry| entry.event.kind()).collect();
        self.check(found == kinds, || format!("its entries are not {kinds:?}"))
    }

    /// Checks that the run has ended like this.
    #[track_caller]
    pub fn ended(&self, status: Status) -> &Self {
        let end = self.entries.last().and_then(|entry| match entry.event {
            Event::RunCompleted { .. } => Some(Status::Completed),
            Event::RunFailed { .. } => Some(Status::Failed),
            Event::RunCancelled => Some(Status::Cancelled),
            _ => None,
        });
        self.check(end == Some(status), || match end {
            Some(end) => format!("it has ended as {}, not as {}", end.as_str(), status.as_str()),
            None => format!("it has not ended, and should have as {}", status.as_str()),
        })
    }

    /// Checks that nothing of a step of that name is on record.
    #[track_caller]
    pub fn no_step(&self, name: &str) -> &Self {
        self.steps(name, 0)
    }

    /// Checks how many steps of that name are on record.
    #[track_caller]
    pub fn steps(&self, name: &str, count: usize) -> &Self {
        let found = self.ids(name);
        self.check(found.len() == count, || format!("it should have {count} steps {name}, and has {found:?}"))
    }

    /// The step of that name or id, to check. The undo of a step is `charge/undo`.
    ///
    /// # Panics
    /// If nothing of it is on record, or there are several of that name.
    #[track_caller]
    pub fn step(&self, name: &str) -> StepRecord<'_> {
        let mut ids = self.ids(name).into_iter();
        match (ids.next(), ids.next()) {
            (Some(step), None) => StepRecord { journal: self, step },
            (None, _) => self.wrong(&format!("there is no step {name}")),
            (Some(_), Some(_)) => self.wrong(&format!("there are several steps {name}; say which: {:?}", self.ids(name))),
        }
    }

    /// The ids of the steps that are meant.
    fn ids(&self, name: &str) -> BTreeSet<String> {
        self.entries
            .iter()
            .filter_map(|entry| step(&entry.event))
            .filter(|step| is_meant(step, name))
            .collect()
    }

    #[track_caller]
    fn check(&self, holds: bool, wrong: impl FnOnce() -> String) -> &Self {
        if !holds {
            self.wrong(&wrong());
        }
        self
    }

    #[track_caller]
    fn wrong(&self, what: &str) -> ! {
        panic!("the journal of run {} is not as it should be: {what}.\n{self}", self.run)
    }
}

impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the journal of run {}:", self.run)?;
        self.entries
            .iter()
            .try_for_each(|entry| write!(f, "\n  {:>3} {} {}", entry.seq, entry.at, line(&entry.event)))
    }
}

/// What is on record of a step. Every check panics with the whole journal if it does not hold, and can be followed by another one.
#[derive(Clone, Debug)]
pub struct StepRecord<'a> {
    journal: &'a Journal,
    step: String,
}

impl StepRecord<'_> {
    /// Checks how many attempts are on record.
    #[track_caller]
    pub fn attempts(&self, count: u32) -> &Self {
        let found = match self.last() {
            Some(
                Event::StepStarted { attempt, .. }
                | Event::StepCompleted { attempt, .. }
                | Event::StepFailed { attempt, .. }
                | Event::UndoCompleted { attempt, .. }
                | Event::UndoFailed { attempt, .. },
            ) => *attempt,
            Some(Event::RetryScheduled { attempt, .. }) => attempt - 1,
            _ => 0,
        };
        self.check(found == count, || format!("step {} should have {count} attempts on record, and has {found}", self.step))
    }

    /// Checks that it has succeeded.
    #[track_caller]
    pub fn completed(&self) -> &Self {
        let completed = matches!(self.last(), Some(Event::StepCompleted { .. } | Event::UndoCompleted { .. }));
        self.check(completed, || format!("step {} has not completed", self.step))
    }

    /// Checks that it has failed for good, with that code.
    #[track_caller]
    pub fn failed(&self, code: Code) -> &Self {
        let found = match self.last() {
            Some(Event::StepFailed { failure, .. } | Event::UndoFailed { failure, .. }) => Some(failure.code),
            _ => None,
        };
        self.check(found == Some(code), || format!("step {} should have failed with {code}, and has {found:?}", self.step))
    }

    /// Checks that everything of it is on record after the outcome of that other step.
    #[track_caller]
    pub fn after(&self, other: &str) -> &Self {
        let other = self.journal.step(other).step;
        let first = self.journal.entries.iter().position(|entry| step(&entry.event).as_ref() == Some(&self.step));
        let outcome = self.journal.entries.iter().position(|entry| {
            let done = !matches!(entry.event, Event::StepStarted { .. } | Event::RetryScheduled { .. });
            done && step(&entry.event).as_ref() == Some(&other)
        });
        let follows = outcome.is_some_and(|outcome| first.is_some_and(|first| first > outcome));
        self.check(follows, || format!("step {} should come after {other}", self.step))
    }

    /// The journal, for other checks.
    pub fn journal(&self) -> &Journal {
        self.journal
    }

    fn last(&self) -> Option<&Event> {
        let mut events = self.journal.entries.iter().map(|entry| &entry.event);
        events.rfind(|event| step(event).as_ref() == Some(&self.step))
    }

    #[track_caller]
    fn check(&self, holds: bool, wrong: impl FnOnce() -> String) -> &Self {
        self.journal.check(holds, wrong);
        self
    }
}

/// The step that an event is about, or the undo of one, if it tells of an attempt.
fn step(event: &Event) -> Option<String> {
    match event {
        Event::UndoCompleted { step, .. } | Event::UndoFailed { step, .. } => Some(step.undo().to_string()),
        Event::StepStarted { step, .. }
        | Event::StepCompleted { step, .. }
        | Event::StepFailed { step, .. }
        | Event::RetryScheduled { step, .. } => Some(step.to_string()),
        _ => None,
    }
    .filter(|step| !step.contains("version:"))
}

fn line(event: &Event) -> String {
    let kind = event.kind();
    match event {
        Event::StepStarted { step, attempt }
        | Event::StepCompleted { step, attempt, .. }
        | Event::UndoCompleted { step, attempt }
        | Event::StepHeartbeat { step, attempt, .. } => format!("{kind} {step} a{attempt}"),
        Event::StepFailed { step, attempt, failure } | Event::UndoFailed { step, attempt, failure } => {
            format!("{kind} {step} a{attempt} {}", failure.code)
        }
        Event::RetryScheduled { step, attempt, of, failure, .. } => format!("{kind} {step} a{attempt}/{of} {}", failure.code),
        Event::RunFailed { failure } | Event::RunCompensating { failure: Some(failure) } => format!("{kind} {}", failure.code),
        Event::SignalReceived { name, .. } => format!("{kind} {name}"),
        Event::SignalTaken { wait, signal } => format!("{kind} {wait} {signal}"),
        Event::ChildEnded { child, outcome: Err(failure) } => format!("{kind} {child} {}", failure.code),
        event => match event.subject() {
            Some(subject) => format!("{kind} {subject}"),
            None => kind.to_string(),
        },
    }
}
