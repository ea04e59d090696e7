//! What entities tell each other: delivered as commands, settled once it is durable that they were heard.
//!
//! Tested by `crates/sdk/tests/it/outbox.rs`.
//! Tested by `crates/crash-test/tests/it/facts/a_message_is_heard_once.rs`.

use super::{Ask, Done, From, Health, Said, Shard, Then};
use crate::clock::Clock;
use crate::engine::Ways;
use crate::error::{Error, STORE_RETRY_AFTER};
use futures_util::FutureExt;
use std::sync::{Arc, Weak};
use std::time::Duration;
use steadfast_kernel::{Command, EntityId, Envelope, LimitKey, Limiting, Message, StartChild};
use steadfast_store::{Batch, OutboxChange, ShardId, Store};
use tokio::sync::oneshot;

/// How many messages are read at once.
const PAGE: usize = 1000;

/// What an entity of another shard did not hear is said again after this, then after twice as long, up to the maximum.
const SAID_AGAIN_AFTER: Duration = Duration::from_millis(100);
const SAID_AGAIN_MAX: Duration = Duration::from_secs(2);

impl Shard {
    /// Takes up what is not settled from before.
    pub(crate) fn relay_all(&mut self, envelopes: Vec<Envelope>) {
        for envelope in envelopes {
            if let Some(first) = self.state.outbox.add(envelope) {
                self.deliver(first);
            }
        }
    }

    /// Asks the store what is not settled: after a commit whose outcome is unknown there may be more than was heard of here.
    pub(super) fn read_outbox(&mut self) {
        self.state.outbox.hold();
        let (store, clock, shard) = (Arc::clone(&self.store), Arc::clone(&self.clock), self.id);
        let read = async move {
            loop {
                match unsettled(&*store, shard).await {
                    Err(error) if error.is_retryable() => clock.sleep(STORE_RETRY_AFTER).await,
                    result => return Done::Outbox(result),
                }
            }
        };
        self.state.tasks.push(read.boxed());
    }

    pub(super) fn outbox_read(&mut self, result: Result<Vec<Envelope>, Error>) {
        match result {
            Ok(envelopes) => {
                for first in self.state.outbox.go_on(envelopes) {
                    self.deliver(first);
                }
            }
            Err(error) => tracing::error!(shard = self.id, %error, "the outbox cannot be read; nothing of it is delivered"),
        }
    }

    /// Tells an entity what another one says. A child gets what is registered for its workflow.
    fn deliver(&mut self, mut envelope: Envelope) {
        if !self.hears(&envelope.message) || !matches!(self.state.health, Health::Well) {
            return; // delivered after the next start, or once the store writes again
        }
        if let Message::StartChild(child) = &mut envelope.message {
            self.complete(child);
        }
        let (from, to, seq) = (envelope.from.clone(), envelope.to.clone(), envelope.seq);
        self.carry(envelope, From::Relay { from, to, seq });
    }

    /// Has an entity hear something, here or in its own shard.
    pub(super) fn carry(&mut self, envelope: Envelope, from: From) {
        let Some(ways) = self.ways.upgrade() else { return }; // the engine has stopped
        if ways.shard_of(&envelope.to) == self.id {
            return self.ask(envelope.to.clone(), Ask::Command(Box::new(Command::Hear(Box::new(envelope))), from));
        }
        match from {
            // One voice for each: whoever said it a second time might be late, and it would be heard after what follows it.
            From::Relay { from, seq, .. } if !self.state.saying.insert((from.clone(), seq)) => {}
            From::Relay { from, to, seq } => {
                let (ways, clock) = (Weak::clone(&self.ways), Arc::clone(&self.clock));
                let of = (self.id, self.committed.term);
                self.state.tasks.push(say(ways, clock, envelope, of, Done::Heard { from, to, seq }).boxed());
            }
            From::Keeper(fired) => {
                let (heard, hears) = oneshot::channel();
                ways.say(Said { envelope, heard }, (self.id, self.committed.term));
                self.state.tasks.push(hears.map(|heard| Done::Asked { fired, heard: heard.is_ok() }).boxed());
            }
            From::Afar(heard) => ways.say(Said { envelope, heard }, (self.id, self.committed.term)),
            _ => tracing::error!(to = %envelope.to, "only messages are carried to other shards"),
        }
    }

