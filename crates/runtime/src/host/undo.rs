//! Compensation: the undos of a run, newest outcome first, as a future of its own.

use super::Context;
use super::board::Registered;
use futures_util::FutureExt;
use steadfast_kernel::{Failure, Payload};

/// Undoes one after another. An undo that has failed for good waits for a person, who has it tried again or skips it.
pub(super) async fn compensate(context: Context, undos: Vec<Registered>) -> Result<Payload, Failure> {
    for Registered { step, output, undo } in undos.into_iter().rev() {
        for round in 1.. {
            let (run, output) = (undo.undo.clone(), output.clone());
            let attempts = Box::new(move || run(output.clone()).map(|done| done.map(|()| Payload::json("null"))).boxed());
            if context.undo(step.clone(), attempts, undo.policy.clone()).await.is_ok() || skips(&context, &step, round).await {
                break;
            }
        }
    }
    Ok(Payload::json("null"))
}

/// Asks a person about an undo that has failed. True if it is to be left as it is.
async fn skips(context: &Context, step: &steadfast_kernel::StepId, round: u32) -> bool {
    let said = context.question(step.undo_failed(round), format!("undo:{step}")).await;
    said.is_ok_and(|payload| payload.bytes.as_ref() == b"\"skip\"")
}
