//! The other instances: who has which shard, as far as this one knows, and the way to them.

use super::asked::{self, Asked, Beside, Brought, Failed, Told};
use super::{Carrier, Cluster, ClusterView, Question};
use crate::clock::Clock;
use crate::error::Error;
use futures_util::StreamExt;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Class, RunId, WorkflowName};
use steadfast_store::{Instance, Leases, Member, ShardId};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How long an instance may take to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// How long it may take to say what it knows beside the journal: whoever looks is shown the journal otherwise.
const BESIDE_WITHIN: Duration = Duration::from_secs(1);

/// How long it is waited for the end of a run at once.
const AWAITED_WITHIN: Duration = Duration::from_secs(30);

/// Something is free that nobody has taken yet, or is about to be.
const SOON: Duration = Duration::from_millis(500);

/// A time that is over is over for everybody a moment later.
const A_MOMENT: Duration = Duration::from_millis(50);

/// Whoever waits for a shard that is on its way looks again after this, if nothing is heard.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The other instances, as this one knows them.
pub(crate) struct Others {
    pub(crate) member: Member,
    pub(crate) leases: Arc<dyn Leases>,
    carrier: Arc<dyn Carrier>,
    clock: Arc<dyn Clock>,
    known: RwLock<Known>,
    /// Told when that has changed, or a shard was opened here.
    changed: watch::Sender<()>,
    /// Told when it seems to be out of date.
    pub(crate) out_of_date: Notify,
    /// The highest term of each shard that was heard of: who says something with a lower one is of the past.
    terms: Mutex<BTreeMap<ShardId, u64>>,
    /// How often each shard has changed hands, as was seen last: a database that says less has forgotten the last times.
    epochs: Mutex<BTreeMap<ShardId, Epochs>>,
    /// Until when the shards that are here are this instance's for sure.
    sure_until: Mutex<Option<Instant>>,
}

struct Known {
    /// Who has which shard, those that are here among them.
    holders: BTreeMap<ShardId, Arc<Member>>,
    /// The instances that live; this one alone as long as nothing was seen.
    members: Vec<Arc<Member>>,
}

#[derive(Clone, Copy, Default)]
struct Epochs {
    last: u64,
    /// It was more before, and nobody has taken the shard since.
    went_back_to: Option<u64>,
}

/// What a look has shown.
pub(super) struct Seen {
    /// The shards that anybody may take.
    pub(super) free: BTreeSet<ShardId>,
    /// In how long that may be so of those of another instance, unless it is heard of till then.
    pub(super) over_in: Option<Duration>,
}

impl Others {
    pub(crate) fn new(cluster: Cluster, clock: Arc<dyn Clock>) -> Self {
        let Cluster { leases, member, carrier } = cluster;
        let known = Known { holders: BTreeMap::new(), members: vec![Arc::new(member.clone())] };
        Others {
            member,
            leases,
            carrier,
            clock,
            known: RwLock::new(known),
            changed: watch::channel(()).0,
            out_of_date: Notify::new(),
            terms: Mutex::default(),
            epochs: Mutex::default(),
            sure_until: Mutex::default(),
        }
    }

