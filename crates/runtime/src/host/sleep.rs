//! A durable sleep inside a run.

use super::board::{Ask, Board, Gate, Key};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;
use steadfast_kernel::{StepId, Timestamp};

/// A durable sleep: ends when the time is over, whatever happens to the process meanwhile.
pub struct SleepCall {
    board: Arc<Board>,
    key: Key,
    until: Until,
    asked: bool,
}

/// When a sleep is over.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// That long after the time at which the code first asks for it, which is the same in replay.
    After(Duration),
    /// Then.
    At(Timestamp),
}

impl SleepCall {
    pub(super) fn new(board: Arc<Board>, id: StepId, until: Until) -> Self {
        SleepCall { board, key: Key::Sleep(id), until, asked: false }
    }
}

impl Future for SleepCall {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        if !self.asked {
            self.asked = true;
            let due_at = match self.until {
                Until::After(duration) => self.board.now().saturating_add(duration),
                Until::At(at) => at,
            };
            self.board.ask(&self.key, Ask::Sleep { due_at, recorded: false });
        }
        match self.board.poll(&self.key, cx.waker()) {
            Gate::Done(_) => Poll::Ready(()),
            Gate::Wait | Gate::Run(_) | Gate::Doubt { .. } => Poll::Pending,
        }
    }
}

impl Drop for SleepCall {
    fn drop(&mut self) {
        if self.asked {
            self.board.abandon(&self.key);
        }
    }
}
