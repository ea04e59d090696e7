//! Compensation: the undos of a run, newest outcome first, as a future of its own.
//!
//! Tested by `crates/sdk/tests/it/undo.rs`.

use super::Context;
use super::answer::{self, OnUndo};
use super::board::Registered;
use futures_util::FutureExt;
use steadfast_kernel::{Failure, Payload, StepId};

/// Undoes one after another. An undo that has failed for good waits for a person, who has it tried again or skips it; that of a task ends it.
pub(super) async fn compensate(context: Context, undos: Vec<Registered>) -> Result<Payload, Failure> {
    for Registered { step, output, undo } in undos.into_iter().rev() {
        let mut asked = 0;
        loop {
            let (run, output) = (undo.undo.clone(), output.clone());
            let attempts = Box::new(move || run(output.clone()).map(|done| done.map(|()| Payload::json("null"))).boxed());
            match context.undo(step.clone(), attempts, undo.policy.clone()).await {
                Ok(_) => break,
                Err(failure) if context.task().is_some() => return Err(failure), // a person sees it in the status, and may want it once more
                Err(_) if skips(&context, &step, &mut asked).await => break,
                Err(_) => {}
            }
        }
    }
    Ok(Payload::json("null"))
}

/// Asks a person about an undo that has failed. True if it is to be left as it is. Counts the questions, which are on record each.
async fn skips(context: &Context, step: &StepId, asked: &mut u32) -> bool {
    loop {
        *asked += 1;
        let said = context.question(step.undo_failed(*asked), format!("undo:{step}")).await;
        match said.ok().and_then(|payload| answer::read(&payload)) {
            Some(OnUndo::Skip) => return true,
            Some(OnUndo::Retry) => return false,
            None => {} // not an answer: the question stands
        }
    }
}
