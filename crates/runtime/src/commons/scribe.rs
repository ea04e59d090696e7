//! The one who writes the commons where they are a mirror only: instances share one store, and that says who has what. Nothing waits for what is written here, and nothing that is
//! done depends on what is read: that is only compared, to find what a former writer did not come to write.
//!
//! Tested by `crates/sdk/tests/it/instances/outages/mirror_only.rs`.

use super::copies::{self, Copies};
use super::locks::POLL;
use super::mirror::{self, Mirror};
use super::walk::{self, Stopped};
use super::worker::{BLIP, Ports, RETRY};
use super::{Image, Note, Sharing, SharingHealth, SharingState};
use crate::clock::Clock;
use crate::engine::WeakEngine;
use crate::metrics::OfCommons;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{EntityId, InstanceId, Timestamp};
use steadfast_store::{CommonsError, ShardId, Write, Wrote, shard_of};
use tokio::sync::{mpsc, oneshot, watch};

/// How soon it is looked again whether a shard that was opened can be asked.
const OPENS_WITHIN: Duration = Duration::from_millis(50);

pub(crate) struct Scribe {
    sharing: Sharing,
    clock: Arc<dyn Clock>,
    engine: WeakEngine,
    notes: mpsc::UnboundedReceiver<Note>,
    own: mpsc::WeakUnboundedSender<Note>,
    health: watch::Sender<SharingHealth>,
    metrics: OfCommons,
    /// How many shards the store has, here and elsewhere.
    shards: u32,
    mirror: Mirror,
    locks: Copies,
    /// When to look after what is written again, and when that was last done.
    beat_at: Timestamp,
    beaten: Option<Timestamp>,
    away: Option<Away>,
    /// What was written may not be there: it is written again.
    doubts: bool,
    /// When all was last written again.
    doubted: Option<Timestamp>,
    /// Shards that are here, with their terms, and those of them of which it is to be looked what is open.
    here: BTreeMap<ShardId, u64>,
    to_walk: BTreeSet<ShardId>,
    walks: bool,
    /// Keys that hold something else, and when that was last found.
    foreign: BTreeMap<String, Timestamp>,
    waiting: Vec<oneshot::Sender<()>>,
}

/// The commons are away.
struct Away {
    since: Timestamp,
    why: String,
    pause: Duration,
    at: Timestamp,
}

/// What a write was about.
enum About {
    Beat,
    Probe,
    Mirror(mirror::About),
    Lock(copies::About),
}

