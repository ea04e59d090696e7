//! The one who speaks with the commons: sends what has changed, claims and renews locks, says that this instance lives, and finds out when that is not so any more.
//!
//! Tested by `crates/sdk/tests/it/instances/costs.rs`.
//! Tested by `crates/sdk/tests/it/instances/outages/lost.rs`.

mod away;
mod follow;

use super::alone::Others;
use super::gate::Gate;
use super::locks::{self, Locks};
use super::mirror::{self, Mirror};
use super::walk::{self, Stopped};
use super::{Image, Note, Sharing, SharingHealth};
use crate::clock::Clock;
use crate::engine::WeakEngine;
use crate::metrics::OfCommons;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{PlanId, RunId, TaskStatus, TenantId, Timestamp};
use steadfast_store::{CommonsError, LockHolder, Write, Wrote};
use tokio::sync::{mpsc, oneshot, watch};

/// How long the commons may be away before anything follows from it: a connection that is made anew is no outage.
pub(crate) const BLIP: Duration = Duration::from_secs(1);

/// How soon the commons are tried again: first, and at the latest.
pub(super) const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How long it takes others at the most to find out that the commons are back: the longest pause between two tries, and between two connections.
const COME_BACK: Duration = Duration::from_secs(7);

/// What is said of two processes with one id.
const TWIN: &str = "another process says that it is this instance: stop one of them, no two may have copies of the same data";

/// How many pieces are looked at at once when other instances are looked for.
const PIECES: usize = 20;

pub(crate) struct Worker {
    sharing: Sharing,
    clock: Arc<dyn Clock>,
    engine: WeakEngine,
    notes: mpsc::UnboundedReceiver<Note>,
    own: mpsc::WeakUnboundedSender<Note>,
    gate: Arc<Gate>,
    health: watch::Sender<SharingHealth>,
    metrics: OfCommons,
    mirror: Mirror,
    locks: Locks,
    others: Others,
    /// What others read of this life of the instance.
    says: String,
    /// When to say it again, and when it was last said for sure.
    beat_at: Timestamp,
    beaten: Option<Timestamp>,
    /// Where the look for other instances goes on.
    cursor: u64,
    away: Option<Away>,
    /// No lock is claimed before that: others may have to say first what they have.
    settle_until: Option<Timestamp>,
    /// Others may have taken what this instance has, and not all of it was compared yet.
    doubts: bool,
    /// When another process was last found that says that it is this instance.
    twin: Option<Timestamp>,
    /// Tasks that are handed over, which is being put on record, and the fence of who has them: no lock is claimed for them.
    handed: BTreeMap<RunId, u64>,
    walk: Walk,
    alerted: BTreeSet<PlanId>,
    /// Tasks that were taken up, and the holdings with which that was done: a task that ends before it has a lock of its own leaves none behind.
    adopted: BTreeMap<RunId, (TenantId, LockHolder)>,
    /// Keys that hold something else, and when that was last found.
    foreign: BTreeMap<String, Timestamp>,
    waiting: Vec<oneshot::Sender<()>>,
    changes: u64,
    leaving: bool,
}

/// The commons are away.
struct Away {
    since: Timestamp,
    why: String,
    pause: Duration,
    at: Timestamp,
}

/// Whether what an earlier life has left was looked at.
#[derive(PartialEq)]
enum Walk {
    ToDo,
    UnderWay,
    Done,
    /// It was, and is once more, because something was forgotten.
    Again,
}

impl Walk {
    fn is_done(&self) -> bool {
        matches!(self, Walk::Done | Walk::Again)
    }
}

/// What a write was about.
enum About {
    Beat,
    Mirror(mirror::About),
    Lock(locks::About),
}

/// The channels of a worker, and what others see of it.
pub(crate) struct Ports {
    pub(crate) notes: mpsc::UnboundedReceiver<Note>,
    pub(crate) own: mpsc::WeakUnboundedSender<Note>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) health: watch::Sender<SharingHealth>,
}

impl Worker {
    pub(crate) fn new(sharing: Sharing, clock: Arc<dyn Clock>, engine: WeakEngine, says: String, ports: Ports) -> Self {
        let Ports { notes, own, gate, health } = ports;
        let now = clock.now();
        Worker {
            others: Others::new(sharing.fallback, sharing.lease),
            sharing,
            clock,
            engine,
            notes,
            own,
            gate,
            health,
            metrics: OfCommons::new(),
            mirror: Mirror::default(),
            locks: Locks::default(),
            says,
            beat_at: now,
            beaten: None,
            cursor: 0,
            away: None,
            settle_until: None,
            doubts: false,
            twin: None,
            handed: BTreeMap::new(),
            walk: Walk::ToDo,
            alerted: BTreeSet::new(),
            adopted: BTreeMap::new(),
            foreign: BTreeMap::new(),
            waiting: Vec::new(),
            changes: 0,
            leaving: false,
        }
    }

