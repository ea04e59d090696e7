//! When the store fails: everybody is told, what was not committed is forgotten, and the store is asked until it writes again.
//!
//! Sessions live on. What they said and was not recorded they say again, so that work that was done is not done twice because the disk was
//! full for a moment; if it turns out to be recorded after all, it is refused as stale and the run is replayed.
//!
//! Tested by `crates/sdk/tests/it/faults.rs`.
//! Tested by `crates/sdk/tests/it/full_disk.rs`.

use super::{Ask, Done, Health, Memory, Pending, Shard, Then};
use crate::health;
use crate::host::ToHost;
use crate::timers::Order;
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Entity, EntityId, Entry};
use steadfast_store::{Batch, Error, Fence, Head, Store};

/// The store is asked again after this, then after twice as long, up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A store that fails again within this was not well: a disk with next to no room takes the question and refuses the work. It is asked at the pace of the
/// last time.
const RELAPSE_WITHIN: Duration = Duration::from_secs(10);

impl Shard {
    /// A commit has failed, and with it everything that was submitted after it.
    pub(super) fn fall_ill(&mut self, upto: u64, error: Arc<Error>) {
        if matches!(self.state.health, Health::Well) {
            tracing::error!(shard = self.id, error = %error, code = error.code(), "a commit failed");
            self.state.health = Health::Healing(Arc::clone(&error));
            self.tell_or_not(); // what became of a call could not be written
            self.ports
                .health
                .send_replace(health::Health::Healing { since: self.clock.now(), error: Arc::clone(&error) });
        }
        while self.state.pending.front().is_some_and(|pending| pending.seq <= upto) {
            if let Some(Pending { id, then, .. }) = self.state.pending.pop_front() {
                self.forget(&id);
                match then {
                    Then::Follow(from, outcome) => {
                        self.doubt(&id, outcome.map_or_else(|_| Vec::new(), |follow| follow.entries));
                        from.unavailable(self, &id, &error);
                    }
                    Then::Nothing => self.doubt_row(&id),
                    Then::Ask(ask) => self.turn_away(&id, ask, &error),
                    Then::Settled { .. } => {}
                }
                self.tidy(&id);
            }
        }
    }

    /// Once the fate of everything that was submitted is known, nothing stands in the way of asking the store where it stands.
    pub(super) fn heal_once_settled(&mut self, upto: u64) {
        if let Health::Healing(error) = &self.state.health
            && upto >= self.state.submitted
        {
            let error = Arc::clone(error);
            self.begin_healing(error);
        }
    }

    /// What is cached of an entity is ahead of the store: it is read again when somebody asks.
    fn forget(&mut self, id: &EntityId) {
        let committed = self.committed.seq;
        let seat = self.seat(id);
        if seat.changed > committed && matches!(seat.memory, Memory::Ready(_)) {
            seat.memory = Memory::Absent;
            seat.changed = 0;
            self.state.in_doubt.insert(id.clone());
        }
    }

    /// It is not known whether that is on record.
    fn doubt(&mut self, id: &EntityId, entries: Vec<Entry>) {
        if !entries.is_empty() {
            self.state.in_doubt.insert(id.clone());
            self.state.doubted.entry(id.clone()).or_default().extend(entries);
            self.seat(id).row_in_doubt = true;
        }
    }

    /// It is not known what the row of a run says of why its code cannot go on.
    fn doubt_row(&mut self, id: &EntityId) {
        let seat = self.seat(id);
        seat.row_in_doubt = true;
        if matches!(seat.memory, Memory::Ready(_)) {
            (seat.memory, seat.changed) = (Memory::Absent, 0);
            self.state.in_doubt.insert(id.clone());
        }
    }

    /// An entity was read again. What had been in doubt of it and is there is followed by what does not depend on who asked for it; the rest follows from the state. Before the entity
    /// is hosted, so that a stage waits for what it has to wait for.
    pub(super) fn note_doubted(&mut self, id: &EntityId, entity: Option<&Entity>) {
        let (Some(mut entries), Some(entity)) = (self.state.doubted.remove(id), entity) else { return };
        entries.retain(|entry| entry.seq <= entity.seq());
        if entries.is_empty() {
            return;
        }
        entries.iter().for_each(|entry| self.metrics.count(entry));
        if let Some(notes) = &self.notes {
            notes.require(id, &entries);
            notes.note(entity, &entries);
        }
        self.ports.followers.wrote(id);
        self.ports.followers.committed();
        self.seat(id).blocked = None; // that may have been in another life; if it was not, it is found out again
    }