    /// Reads who has which shard.
    pub(super) async fn look(&self) -> Result<Seen, steadfast_store::Error> {
        let (leases, instances) = join(self.leases.leases(), self.leases.instances()).await;
        let (leases, instances) = (leases?, instances?);
        let living: Vec<_> = instances.into_iter().filter(|instance| instance.lives).collect();
        let others = living.iter().filter(|instance| instance.member.id != self.member.id);
        let over_in = others.map(|other: &Instance| self.leases.lease().saturating_sub(other.silent)).min();
        leases.iter().for_each(|lease| self.has_epoch(lease.shard, lease.epoch));
        let members: BTreeMap<_, _> = living.into_iter().map(|instance| (instance.member.id.clone(), Arc::new(instance.member))).collect();
        let free = leases.iter().filter(|lease| lease.is_over).map(|lease| lease.shard).collect();
        let of_nobody = |holder: &String| !members.contains_key(holder);
        let is_soon_free = leases.iter().any(|lease| lease.is_over || lease.holder.as_ref().is_some_and(of_nobody));
        let over_in = over_in.into_iter().chain(is_soon_free.then_some(SOON)).min();
        let held = leases.into_iter().filter(|lease| !lease.is_over);
        let holders = held.filter_map(|lease| Some((lease.shard, Arc::clone(members.get(&lease.holder?)?)))).collect();
        let mut members: Vec<_> = members.into_values().collect();
        if members.is_empty() {
            members.push(Arc::new(self.member.clone())); // it joins again, and whoever asks is not to take it for a server without others
        }
        *self.known.write() = Known { holders, members };
        self.has_changed();
        Ok(Seen { free, over_in: over_in.map(|time| time + A_MOMENT) })
    }

    /// The instances that live, as was last seen: at least one.
    pub(crate) fn members(&self) -> Vec<Arc<Member>> {
        self.known.read().members.clone()
    }

    /// All that is known of the instances.
    pub(crate) async fn view(&self) -> Result<ClusterView, Error> {
        let (leases, instances) = join(self.leases.leases(), self.leases.instances()).await;
        Ok(ClusterView {
            here: self.member.id.clone(),
            lease: self.leases.lease(),
            instances: instances.map_err(Error::from_store)?,
            leases: leases.map_err(Error::from_store)?,
        })
    }

    /// The shards that are here are this instance's until then.
    pub(super) fn is_sure_until(&self, until: Instant) {
        *self.sure_until.lock() = Some(until);
    }

    /// Others may have the shards that are here by now.
    pub(crate) fn is_past(&self) -> bool {
        self.sure_until.lock().is_some_and(|until| Instant::now() >= until)
    }

    /// Another instance that has a shard, if one is known.
    pub(crate) fn holder(&self, shard: ShardId) -> Option<Arc<Member>> {
        self.known.read().holders.get(&shard).filter(|holder| holder.id != self.member.id).map(Arc::clone)
    }

    pub(crate) fn has_changed(&self) {
        self.changed.send_replace(());
    }

    /// Whoever waits on this hears of every change after it was made.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// What is known of a shard has turned out to be wrong: ends when more may be known.
    pub(crate) async fn moved(&self, changes: watch::Receiver<()>) {
        self.out_of_date.notify_one();
        self.changed_within(changes, LOOK_AGAIN).await;
    }

    /// Ends when more may be known of who has what, or that time is over.
    pub(crate) async fn changed_within(&self, mut changes: watch::Receiver<()>, time: Duration) {
        tokio::select! {
            biased;
            _ = changes.changed() => {}
            () = self.clock.sleep(time) => {}
        }
    }

    /// How long somebody waits for a shard that nobody has: if its holder has died, until its lease is over and another one has opened it.
    pub(crate) fn patience(&self) -> Duration {
        self.leases.lease() + Duration::from_secs(5)
    }

    /// Has another instance asked.
    pub(crate) async fn ask(&self, holder: &Member, asked: Asked) -> Result<Told, Failed> {
        let (within, waits) = match asked {
            Asked::Await { .. } => (AWAITED_WITHIN, true),
            Asked::Beside { .. } | Asked::Offer { .. } => (BESIDE_WITHIN, false),
            Asked::Start { .. } | Asked::Tell { .. } | Asked::Hear { .. } | Asked::Sweep { .. } => (ANSWERED_WITHIN, false),
        };
        let once = matches!(asked, Asked::Start { fresh: true, .. });
        let Some(bytes) = asked.encode(&holder.id) else { return Err(Failed::Unknown) };
        match self.carrier.carry(holder, Question { bytes, within, waits, once }).await {
            Ok(answer) => asked::read(&answer),
            Err(failure) if failure.class != Class::Transient => {
                tracing::warn!(instance = holder.id, address = holder.address, %failure, "an instance refuses what it is asked");
                Err(Failed::Unavailable)
            }
            Err(failure) => {
                tracing::debug!(instance = holder.id, address = holder.address, %failure, "an instance does not answer");
                Err(Failed::Unavailable)
            }
        }
    }

