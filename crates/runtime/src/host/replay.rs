//! Replay: the recorded completions, delivered in the order of the journal, by the same means as live ones.
//!
//! There is no flag for it: what the code asks for and what the journal holds are compared, and after the last entry the run is live.

use super::board::Key;
use super::session::Workflow;
use steadfast_kernel::{Entry, Event, Payload, Wait};

/// Brings the code to where the journal ends.
///
/// # Errors
/// A [`Wait::Mismatch`] that names both sides, if they part.
pub(super) async fn replay(workflow: &mut Workflow, journal: Vec<Entry>) -> Result<(), Wait> {
    for entry in journal {
        if workflow.outcome.is_some() {
            return Err(mismatch(&entry, "the code has ended".into()));
        }
        let Entry { at, event, .. } = &entry;
        let fits = match event {
            Event::RunStarted { .. } => {
                workflow.board.set_now(*at);
                workflow.wake();
                true
            }
            Event::StepCompleted { step, output, .. } => workflow.board.deliver(&Key::Step(step.clone()), Ok(output.clone()), *at),
            Event::StepFailed { step, failure, .. } => workflow.board.deliver(&Key::Step(step.clone()), Err(failure.clone()), *at),
            Event::TimerFired { sleep } => workflow.board.deliver(&Key::Sleep(sleep.clone()), Ok(Payload::json("null")), *at),
            Event::TimerSet { sleep, .. } => workflow.board.set_recorded(sleep),
            Event::RetryScheduled { step, .. } => workflow.board.retry_recorded(step),
            Event::RunCompleted { .. } | Event::RunFailed { .. } => true, // a run that has ended is not hosted
        };
        if !fits {
            return Err(mismatch(&entry, format!("the code waits for {}", workflow.board.waits_for())));
        }
        workflow.settle().await;
    }
    Ok(())
}

fn mismatch(entry: &Entry, found: String) -> Wait {
    let subject = entry.event.subject().map(|subject| format!(" {subject}")).unwrap_or_default();
    Wait::Mismatch { at: entry.seq, expected: format!("{}{subject}", entry.event.kind()), found }
}
