//! Tells that this side has taken: tried as their route says, and dead letters if nothing helps, or if their node ends first.
//!
//! ```text
//!   turn --> attempt --success--> over
//!     ^         |
//!     |         +--may pass: waits, without its turn unless it has a key--+
//!     |         +--for good, or the node gives up--> dead letter          |
//!     +-------------------------------------------------------------------+
//! ```

use super::lane::{Job, Lane};
use super::{Held, Incoming, attempt, letter};
use crate::letters::LetterKind;
use crate::time;
use bytes::Bytes;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use steadfast_kernel::{Code, Failure, Timestamp, Verdict as After};
use tokio::time::Instant;

/// A tell that this side has taken, and that is tried again then.
pub(super) struct Later {
    job: Box<Job>,
    at: Instant,
}

impl Later {
    /// Waits for that time, and for its turn again. If its node ends before that, it is a dead letter.
    pub(super) async fn come_back(self, lane: Arc<Lane>) {
        let Later { job, at } = self;
        let node = Arc::clone(job.held.node());
        match node.gives_up.run_until_cancelled(time::until(at)).await {
            Some(()) => drop(lane.run(None, job)),
            None => give_up(&lane, job),
        }
    }
}

/// Runs a tell that this side has taken, as its route says. It keeps its turn between its attempts only if others must not come before it, because many that fail would
/// hold up all the rest otherwise.
pub(super) async fn run(lane: &Lane, job: Box<Job>, keeps_its_turn: bool) -> Option<Later> {
    let mut later = run_once(lane, job).await?;
    if !keeps_its_turn {
        return Some(later);
    }
    loop {
        let node = Arc::clone(later.job.held.node());
        let _it_is_not_begun_then = node.gives_up.run_until_cancelled(time::until(later.at)).await;
        later = run_once(lane, later.job).await?;
    }
}

/// One attempt. Nothing if it was the last one.
async fn run_once(lane: &Lane, mut job: Box<Job>) -> Option<Later> {
    job.attempts += 1;
    let node = Arc::clone(job.held.node());
    let incoming = Incoming { ends_at: time::after(lane.route.timeout), attempt: job.attempts, ..job.incoming.clone() };
    let running = async { attempt(&lane.route, incoming, None).await }; // which begins only if the node has not given up
    let ended = AssertUnwindSafe(node.gives_up.run_until_cancelled(running)).catch_unwind().await;
    match ended.unwrap_or_else(|_| Some(Err(Failure::new(Code::Internal, "the handler panicked when it was stopped")))) {
        Some(Ok(_)) => job.held.settle(Ok(Bytes::new())),
        Some(Err(failure)) => match lane.route.policy.after(job.attempts, &failure, Timestamp::EPOCH, None, node.draw()) {
            After::RetryIn { delay, .. } => return Some(Later { job, at: time::after(delay) }),
            After::GiveUp(why) => {
                let failure = why.failure(failure, job.attempts);
                keep(lane, job, failure);
            }
        },
        None => give_up(lane, job),
    }
    None
}

/// A tell that was taken is not run any more here: it is a dead letter.
pub(super) fn give_up(lane: &Lane, job: Box<Job>) {
    let failure = job.held.node().is_ending();
    keep(lane, job, failure);
}

/// Over for those who told it, when it is dropped; a redrive finds that it is not done.
struct GivenUp(Option<Held>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Held::give_up);
    }
}

/// A tell that was taken has failed for good: it is a dead letter, and holds its place until that is kept.
fn keep(lane: &Lane, job: Box<Job>, failure: Failure) {
    let Job { incoming, held, .. } = *job;
    let (node, letter) = (Arc::clone(held.node()), letter(LetterKind::Tell, lane, &held, incoming.payload, failure));
    node.post_owed(letter, GivenUp(Some(held)));
}
