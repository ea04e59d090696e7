//! Looking beside the shard: at what another instance has, and while the store cannot write: who changes nothing is answered from what the store has, beside the shard's own memory.
//!
//! What the shard has cached is of no use then: it may be ahead of the store, and whether the store has it will show only when it writes again.
//!
//! Tested by `crates/sdk/tests/it/full_disk.rs`.

use super::decide::not_found;
use super::read::Reader;
use super::view::Seen;
use super::{Ask, Done, Memory, Request, Seat, Shard};
use crate::cluster::Beside;
use crate::error::Error;
use crate::host::InFlight;
use futures_util::FutureExt;
use std::sync::Arc;
use steadfast_kernel::{Entity, EntityId};
use steadfast_store::Store;

/// What was looked for, and what the store has.
pub(super) struct Aside {
    id: EntityId,
    ask: Ask,
    found: Result<Option<Entity>, Error>,
    trouble: Arc<steadfast_store::Error>,
}

impl Shard {
    /// Reads for somebody who only looks.
    pub(super) fn look_aside(&mut self, id: EntityId, ask: Ask, trouble: Arc<steadfast_store::Error>) {
        let (store, snapshot_every) = (Arc::clone(&self.store), self.config.snapshot_every);
        let read = async move {
            let reader = Reader { store: &*store, id: &id, snapshot_every, is_saved: false, to_replay: false };
            let found = reader.read().await.map(|found| found.map(|found| found.entity));
            Done::Aside(Box::new(Aside { id, ask, found, trouble }))
        };
        self.state.tasks.push(read.boxed());
    }

    /// Tells what was found. Why the code of a run cannot go on is not in its journal; the seat knows it.
    pub(super) fn looked_aside(&mut self, aside: Aside) {
        let Aside { id, ask, found, trouble } = aside;
        let found = match found {
            Ok(found) => found,
            Err(error) => return ask.fail(&error),
        };
        if found.is_none() && self.state.in_doubt.contains(&id) {
            return ask.fail(&Error::from_store(trouble)); // whether it was started will show
        }
        let seat = self.state.seats.get(&id);
        let blocked = seat.and_then(|seat| seat.blocked.clone());
        let begun = seat.map(|seat| seat.begun.clone()).unwrap_or_default();
        let seen = Seat { memory: Memory::Ready(found), blocked, begun, ..Seat::default() };
        match ask {
            Ask::Look(look) => match look.at(&seen) {
                Ok(seen) => seen.tell(),
                Err(look) => look.fail(not_found(&id)),
            },
            Ask::Await(waiter) => match seen.run() {
                Some(run) => drop(waiter.tell(run).map_err(|waiter| waiter.fail(Error::from_store(trouble)))), // its end cannot be written now
                None => waiter.fail(Error::from_store(trouble)),
            },
            Ask::Command(..) | Ask::Resume | Ask::Tell(..) | Ask::CallBack(..) => {}
        }
    }
}

/// Looks at an entity of a shard that is elsewhere: as the store has it, with what its holder knows beside that.
pub(crate) async fn look_afar(store: &dyn Store, snapshot_every: usize, request: Request, beside: Beside) {
    let Ok((id, look)) = request.look() else { return };
    let reader = Reader { store, id: &id, snapshot_every, is_saved: false, to_replay: false };
    let found = match reader.read().await {
        Ok(found) => found.map(|found| found.entity),
        Err(error) => return look.fail(error),
    };
    let Beside { blocked, begun, in_flight } = beside;
    let seat = Seat { memory: Memory::Ready(found), blocked, begun, ..Seat::default() };
    match look.at(&seat) {
        Ok(Seen::Run(reply, view, _)) => Seen::Run(reply, view, InFlight::Now(in_flight)).tell(),
        Ok(seen) => seen.tell(),
        Err(look) => look.fail(not_found(&id)),
    }
}