    /// Works until the shard has ended.
    pub(crate) async fn run(mut self) {
        loop {
            let due = self.due().saturating_since(self.clock.now());
            tokio::select! {
                biased;
                note = self.notes.recv() => match note {
                    Some(note) => self.take_all(note),
                    None => break,
                },
                () = self.clock.sleep(due.max(Duration::from_millis(1))) => {}
            }
            let now = self.clock.now();
            if self.away.as_ref().is_none_or(|away| away.at <= now) || self.is_set_back(now) {
                self.exchange().await;
            }
            self.show();
        }
        if self.leaving {
            let said = Write::Leave { instance: self.sharing.instance.clone(), says: self.says.clone() };
            let _others_find_out_by_themselves = self.sharing.commons.send(vec![said]).await;
        }
    }

    /// When something is to be done without a note.
    fn due(&self) -> Timestamp {
        let now = self.clock.now();
        if self.is_set_back(now) {
            return now;
        }
        match &self.away {
            Some(away) => away.at,
            None => {
                let claim = self.locks.next().map(|at| at.max(self.settle_until.unwrap_or(at)));
                claim.map_or(self.beat_at, |claim| claim.min(self.beat_at))
            }
        }
    }

    /// The clock was set back: what was to be done at a time may be hours away, and is done now.
    fn is_set_back(&self, now: Timestamp) -> bool {
        let last = self.away.as_ref().map(|away| away.since).max(self.beaten);
        last.is_some_and(|last| now < last)
    }

    fn take_all(&mut self, first: Note) {
        self.take(first);
        while let Ok(note) = self.notes.try_recv() {
            self.take(note);
        }
    }

    fn take(&mut self, note: Note) {
        let now = self.clock.now();
        match note {
            Note::Image { image: Image::Plan(plan), fresh } => self.mirror.plan(*plan, fresh, now),
            Note::Image { image: Image::Task(task), fresh } => {
                let (name, ended) = (task.task.clone(), task.status.is_final());
                let required = task.checkpoint.as_ref().map(|checkpoint| checkpoint.version);
                if task.status == TaskStatus::HandedOver || self.handed.get(&name).is_some_and(|fence| task.fence > *fence) {
                    self.handed.remove(&name);
                }
                self.mirror.task(*task, fresh, now);
                match required {
                    _ if ended => self.gate.forget(&name),
                    Some(version) => {
                        self.gate.require(&name, version);
                        self.gate.reached(&name, self.mirror.has_told(&name)); // it may have been forgotten at an end that was none
                    }
                    None => {}
                }
                if let Some((tenant, holder)) = ended.then(|| self.adopted.remove(&name)).flatten() {
                    self.locks.left_over(&tenant, holder);
                }
            }
            Note::Image { image: Image::Lock(lock), .. } => self.locks.put(&self.sharing.instance, *lock, now),
            Note::Unwanted { tenant, holder } => self.locks.unwanted(&tenant, holder),
            Note::Walked { left_over } => {
                self.walk = Walk::Done;
                left_over.into_iter().for_each(|(tenant, holder)| self.locks.left_over(&tenant, holder));
            }
            Note::Adopted { tenant, holder } => drop(self.adopted.insert(holder.task.clone(), (tenant, holder))),
            Note::LeftOver(left_over) => left_over.into_iter().for_each(|(tenant, holder)| self.locks.left_over(&tenant, holder)),
            Note::Settled(reply) => self.waiting.push(reply),
            Note::Look => self.beat_at = self.beat_at.min(now),
            Note::Leaving => self.leaving = true,
            Note::Opened(..) | Note::Closed(..) | Note::Unwalked(_) => {} // its shards are its own for as long as it lives
        }
    }

    /// Sends what there is to send until there is nothing more, or the commons are away.
    async fn exchange(&mut self) {
        loop {
            match self.round().await {
                Ok(true) => {}
                Ok(false) => break self.are_back(),
                Err(error) => break self.are_away(&error),
            }
            while let Ok(note) = self.notes.try_recv() {
                self.take(note);
            }
        }
        let walks = self.walk == Walk::ToDo || (self.walk == Walk::Done && std::mem::take(&mut self.mirror.overflowed));
        if walks && self.away.is_none() {
            self.begin_to_walk();
        }
        self.open_gate();
    }