impl Scribe {
    pub(crate) fn new(sharing: Sharing, clock: Arc<dyn Clock>, engine: WeakEngine, shards: u32, ports: Ports) -> Self {
        let Ports { notes, own, health, gate: _ } = ports;
        Scribe {
            beat_at: clock.now(),
            sharing,
            clock,
            engine,
            notes,
            own,
            health,
            metrics: OfCommons::new(),
            shards,
            mirror: Mirror::among_many(),
            locks: Copies::default(),
            beaten: None,
            away: None,
            doubts: false,
            doubted: None,
            here: BTreeMap::new(),
            to_walk: BTreeSet::new(),
            walks: false,
            foreign: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    /// Works until the shards have ended.
    pub(crate) async fn run(mut self) {
        loop {
            let due = self.due().saturating_since(self.clock.now());
            tokio::select! {
                biased;
                note = self.notes.recv() => match note {
                    Some(note) => self.take_all(note),
                    None => return, // others who write under this name go on to say that it lives
                },
                () = self.clock.sleep(due.clamp(Duration::from_millis(1), self.sharing.gone_after / 3)) => {}
            }
            let now = self.clock.now();
            if self.away.as_ref().is_none_or(|away| away.at <= now || now < away.since) {
                self.exchange().await;
            }
            self.show();
        }
    }

    /// When something is to be done without a note.
    fn due(&self) -> Timestamp {
        match &self.away {
            Some(away) => away.at,
            None if !self.walks && !self.to_walk.is_empty() => self.beat_at.min(self.clock.now().saturating_add(OPENS_WITHIN)),
            None => self.beat_at,
        }
    }

    fn take_all(&mut self, first: Note) {
        self.take(first);
        while let Ok(note) = self.notes.try_recv() {
            self.take(note);
        }
    }

    fn take(&mut self, note: Note) {
        let (now, shards) = (self.clock.now(), self.shards);
        match note {
            Note::Image { image: Image::Plan(plan), fresh } => self.mirror.plan(*plan, fresh, now),
            Note::Image { image: Image::Task(task), fresh } => self.mirror.task(*task, fresh, now),
            Note::Image { image: Image::Lock(lock), .. } => self.locks.put(&self.sharing.instance, *lock),
            Note::Opened(shard, term) => {
                self.here.insert(shard, term);
                self.to_walk.insert(shard);
                self.mirror.enter(|entity| shard_of(entity, shards) == shard, now);
            }
            Note::Closed(shard, term) if self.here.get(&shard) != Some(&term) => {} // it is here again already
            Note::Closed(shard, _) => {
                self.here.remove(&shard);
                self.to_walk.remove(&shard);
                self.mirror.leave(|entity| shard_of(entity, shards) == shard);
                self.locks.leave(|tenant| shard_of(&EntityId::Lock(tenant.clone()), shards) == shard);
            }
            Note::Walked { left_over } => {
                self.walks = false;
                left_over.into_iter().for_each(|(tenant, holder)| self.locks.left_over(&tenant, holder));
            }
            Note::Unwalked(shards) => {
                self.walks = false;
                self.to_walk.extend(shards.iter().filter(|shard| self.here.contains_key(shard)));
                self.beat_at = now; // whether the commons are away is seen before it is tried again
            }
            Note::Settled(reply) => self.waiting.push(reply),
            Note::Look => self.beat_at = self.beat_at.min(now),
            // Nobody claims a lock or takes a task up here; and that this process leaves does not mean that the name does.
            Note::Unwanted { .. } | Note::Adopted { .. } | Note::LeftOver(_) | Note::Leaving => {}
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
        if self.away.is_none() && std::mem::take(&mut self.mirror.overflowed) {
            self.to_walk.extend(self.here.keys());
        }
        if self.away.is_none() && !self.walks {
            self.begin_to_walk();
        }
    }

    /// Looks at what is open in the shards that have come, once there is a way to them.
    fn begin_to_walk(&mut self) {
        let Some(engine) = self.engine.upgrade() else { return };
        let shards: BTreeSet<ShardId> = self.to_walk.iter().copied().filter(|shard| engine.has_way_to(*shard)).collect();
        if !shards.is_empty() {
            self.to_walk.retain(|shard| !shards.contains(shard));
            self.walks = true;
            tokio::spawn(walked(self.sharing.clone(), self.engine.clone(), self.own.clone(), Arc::clone(&self.clock), shards));
        }
    }

    /// One round trip. True if there is more to send.
    async fn round(&mut self) -> Result<bool, CommonsError> {
        let (now, me) = (self.clock.now(), self.sharing.instance.clone());
        let beats = self.beat_at <= now || self.beaten.is_some_and(|beaten| now < beaten);
        if std::mem::take(&mut self.doubts) {
            self.doubted = Some(now);
            self.mirror.doubt(now);
            self.locks.doubt();
        }
        let mut writes = Vec::new();
        if beats {
            self.mirror.try_again();
            self.locks.try_again();
            self.mirror.refresh(self.sharing.kept_for / 3, now);
            self.foreign.retain(|_, found| found.saturating_add(self.sharing.gone_after.max(POLL.1 * 2)) > now); // what is still there is found again before that
            // What is said is the same whoever says it, so that nobody takes two processes for two lives of one instance.
            writes.push((About::Beat, Write::Beat { instance: me.clone(), says: me.to_string() }));
            writes.extend(self.mirror.probe(&me).map(|probe| (About::Probe, probe)));
        }
        writes.extend(self.mirror.writes(&me).into_iter().map(|(about, write)| (About::Mirror(about), write)));
        writes.extend(self.locks.writes(&me, now).into_iter().map(|(about, write)| (About::Lock(about), write)));
        if writes.is_empty() {
            return Ok(false);
        }
        self.send(writes, now).await?;
        Ok(self.doubts || self.mirror.has_news() || self.locks.has_news())
    }

    async fn send(&mut self, writes: Vec<(About, Write)>, now: Timestamp) -> Result<(), CommonsError> {
        let (abouts, writes): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
        let (began, many) = (self.clock.now(), writes.len());
        let wrote = self.sharing.commons.send(writes).await?;
        self.metrics.wrote(self.clock.now().saturating_since(began), many);
        for (about, wrote) in abouts.into_iter().zip(wrote) {
            match about {
                About::Beat => self.has_beaten(wrote, now),
                About::Probe if wrote == Wrote::Missing => self.is_lost(now),
                About::Probe => {}
                About::Mirror(about) => {
                    let then = self.mirror.wrote(about, &wrote, now);
                    self.follow(then, now);
                }
                About::Lock(about) => match self.locks.wrote(&self.sharing.instance, about, wrote) {
                    copies::Then::Nothing => {}
                    copies::Then::Lost => self.is_lost(now),
                    copies::Then::Foreign(key) => self.is_foreign(key),
                    copies::Then::Another(tenant, holder) => self.is_foreign(format!("the lock of tenant {tenant}, which is {holder},")),
                },
            }
        }
        Ok(())
    }

    fn has_beaten(&mut self, wrote: Wrote, now: Timestamp) {
        let lapsed = self.beaten.is_none_or(|beaten| beaten.saturating_add(self.sharing.gone_after) <= now);
        match wrote {
            Wrote::Before(None) if !lapsed => self.is_lost(now),
            Wrote::Foreign { key } => self.is_foreign(key),
            _ => {}
        }
        self.beaten = Some(now);
        self.beat_at = now.saturating_add(self.sharing.gone_after / 3);
    }

    fn follow(&mut self, then: mirror::Then, now: Timestamp) {
        match then {
            mirror::Then::Nothing | mirror::Then::Reached(..) | mirror::Then::Suspect(_) => {}
            mirror::Then::Lost => self.is_lost(now),
            mirror::Then::NotYours(task, owner, _) => self.is_refused(format!("task {task}"), owner),
            mirror::Then::PlanNotYours(plan, owner) => self.is_refused(format!("plan {plan}"), owner),
            mirror::Then::Foreign(key) => self.is_foreign(key),
        }
    }

    /// What is there is of a later state, and another writer of the same name has put it there; or somebody else uses the same keys.
    fn is_refused(&mut self, what: String, owner: Option<InstanceId>) {
        match owner {
            Some(owner) if owner == self.sharing.instance => tracing::debug!(what, "another instance of this database has gone on with it"),
            owner => {
                let owner = owner.map_or_else(|| "nobody that is known".to_string(), |owner| owner.to_string());
                self.is_foreign(format!("{what}, which is owned by {owner},"));
            }
        }
    }

    fn is_foreign(&mut self, key: String) {
        if self.foreign.insert(key.clone(), self.clock.now()).is_none() {
            tracing::error!(
                key,
                "Redis holds something there that no instance of this database has put there; it is left alone: give them a redis.prefix of their own, or remove it"
            );
        }
    }

    /// What was written is gone. All of it is written again, but not at every sign of that.
    fn is_lost(&mut self, now: Timestamp) {
        if self
            .doubted
            .is_none_or(|doubted| doubted.saturating_add(self.sharing.gone_after / 3) <= now || now < doubted)
        {
            tracing::warn!("what was written to Redis is gone: what is open is written again");
            self.doubts = true;
        }
    }

    fn are_back(&mut self) {
        if let Some(Away { since, .. }) = self.away.take() {
            let away_for = self.clock.now().saturating_since(since);
            tracing::info!(?away_for, "Redis is back: what is open was written again");
        }
        self.metrics.up.set(1.0);
        for waiting in self.waiting.drain(..) {
            let _nobody_waits_any_more = waiting.send(());
        }
    }

    fn are_away(&mut self, error: &CommonsError) {
        let now = self.clock.now();
        self.metrics.failures.increment(1);
        self.metrics.up.set(0.0);
        let (since, pause) = match &self.away {
            Some(away) => (away.since.min(now), (away.pause * 2).min(RETRY.1)),
            None => {
                tracing::warn!(%error, "Redis cannot be used: nothing waits for that, but what is there is behind");
                (now, RETRY.0)
            }
        };
        self.doubts = true; // it may come back with less than it had
        self.away = Some(Away { since, why: error.to_string(), pause, at: now.saturating_add(pause) });
    }

    /// Shows how it stands.
    fn show(&self) {
        let (pending, behind_since) = self.mirror.lag();
        self.metrics.pending.set(pending as f64);
        let lag = behind_since.map_or(Duration::ZERO, |since| self.clock.now().saturating_since(since));
        self.metrics.lag.set(lag.as_secs_f64());
        let state = match &self.away {
            Some(Away { since, why, .. }) => SharingState::Away { since: *since, why: why.clone(), refuses: None },
            None if self.beaten.is_none() || self.walks || !self.to_walk.is_empty() => SharingState::Starting,
            None => SharingState::Up,
        };
        let (instance, foreign) = (self.sharing.instance.clone(), self.foreign.keys().cloned().collect());
        let health = SharingHealth { instance, mirror_only: true, state, seen: None, pending, behind_since, foreign };
        self.health.send_if_modified(|before| {
            let changed = *before != health;
            *before = health;
            changed
        });
    }
}

/// Looks at what is open in these shards, and at what has ended and is not known there, until that has been seen.
async fn walked(
    sharing: Sharing,
    engine: WeakEngine,
    own: mpsc::WeakUnboundedSender<Note>,
    clock: Arc<dyn Clock>,
    shards: BTreeSet<ShardId>,
) {
    let kept_since = clock.now().saturating_since(Timestamp::EPOCH).saturating_sub(sharing.kept_for);
    let since = Timestamp::EPOCH.saturating_add(kept_since);
    loop {
        match walk::walk_shards(&sharing, &engine, &own, since, &shards).await {
            Ok(()) | Err(Stopped::Engine) => return,
            Err(Stopped::Store(error)) => tracing::warn!(%error, "what is to be written to Redis cannot be read now"),
            Err(Stopped::Commons(error)) => {
                tracing::warn!(%error, "it cannot be compared now what Redis knows");
                clock.sleep(BLIP).await;
                return drop(own.upgrade().map(|own| own.send(Note::Unwalked(shards))));
            }
        }
        clock.sleep(BLIP).await;
    }
}
