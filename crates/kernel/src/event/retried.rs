//! What another life of a run keeps and what it does not.

use crate::{Event, Origin, Payload, Seq, StepId};

/// What another life of a run keeps and what it does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Retried {
    /// Who wants it, and why.
    pub origin: Origin,
    /// The steps and children from which it begins again; none if it goes on where it stopped, or from the start.
    pub from: Vec<StepId>,
    /// What the code was told and asked for from this sequence on is discarded; what came before is carried over …
    pub cut: Seq,
    /// … and so is what came from these places on, but for what stands beside these steps, in other branches of the same `join` or `all` …
    pub cuts: Vec<(Seq, StepId)>,
    /// … but for what is on record of these steps and children, which begin again. They are in order.
    pub reset: Vec<StepId>,
    /// Steps that are not executed, and what they are to have returned.
    pub supplied: Vec<(StepId, Payload)>,
    /// What the code is given instead of its input.
    pub input: Option<Payload>,
}

impl Retried {
    /// Whether that step or child begins again.
    pub(crate) fn resets(&self, step: &StepId) -> bool {
        self.reset.binary_search(step).is_ok()
    }

    /// Whether what the code was told at that place about that step, sleep, wait or child may depend on something that is discarded.
    pub(crate) fn cuts_off(&self, subject: &StepId, seq: Seq) -> bool {
        seq >= self.cut || self.cuts.iter().any(|(at, step)| seq >= *at && !step.is_beside(subject))
    }

    /// Whether what the journal says at that place about that sleep or wait is discarded; a step may have the same name. Questions about the undoing
    /// of an earlier life always are.
    pub(crate) fn discards_wait(&self, wait: &StepId, seq: Seq) -> bool {
        self.cuts_off(wait, seq) || wait.is_about_undo() || wait.doubted().is_some_and(|step| self.resets(&step))
    }

    /// Whether what the journal says at that place is discarded. What is told from outside is not for the place where it stands.
    pub(crate) fn discards(&self, event: &Event, seq: Seq) -> bool {
        match event {
            Event::TimerSet { sleep: wait, .. }
            | Event::TimerFired { sleep: wait }
            | Event::SignalAwaited { wait, .. }
            | Event::SignalTaken { wait, .. } => self.discards_wait(wait, seq),
            Event::ProgressNoted { note, .. } => self.cuts_off(note, seq),
            Event::ChildEnded { child, .. } => self.resets(child),
            event => event
                .subject()
                .is_some_and(|step| self.cuts_off(step, seq) || self.resets(step) || step.undone().is_some()),
        }
    }
}