    /// One round trip, and those that follow from it. True if there is more to send.
    async fn round(&mut self) -> Result<bool, CommonsError> {
        let now = self.clock.now();
        let beats = self.beat_at <= now || self.is_set_back(now);
        if self.is_set_back(now) {
            (self.beat_at, self.settle_until) = (now, None);
            self.locks.set_back(now);
        }
        if beats {
            self.look_around().await?;
            if std::mem::take(&mut self.mirror.lingers) {
                self.mirror.doubt(now);
            }
        }
        self.poll_locks(now).await?;
        let me = self.sharing.instance.clone();
        let claims = self.may_claim(now);
        // With every claim it is looked whether what instances share was lost: a lock that is free because of that is not taken.
        let beats = beats || (claims && self.locks.claims(now));
        let beat = beats.then(|| self.beat());
        let mirror = self.mirror.writes(&me).into_iter().map(|(about, write)| (About::Mirror(about), write));
        let locks = self.locks.writes(&me, now, claims).into_iter().map(|(about, write)| (About::Lock(about), write));
        let writes: Vec<_> = beat.into_iter().chain(mirror).chain(locks).collect();
        if writes.is_empty() {
            return Ok(false);
        }
        let taken = self.send(writes, now).await?;
        if !taken.is_empty() && self.may_claim(now) {
            let writes = std::iter::once(self.beat()).chain(taken).collect(); // a lock that is free because all is lost is not taken
            self.send(writes, now).await?;
        }
        let now = self.clock.now();
        Ok(self.mirror.has_news() || self.locks.has_news(now, self.may_claim(now)))
    }

    /// Another instance has the task that asks for that lock.
    fn is_handed(&self, about: &locks::About) -> bool {
        matches!(about, locks::About::Take(_, waiter, _) if self.handed.contains_key(&waiter.task))
    }

    fn beat(&self) -> (About, Write) {
        (About::Beat, Write::Beat { instance: self.sharing.instance.clone(), says: self.says.clone() })
    }

    /// Locks are claimed once what an earlier life has left is known, and others have had the time to say what they have.
    fn may_claim(&self, now: Timestamp) -> bool {
        self.walk.is_done() && self.twin.is_none() && self.settle_until.is_none_or(|until| until <= now)
    }

    /// One round trip. What has to be sent after it, because it needs a number that came of it.
    async fn send(&mut self, writes: Vec<(About, Write)>, now: Timestamp) -> Result<Vec<(About, Write)>, CommonsError> {
        let (abouts, writes): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
        let (began, many) = (self.clock.now(), writes.len());
        let wrote = match self.sharing.commons.send(writes).await {
            Ok(wrote) => wrote,
            Err(error) => {
                for about in &abouts {
                    if let About::Lock(about) = about {
                        self.locks.in_doubt(about);
                    }
                }
                return Err(error);
            }
        };
        self.metrics.wrote(self.clock.now().saturating_since(began), many);
        let (mut follow, mut contested, mut suspects) = (Vec::new(), Vec::new(), Vec::new());
        for (about, wrote) in abouts.into_iter().zip(wrote) {
            match about {
                About::Beat => self.beaten(wrote, now),
                About::Mirror(about) => match self.mirror.wrote(about, &wrote, now) {
                    mirror::Then::Suspect(task) => suspects.push(task),
                    then => self.follow(then, now),
                },
                About::Lock(about @ locks::About::Take(..)) if !self.may_claim(now) || self.is_handed(&about) => self.locks.withdraw(about),
                About::Lock(about) => match self.locks.wrote(&self.sharing.instance, about, wrote, now) {
                    locks::Then::Nothing => {}
                    locks::Then::Take(about, write) => follow.push((About::Lock(about), write)),
                    locks::Then::Granted(tenant, waiter, fence) => self.granted(tenant, waiter, fence),
                    locks::Then::Held(tenant, waiter, holder) => self.held(tenant, waiter, holder),
                    locks::Then::Foreign(key) => self.is_foreign(key),
                    locks::Then::Contested(tenant, mine, lease, other) => contested.push((tenant, mine, lease, other)),
                },
            }
        }
        self.open_gate();
        if !suspects.is_empty() {
            self.look_at_owners(&suspects).await?;
        }
        for (tenant, mine, lease, other) in contested {
            self.contest(tenant, mine, lease, other).await?;
        }
        Ok(follow)
    }

