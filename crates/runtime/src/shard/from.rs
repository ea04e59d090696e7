//! Who is to hear about a command, and what they hear if it cannot be carried out.

use super::crowd::Place;
use super::keys::Told;
use super::view::Seen;
use super::{Reply, Shard};
use crate::error::Error;
use crate::host::{SessionId, ToHost, What};
use crate::timers::Fired;
use std::sync::Arc;
use steadfast_kernel::{Answer, EntityId, StepId};
use tokio::sync::oneshot;

/// Who is to hear about a command.
pub(super) enum From {
    Caller(Reply<Answer>, #[expect(dead_code, reason = "it counts for as long as it is held")] Place),
    Turn(SessionId),
    Failure(SessionId, StepId),
    Keeper(Fired),
    /// The relay: a message of that sender to that receiver.
    Relay {
        from: EntityId,
        to: EntityId,
        seq: u64,
    },
    /// An entity of another shard, which says it again unless it is told that it was heard.
    Afar(oneshot::Sender<()>),
    Viewer(Seen),
    /// The courier: what became of an attempt to tell of an end.
    Courier(Box<Told>),
    /// The restart, which has runs interrupted that do not go on by themselves.
    Restart,
    Nobody,
}

impl From {
    /// It cannot be done, now or later. Sessions hear of it by being closed.
    pub(super) fn fail(self, error: Error) {
        match self {
            From::Caller(reply, _) => drop(reply.send(Err(error))),
            From::Viewer(seen) => seen.fail(error),
            From::Relay { .. } if matches!(error, Error::Stopped) => {} // whoever has the shard next delivers it
            From::Relay { from, to, seq } => tracing::error!(%from, %to, seq, %error, "a message cannot be delivered; it is kept"),
            From::Turn(_) | From::Failure(..) | From::Keeper(_) | From::Courier(_) | From::Afar(_) | From::Restart | From::Nobody => {}
        }
    }

    /// The store could not write: nothing was recorded.
    pub(super) fn unavailable(self, shard: &mut Shard, id: &EntityId, error: &Arc<steadfast_store::Error>) {
        match self {
            From::Caller(..) | From::Viewer(..) => self.fail(Error::from_store(Arc::clone(error))),
            From::Turn(session) => shard.seat(id).tell_only(session, ToHost::SayAgain(What::Turn)),
            From::Failure(session, step) => shard.seat(id).tell_only(session, ToHost::SayAgain(What::Failure(step))),
            From::Keeper(fired) => shard.fire_later(fired),
            From::Courier(told) => shard.report_later(*told),
            From::Relay { .. } | From::Afar(_) | From::Restart => {} // again once the store writes again
            From::Nobody => {}
        }
    }
}
