//! How a long attempt says that it lives, and how far it has come.
//!
//! Tested by `crates/sdk/tests/it/heartbeats.rs`.

use super::board::Board;
use super::step::bounded;
use std::sync::Arc;
use steadfast_kernel::{Attempt, Failure, Payload, StepId};

/// Belongs to one attempt of a step; may be used from any thread.
#[derive(Clone)]
pub struct Heartbeat {
    board: Arc<Board>,
    step: StepId,
    attempt: Attempt,
    payload_bytes_max: usize,
}

impl Heartbeat {
    pub(super) fn new(board: Arc<Board>, step: StepId, attempt: Attempt, payload_bytes_max: usize) -> Self {
        Heartbeat { board, step, attempt, payload_bytes_max }
    }

    /// Says that the attempt lives, and how far it has come. The next attempt can read what was said last.
    ///
    /// # Errors
    /// If it says more than allowed.
    ///
    /// # Durability
    /// The last word before a failure is recorded with it. Words before a crash are recorded at intervals, so the last ones may be lost.
    pub fn beat(&self, details: Payload) -> Result<(), Failure> {
        self.board
            .beat(&self.step, self.attempt, bounded("the heartbeat", details, self.payload_bytes_max)?);
        Ok(())
    }
}
