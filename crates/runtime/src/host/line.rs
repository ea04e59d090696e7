//! The way to talk to a session, and to see what it does, wherever it is.

use super::ToHost;
use super::board::Board;
use super::remote::There;
use futures_util::future::BoxFuture;
use std::sync::{Arc, OnceLock, Weak};
use steadfast_kernel::{Attempt, StepId, WorkflowName};
use tokio::sync::mpsc;

/// The board of a session, once its code has begun.
pub(super) type SharedBoard = Arc<OnceLock<Weak<Board>>>;

/// The way to talk to a session. The session is over when this is dropped.
pub(crate) enum Line {
    /// In this process.
    Here(Here),
    /// At a worker.
    There(There),
}

/// The way to a session in this process.
pub(crate) struct Here {
    sender: mpsc::UnboundedSender<ToHost>,
    board: SharedBoard,
}

impl Here {
    pub(super) fn new(sender: mpsc::UnboundedSender<ToHost>, board: SharedBoard) -> Self {
        Here { sender, board }
    }

    fn attempts(&self) -> Vec<(StepId, Attempt)> {
        self.board.get().and_then(Weak::upgrade).map(|board| board.attempts()).unwrap_or_default()
    }
}

/// The attempts that are being made, of steps and undos.
pub(crate) enum InFlight {
    /// These.
    Now(Vec<(StepId, Attempt)>),
    /// Whoever hosts the run is asked.
    Later(BoxFuture<'static, Vec<(StepId, Attempt)>>),
}

impl Line {
    /// Tells the session something.
    pub(crate) fn tell(&self, message: ToHost) {
        match self {
            Line::Here(here) => drop(here.sender.send(message)), // it may have ended
            Line::There(there) => there.tell(message),
        }
    }

    /// Has the session end. True if it is at a worker: then it may go on until that has heard of it, and says so, or is lost.
    pub(crate) fn close(&self) -> bool {
        match self {
            Line::Here(here) => drop(here.sender.send(ToHost::Close)),
            Line::There(there) => there.ask_to_close(),
        }
        matches!(self, Line::There(_))
    }

    /// The attempts that are being made. A worker is asked only when somebody looks: that costs nothing the rest of the time, and is never out of date.
    pub(crate) fn attempts(&self) -> InFlight {
        match self {
            Line::Here(here) => InFlight::Now(here.attempts()),
            Line::There(there) => InFlight::Later(there.attempts()),
        }
    }

    /// The attempts that are being made in this process.
    pub(super) fn attempts_here(&self) -> Vec<(StepId, Attempt)> {
        match self {
            Line::Here(here) => here.attempts(),
            Line::There(_) => Vec::new(),
        }
    }

    /// Whether a run of that workflow could be opened at a worker if this session were over.
    pub(crate) fn takes_room_of(&self, workflow: &WorkflowName) -> bool {
        matches!(self, Line::There(there) if there.takes_room_of(workflow))
    }
}