    /// Has the holder of a shard asked, for as long as it is that: one that hangs keeps nobody waiting who could ask the next one.
    pub(crate) async fn ask_holder(&self, shard: ShardId, holder: &Member, asked: Asked) -> Result<Told, Failed> {
        tokio::select! {
            biased;
            told = self.ask(holder, asked) => told,
            () = self.is_held_by_another(shard, &holder.id) => Err(Failed::Unavailable),
        }
    }

    /// Ends when somebody else has that shard, this instance among them.
    async fn is_held_by_another(&self, shard: ShardId, holder: &str) {
        let mut changes = self.changes();
        while self.known.read().holders.get(&shard).is_none_or(|now| now.id == holder) {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// What the holder of a shard knows of a run beside its journal; nothing if it does not say.
    pub(crate) async fn beside(&self, shard: ShardId, run: &RunId) -> Beside {
        let Some(holder) = self.holder(shard) else { return Beside::default() };
        match self.ask(&holder, Asked::Beside { run: run.clone() }).await {
            Ok(Told::Beside(beside)) => beside,
            _ => Beside::default(),
        }
    }

    /// What goes for runs of a workflow, by a worker that has brought it to another instance.
    pub(crate) async fn offer(&self, workflow: &WorkflowName) -> Option<Brought> {
        let (members, ask) = (self.members(), |member| async move { self.ask(member, Asked::Offer { workflow: workflow.clone() }).await });
        let mut answers: FuturesUnordered<_> =
            members.iter().filter(|member| member.id != self.member.id).map(|member| ask(&**member)).collect();
        while let Some(answer) = answers.next().await {
            if let Ok(Told::Offer(Some(brought))) = answer {
                return Some(brought);
            }
        }
        None
    }

    /// A shard has changed hands so often. If it was more often before, a standby that was behind has taken the place of the database: those who had it since then are of no concern any more, and
    /// their terms are forgotten until somebody takes it anew.
    fn has_epoch(&self, shard: ShardId, epoch: u64) {
        let mut epochs = self.epochs.lock();
        let Epochs { last, went_back_to } = epochs.entry(shard).or_default();
        if epoch < *last {
            tracing::warn!(shard, epoch, seen = *last, "the database has forgotten who had the shard last");
            *went_back_to = Some(epoch);
        }
        *last = epoch;
        *went_back_to = went_back_to.filter(|back| epoch <= *back);
        if went_back_to.is_some() {
            self.terms.lock().remove(&shard);
        }
    }

    /// Whether somebody is known to have had a shard after that epoch, which the database has forgotten.
    pub(super) fn was_moved_on(&self, shard: ShardId, epoch: u64) -> bool {
        self.epochs
            .lock()
            .get(&shard)
            .is_some_and(|epochs| epoch < epochs.last || epochs.went_back_to == Some(epoch))
    }

    /// A shard is open here, whatever was known of it before.
    pub(super) fn is_here(&self, shard: ShardId, epoch: u64, term: u64) {
        self.epochs.lock().insert(shard, Epochs { last: epoch, went_back_to: None });
        self.terms.lock().insert(shard, term);
    }

    /// A shard has that term now. False if it has had a higher one.
    pub(crate) fn has_term(&self, shard: ShardId, term: u64) -> bool {
        let mut terms = self.terms.lock();
        let highest = terms.entry(shard).or_default();
        *highest = term.max(*highest);
        *highest == term
    }
}

/// The answer to what another instance asks, for its way.
pub(crate) fn answered(told: &Result<Told, Failed>) -> bytes::Bytes {
    asked::write(told)
}