    /// An entity of another shard says something.
    pub(super) fn hear(&mut self, Said { envelope, heard }: Said) {
        if self.hears(&envelope.message) {
            self.ask(envelope.to.clone(), Ask::Command(Box::new(Command::Hear(Box::new(envelope))), From::Afar(heard)));
        }
    }

    /// What an entity of this shard has told one of another was heard, durably.
    pub(super) fn heard_afar(&mut self, from: EntityId, to: EntityId, seq: u64) {
        self.state.saying.remove(&(from.clone(), seq));
        if matches!(self.state.health, Health::Well) {
            self.heard(from, to, seq); // else it is said again once the store writes again, and answered at once
        }
    }

    fn complete(&self, child: &mut StartChild) {
        if let Some(registered) = self.host.registry.get(&child.workflow) {
            let terms = registered.code.terms(&child.input).unwrap_or_default(); // what is wrong with the input its own code will say
            let key = |key: &str| LimitKey::of_key(key).ok();
            let of_terms = terms.limits.iter().filter_map(|(of, slots)| Some(Limiting { key: key(of)?, slots: *slots }));
            let of_workflow = registered.slots.map(|slots| Limiting { key: LimitKey::of_workflow(&child.workflow), slots });
            child.options.limits.extend(of_terms.chain(of_workflow));
            child.options.recovery = terms.recovery.unwrap_or(registered.recovery);
            child.options.definition = terms.definition;
            child.deadline = child.deadline.into_iter().chain(terms.deadline).min();
        } else if let Some(offer) = self.host.known(&child.workflow) {
            let of_workflow = offer.slots.map(|slots| Limiting { key: LimitKey::of_workflow(&child.workflow), slots });
            child.options.limits.extend(of_workflow);
            child.options.recovery = offer.recovery;
        }
        child.options.limits.sort_by(|a, b| a.key.cmp(&b.key)); // in the same order as everybody else, or two could wait for each other
        child.options.limits.dedup_by(|a, b| a.key == b.key);
    }

    /// It was heard, durably.
    pub(super) fn heard(&mut self, from: EntityId, to: EntityId, seq: u64) {
        let batch = Batch { outbox: vec![OutboxChange::Settle { from: from.clone(), seq }], ..Batch::default() };
        self.write(&from, batch, Then::Settled { to, seq });
    }

    /// It is settled, durably: the next of its pair.
    pub(super) fn settled(&mut self, from: &EntityId, to: &EntityId, seq: u64) {
        if let Some(next) = self.state.outbox.settled(from, to, seq) {
            self.deliver(next);
        }
    }
}

/// Says something to an entity of another shard until it was heard.
async fn say(ways: Weak<Ways>, clock: Arc<dyn Clock>, envelope: Envelope, of: (ShardId, u64), done: Done) -> Done {
    let mut pause = SAID_AGAIN_AFTER;
    loop {
        let (heard, hears) = oneshot::channel();
        let Some(way) = ways.upgrade() else { std::future::pending().await };
        way.say(Said { envelope: envelope.clone(), heard }, of);
        drop(way);
        if hears.await.is_ok() {
            return done;
        }
        clock.sleep(pause).await;
        pause = (pause * 2).min(SAID_AGAIN_MAX); // its shard is on its way to somebody, or its store is ill
    }
}

/// Everything that is not settled.
pub(crate) async fn unsettled(store: &dyn Store, shard: u32) -> Result<Vec<Envelope>, Error> {
    let mut envelopes: Vec<Envelope> = Vec::new();
    loop {
        let after = envelopes.last().map(|last| (last.from.clone(), last.seq));
        let page = store.outbox(shard, after.as_ref(), PAGE).await.map_err(Error::from_store)?;
        let last = page.len() < PAGE;
        envelopes.extend(page);
        if last {
            return Ok(envelopes);
        }
    }
}
