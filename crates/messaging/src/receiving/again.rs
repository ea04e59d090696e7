//! A dead letter that came here is given to its handler again: in its turn, by the rules of its route, and known to the inbox meanwhile and afterwards.

use super::held::{Held, fits};
use super::lane::{Job, Lane};
use super::{Caller, Incoming, Route, Routed, attempt};
use crate::inbox::{self, Finish, Kind, Ticket};
use crate::letters::{Letter, LetterKind};
use crate::node::{Inner, Peer};
use crate::time;
use crate::wire::Remote;
use std::hash::BuildHasher;
use std::sync::Arc;
use steadfast_kernel::{Code, Failure};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Of a request that runs once more.
pub(super) struct Again {
    /// What it has left behind before, if that is known: it stays if nothing new comes of it.
    pub(super) before: Option<Finish>,
    /// Hears how it ends; who does not wait any more has it stopped.
    ended: Option<oneshot::Sender<Result<(), Failure>>>,
}

impl Inner {
    /// Gives a message to its handler again.
    pub(crate) async fn deliver_again(self: &Arc<Self>, letter: &Letter) -> Result<(), Failure> {
        if self.is_closing() {
            return Err(self.is_ending());
        }
        let lane = self.lane_of(letter)?;
        let incoming = incoming(letter, &lane.route);
        lane.route.allows(&incoming.caller)?;
        let key = lane.route.key_of(&incoming)?;
        let kind = if letter.kind == LetterKind::Call { Kind::Call } else { Kind::Tell };
        if !lane.has_room(&key, 0, Instant::now()) {
            return Err(lane.is_full());
        }
        let place = self.place(None, letter.payload.len(), Instant::now())?;
        let (ticket, before) = match lane.route.once {
            false => (None, None),
            true => match self.take_up_again(&incoming.caller, kind, letter)? {
                Some((ticket, before)) => (Some(ticket), before),
                None => return Ok(()),
            },
        };
        let (ended, outcome) = oneshot::channel();
        let held = Held {
            kind,
            name: (Arc::clone(&incoming.caller.scope), Arc::clone(&incoming.id)),
            ticket,
            waiter: None,
            called_off: None,
            number: 0,
            again: Some(Box::new(Again { before, ended: Some(ended) })),
            taken: None,
            place,
        };
        lane.run(key, Box::new(Job { incoming, held, attempts: 0 }));
        outcome.await.unwrap_or_else(|_| Err(self.is_ending()))
    }

    fn lane_of(&self, letter: &Letter) -> Result<Arc<Lane>, Failure> {
        match self.routes.read().get(&*letter.route) {
            Some(Routed::Requests(lane)) => Ok(Arc::clone(lane)),
            _ => Err(Failure::new(Code::NotFound, format!("{} has no route {:?} for calls and tells", self.name, letter.route))),
        }
    }

    /// The right to run it, and what it has left behind before; nothing if it is done.
    fn take_up_again(&self, caller: &Caller, kind: Kind, letter: &Letter) -> Result<Option<(Ticket, Option<Finish>)>, Failure> {
        let digest = self.hasher.hash_one((&letter.route, &letter.payload));
        match self.known.lock().inbox.take_up_again(&caller.scope, &letter.id, kind, digest, Instant::now()) {
            inbox::Again::Run(ticket, before) => Ok(Some((ticket, before))),
            inbox::Again::Done => Ok(None),
            inbox::Again::Running => Err(Failure::transient("it has come again, and runs")),
            inbox::Again::Different => Err(Failure::transient("another request of that id came lately: try it when that one is forgotten")),
            inbox::Again::Full(after) => Err(Failure::new(Code::ResourceExhausted, "the inbox is full").retry_after(after)),
        }
    }
}

/// The message as its handler sees it. The letter knows its caller by its scope, so by the name on whose behalf it was sent, and by what was proved.
fn incoming(letter: &Letter, route: &Route) -> Incoming {
    let (name, proof) = letter.peer.split_once('@').unwrap_or((&letter.peer, ""));
    let Remote { fingerprint, vouched, principal, .. } = if proof.is_empty() { Remote::default() } else { Remote::of_proof(proof) };
    let peer = Peer::named(name);
    let caller = Caller { name: name.into(), scope: letter.peer.as_str().into(), fingerprint, vouched, principal, peer };
    Incoming {
        route: letter.route.as_str().into(),
        id: letter.id.as_str().into(),
        caller: Arc::new(caller),
        wants_answer: letter.kind == LetterKind::Call,
        attempt: letter.failure.attempts.saturating_add(1),
        redelivered: true,
        ends_at: time::after(route.timeout),
        trace: String::new(),
        payload: letter.payload.clone(),
    }
}

/// Runs it once: whoever redrives it keeps it if it fails.
pub(super) async fn run(route: &Route, job: Box<Job>) {
    let Job { incoming, mut held, .. } = *job;
    let Some(mut ended) = held.again.as_mut().and_then(|again| again.ended.take()) else { return };
    let longest = held.node().limits.payload_bytes_max;
    let incoming = Incoming { ends_at: time::after(route.timeout), ..incoming }; // not less for having waited for its turn
    let running = async { attempt(route, incoming, None).await }; // which begins only if somebody waits for it
    let outcome = tokio::select! {
        biased;
        () = ended.closed() => Err(Failure::transient("whoever redrives it does not wait any more").code(Code::Cancelled)),
        outcome = running => outcome.and_then(|answer| fits(answer, longest)),
    };
    held.settle(outcome.clone());
    let _nobody_may_wait = ended.send(outcome.map(drop));
}
