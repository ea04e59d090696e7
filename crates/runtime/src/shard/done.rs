//! What the shard began beside its loop, and what follows when it is done.

use super::{Found, Shard, aside, keys, sweep};
use crate::callbacks::{Errand, Lane};
use crate::error::Error;
use crate::timers::{Fired, Order};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{EntityId, Envelope, Failure};
use steadfast_store::{CallbackRow, Head, RunRow};

/// What a background task has come to.
pub(super) enum Done {
    Loaded {
        id: EntityId,
        result: Result<Option<Found>, Error>,
    },
    Healed {
        head: Result<Head, Arc<steadfast_store::Error>>,
        pause: Duration,
    },
    Outbox(Result<Vec<Envelope>, Error>),
    UnderWay(Result<Vec<RunRow>, Error>),
    /// An entity of another shard has heard, durably, what one of this shard has told it.
    Heard {
        from: EntityId,
        to: EntityId,
        seq: u64,
    },
    /// What was said because a timer has fired was heard in another shard and answered here, or not.
    Asked {
        fired: Fired,
        heard: bool,
    },
    Aside(Box<aside::Aside>),
    Swept(sweep::Sweeping),
    Told(Box<keys::Told>),
    ToldAgain(Box<keys::Told>),
    Walked(Box<(Lane, Errand, Result<(), Failure>)>),
    Callbacks(Result<Vec<CallbackRow>, Error>),
    Stayed,
    RoomAgain,
    TakenOver,
}

impl Shard {
    pub(super) fn done(&mut self, done: Done) {
        match done {
            Done::Loaded { id, result } => self.loaded(&id, result),
            Done::Outbox(result) => self.outbox_read(result),
            Done::UnderWay(result) => self.under_way_read(result),
            Done::Heard { from, to, seq } => self.heard_afar(from, to, seq),
            Done::Asked { fired, heard: true } => self.order(Order::Settle(fired.timer)),
            Done::Asked { fired, heard: false } => self.fire_later(fired),
            Done::Healed { head, pause } => self.healed(head, pause),
            Done::Aside(aside) => self.looked_aside(*aside),
            Done::Swept(sweeping) => self.swept(sweeping),
            Done::Told(told) => self.told(*told),
            Done::ToldAgain(told) => self.told_again(*told),
            Done::Walked(walked) => self.walked(*walked),
            Done::Callbacks(result) => self.callbacks_read(result),
            Done::Stayed => self.have_stayed(),
            Done::RoomAgain => self.look_for_room(),
            Done::TakenOver => self.has_taken_over(),
        }
    }
}
