//! A wait for a signal inside a run.
//!
//! Tested by `crates/sdk/tests/it/signals.rs`.

use super::board::{Ask, Board, Gate, Key};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;
use steadfast_kernel::{Failure, Payload, StepId};

/// A wait for a signal: ends with the first of that name that nobody has taken, or when its time is over.
pub struct SignalCall {
    board: Arc<Board>,
    key: Key,
    name: String,
    within: Option<Duration>,
    approval: Option<Vec<String>>,
    asked: bool,
}

impl SignalCall {
    pub(super) fn new(board: Arc<Board>, id: StepId, name: String) -> Self {
        SignalCall { board, key: Key::Signal(id), name, within: None, approval: None, asked: false }
    }

    pub(super) fn of_approval(mut self, roles: Vec<String>) -> Self {
        self.approval = Some(roles);
        self
    }

    /// How long to wait at the most. Has no effect once it is polled.
    pub fn set_within(&mut self, within: Duration) {
        self.within = Some(within);
    }
}

impl Future for SignalCall {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        if !self.asked {
            self.asked = true;
            let until = self.within.map(|within| self.board.now().saturating_add(within));
            let (name, approval) = (self.name.clone(), self.approval.take());
            self.board.ask(&self.key, Ask::Signal { name, until, approval, recorded: false });
        }
        match self.board.poll(&self.key, cx.waker()) {
            Gate::Done(outcome) => Poll::Ready(outcome),
            Gate::Wait | Gate::Run(_) | Gate::Doubt { .. } => Poll::Pending,
        }
    }
}

impl Drop for SignalCall {
    fn drop(&mut self) {
        if self.asked {
            self.board.abandon(&self.key);
        }
    }
}