    /// Others know that this instance lives.
    fn beaten(&mut self, wrote: Wrote, now: Timestamp) {
        let Wrote::Before(before) = wrote else {
            if let Wrote::Foreign { key } = wrote {
                self.is_foreign(key);
            }
            return self.beat_later(now);
        };
        let lapsed = self.beaten.is_none_or(|beaten| beaten.saturating_add(self.sharing.gone_after) <= now);
        if before.is_none() && (self.away.is_some() || !lapsed) {
            self.settle(now);
        }
        match before {
            Some(before) if before != self.says && self.beaten.is_some() => {
                tracing::error!(instance = %self.sharing.instance, "{TWIN}");
                self.twin = Some(now);
                self.doubt_all(now);
            }
            _ if self.twin.is_some_and(|found| found.saturating_add(self.sharing.gone_after) > now) => {}
            _ if self.twin.take().is_some() => self.doubt_all(now), // who has what is to be seen
            None if self.beaten.is_some() && !lapsed => {
                tracing::warn!("what instances share was lost: it is written again from what is known here");
                self.doubt_all(now);
            }
            None if self.beaten.is_some() => self.doubt_all(now), // others may have taken this instance for gone
            _ => {}
        }
        self.beaten = Some(now);
        self.beat_later(now);
    }

    fn beat_later(&mut self, now: Timestamp) {
        if self.beat_at <= now {
            self.beat_at = now.saturating_add(self.sharing.gone_after / 3);
        }
    }

    /// What was shared may be lost. Others have what they had, and come to say so: those who were here all the time at their next beat, those who have to find out
    /// that the commons are back a little later. Until then no lock is claimed, unless there is nobody else.
    fn settle(&mut self, now: Timestamp) {
        if self.beaten.is_some() && self.others.may_go_on_alone(now).is_ok() {
            return;
        }
        let find_out = match (&self.away, self.beaten) {
            (Some(away), Some(_)) => COME_BACK.min(2 * now.saturating_since(away.since) + BLIP), // each pause of theirs is as long as all before it
            (Some(_), None) => COME_BACK,
            (None, _) => Duration::ZERO,
        };
        self.settle_until = Some(now.saturating_add(self.sharing.gone_after / 2 + find_out));
    }

    fn doubt_all(&mut self, now: Timestamp) {
        self.doubts = true;
        self.mirror.doubt(now);
        self.locks.doubt();
    }

    /// Looks for other instances, and whether the locks are as they should be.
    async fn look_around(&mut self) -> Result<(), CommonsError> {
        let now = self.clock.now();
        for _ in 0..PIECES {
            let (next, found) = self.sharing.commons.instances(self.cursor).await?;
            for other in found.iter().filter(|found| **found != self.sharing.instance) {
                self.others.saw(other, now);
            }
            self.cursor = next;
            if next == 0 {
                self.others.looked();
                break;
            }
        }
        let held = self.locks.held();
        for page in held.chunks(500) {
            let holders = self.sharing.commons.holders(page).await?;
            self.locks.compare(&self.sharing.instance, page, &holders);
        }
        self.mirror.try_again();
        self.mirror.refresh(self.sharing.kept_for / 3, now);
        self.foreign.retain(|_, found| found.saturating_add(locks::POLL.1 * 2) > now); // what is still there is found again before that
        Ok(())
    }

    /// Looks whether locks that others have are free by now.
    async fn poll_locks(&mut self, now: Timestamp) -> Result<(), CommonsError> {
        let polled = self.locks.polled(now);
        for page in polled.chunks(500) {
            match self.sharing.commons.locks(page).await {
                Ok(found) => self.locks.looked(page, &found, now),
                Err(CommonsError::Foreign { key }) => {
                    self.is_foreign(key);
                    self.locks.looked(page, &[], now); // each is asked for by itself
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn begin_to_walk(&mut self) {
        self.walk = if self.walk == Walk::Done { Walk::Again } else { Walk::UnderWay };
        let (sharing, engine, own, clock) = (self.sharing.clone(), self.engine.clone(), self.own.clone(), Arc::clone(&self.clock));
        let since = clock.now().saturating_since(Timestamp::EPOCH).saturating_sub(sharing.kept_for);
        let since = Timestamp::EPOCH.saturating_add(since);
        tokio::spawn(async move {
            loop {
                match walk::walk(&sharing, &engine, &own, since).await {
                    Ok(()) | Err(Stopped::Engine) => return,
                    Err(Stopped::Store(error)) => tracing::warn!(%error, "what was left cannot be read now"),
                    Err(Stopped::Commons(error)) => tracing::warn!(%error, "what others know of what was left cannot be read now"),
                }
                clock.sleep(BLIP).await;
            }
        });
    }
}
