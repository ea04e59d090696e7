//! Who hears of attempts and of ends as they happen, for traces. Nothing of it is durable.
//!
//! A run is a trace, its root span is the run from start to end, and each attempt is a span below it. Their ids follow from the run's id, so that every process that
//! has a part in a run, also after a restart, speaks of the same trace, and a service that is called is told them before the span is over.

use std::fmt;
use steadfast_kernel::random::digest;
use steadfast_kernel::{Attempt, Epoch, Failure, RunId, Status, StepId, Timestamp, WorkflowName};

/// Hears of attempts and of ends. It is told in the middle of other work: it must be quick and never wait.
pub trait Observer: Send + Sync + 'static {
    /// An attempt of a step or undo has ended.
    fn attempted(&self, attempted: &Attempted<'_>);

    /// A run has ended.
    fn ended(&self, ended: &RunEnded<'_>);
}

/// An attempt that has ended.
#[derive(Debug)]
pub struct Attempted<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The step, or the undo of one.
    pub step: &'a StepId,
    /// The number of the attempt.
    pub attempt: Attempt,
    /// Its span.
    pub span: &'a Span,
    /// When it began.
    pub began_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Why it failed, if it did.
    pub failure: Option<&'a Failure>,
}

/// A run that has ended.
#[derive(Debug)]
pub struct RunEnded<'a> {
    /// The run.
    pub run: &'a RunId,
    /// Its workflow.
    pub workflow: &'a WorkflowName,
    /// Which of its lives.
    pub epoch: Epoch,
    /// When it began.
    pub began_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How.
    pub status: Status,
    /// Why it failed, if it did.
    pub failure: Option<&'a Failure>,
}

/// The ids of a span, in hexadecimal as they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// 32 digits: the run's.
    pub trace: String,
    /// 16 digits.
    pub id: String,
    /// The span above it; nothing for that of the run.
    pub parent: Option<String>,
}

impl Span {
    /// The span of a run.
    pub fn of_run(run: &RunId) -> Self {
        Span { trace: digest(&format!("trace/{run}")), id: span_id(&format!("run/{run}")), parent: None }
    }

    /// The span of an attempt. The key is that of the execution of the step.
    pub(super) fn of_attempt(run: &RunId, key: &str, epoch: Epoch, attempt: Attempt) -> Self {
        let Span { trace, id: parent, .. } = Span::of_run(run);
        Span { trace, id: span_id(&format!("attempt/{key}/{epoch}/{attempt}")), parent: Some(parent) }
    }
}

/// As in the header `traceparent` of W3C Trace Context.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", self.trace, self.id)
    }
}

fn span_id(text: &str) -> String {
    let mut digest = digest(text);
    digest.truncate(16);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_run_are_the_same_for_ever() {
        let run = RunId::new("order-17").unwrap();
        let span = Span::of_attempt(&run, "order-17/charge#1/1", 1, 2);
        assert_eq!(span.to_string(), "00-0bdd7befa32d5a6ca3179b3860a29e35-e52c811d9148c634-01");
        assert_eq!(span.parent, Some(Span::of_run(&run).id));
        assert_ne!(span, Span::of_attempt(&run, "order-17/charge#1/1", 1, 3));
    }
}
