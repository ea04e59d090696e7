//! Who waits for the end of a run, and what of it they want to know.

use super::{Reply, RunView};
use crate::error::Error;
use std::collections::BTreeSet;
use steadfast_kernel::Run;
use steadfast_kernel::run::Ended;

pub(crate) enum Waiter {
    /// How it has ended.
    End(Reply<Ended>),
    /// All that can be seen of it then: it is in memory at that moment, and may have to be read again later.
    View(Reply<RunView>),
}

impl Waiter {
    /// Nobody waits any more.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Waiter::End(reply) => reply.is_closed(),
            Waiter::View(reply) => reply.is_closed(),
        }
    }

    /// The run has ended. The waiter itself if it has not.
    pub(super) fn tell(self, run: &Run) -> Result<(), Self> {
        let Some(ended) = run.ended() else { return Err(self) };
        match self {
            Waiter::End(reply) => drop(reply.send(Ok(ended.clone()))),
            Waiter::View(reply) => drop(reply.send(Ok(RunView::of(run, None, &BTreeSet::new())))),
        }
        Ok(())
    }

    pub(super) fn fail(self, error: Error) {
        match self {
            Waiter::End(reply) => drop(reply.send(Err(error))),
            Waiter::View(reply) => drop(reply.send(Err(error))),
        }
    }
}