    fn begin_healing(&mut self, error: Arc<Error>) {
        if !error.is_retryable() {
            return self.give_up(error);
        }
        if std::mem::replace(&mut self.state.heals, true) {
            return; // it is being asked already
        }
        let (shard, term) = (self.id, self.committed.term);
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let mut pause = match self.state.pause {
            Some((last, well_at)) if clock.now() < well_at.saturating_add(RELAPSE_WITHIN) => (last * 2).min(PAUSE_MAX),
            _ => FIRST_PAUSE,
        };
        let heal = async move {
            loop {
                clock.sleep(pause).await;
                match probe(&*store, shard, term).await {
                    Err(error) if error.is_retryable() => pause = (pause * 2).min(PAUSE_MAX),
                    settled => return Done::Healed { head: settled.map_err(Arc::new), pause },
                }
            }
        };
        self.state.tasks.push(heal.boxed());
    }

    pub(super) fn healed(&mut self, head: Result<Head, Arc<Error>>, pause: Duration) {
        self.state.heals = false;
        match head {
            Ok(head) if head.seq <= self.committed.seq => {
                tracing::error!(
                    shard = self.id,
                    seq = head.seq,
                    known = self.committed.seq,
                    "the store has lost commits: the shard is opened anew"
                );
                self.give_up(Arc::new(Error::Fenced { shard: self.id, term: head.term }));
            }
            Ok(head) => {
                tracing::info!(shard = self.id, seq = head.seq, "the store writes again");
                self.committed = head;
                self.state.submitted = head.seq;
                self.state.health = Health::Well;
                self.state.pause = Some((pause, self.clock.now()));
                self.ports.health.send_replace(health::Health::Well);
                for id in self.state.to_interrupt.clone() {
                    self.interrupt(id); // it may be asked twice, if it was being read all the while
                }
                for id in std::mem::take(&mut self.state.in_doubt) {
                    self.ask(id, Ask::Resume); // it may be there after all, and nobody hosts it
                }
                self.read_outbox();
                self.go_on_once_settled();
                self.tell_or_not();
                let _keeper_is_gone = self.ports.timers.send(Order::Reread); // nor has anybody armed its timers
            }
            Err(error) => self.give_up(error),
        }
    }

    /// Somebody else has the shard: nothing may be done here any more.
    pub(super) fn give_up(&mut self, error: Arc<Error>) {
        tracing::error!(shard = self.id, error = %error, code = error.code(), "the shard is over for this instance");
        let ids: Vec<_> = self.state.seats.keys().cloned().collect();
        for id in ids {
            self.seat(&id).tell(ToHost::Close);
            self.end_session(&id);
            if let Some(seat) = self.state.seats.remove(&id) {
                for waiter in seat.waiters {
                    waiter.fail(crate::Error::from_store(Arc::clone(&error)));
                }
            }
        }
        if let Some(drained) = &mut self.state.draining {
            drained.clear(); // it does not come to rest: whoever waits for that hears that it was cut off
        }
        self.state.doubted.clear();
        self.state.to_interrupt.clear(); // whoever has the shard next finds them as they are
        self.ports.health.send_replace(health::Health::Over { error: Arc::clone(&error) });
        self.state.health = Health::Over(error);
        self.tell_or_not();
    }
}

/// Looks where the shard stands and writes the smallest batch there is.
async fn probe(store: &dyn Store, shard: u32, term: u64) -> Result<Head, Error> {
    let head = store.head(shard).await?;
    let upto = head.seq + 1;
    let fence = Fence { shard, term, after: head.seq, upto };
    store.commit(Batch { fences: vec![fence], ..Batch::default() }).await?;
    Ok(Head { term, seq: upto })
}
