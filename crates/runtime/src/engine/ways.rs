//! The ways to the shards that this instance has: who asks something of an entity finds the shard that it lives in.

use crate::cluster::{Asked, Others, Told};
use crate::error::Error;
use crate::health::Health;
use crate::host::Report;
use crate::shard::{Control, Request, Said};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use steadfast_kernel::{EntityId, WorkflowName};
use steadfast_store::{ShardId, Sweep, shard_of};
use tokio::sync::{mpsc, oneshot, watch};

/// The ways to the shards of this instance. A shard ends when there is no way to it any more.
pub(crate) struct Ways {
    /// How many shards there are, here and elsewhere.
    shards: u32,
    here: RwLock<BTreeMap<ShardId, Way>>,
    /// Those who have the shards that are not here.
    others: Option<Arc<Others>>,
    /// Why it is not known for sure which shards are this instance's.
    unsure: Mutex<Option<Health>>,
    /// Shards that are here and are being given away.
    leaving: Mutex<BTreeSet<ShardId>>,
    gone: watch::Sender<()>,
    ends: AtomicBool,
}

/// The way to one shard.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) control: mpsc::UnboundedSender<Control>,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) reports: mpsc::UnboundedSender<Report>,
    /// What entities of other shards tell its own.
    pub(crate) said: mpsc::UnboundedSender<Said>,
    pub(crate) health: watch::Receiver<Health>,
    /// How many runs are in memory there with their code.
    pub(crate) load: Arc<AtomicUsize>,
}

impl Ways {
    pub(crate) fn new(shards: u32, others: Option<Arc<Others>>) -> Self {
        Ways {
            shards,
            here: RwLock::default(),
            others,
            unsure: Mutex::default(),
            leaving: Mutex::default(),
            gone: watch::channel(()).0,
            ends: AtomicBool::new(false),
        }
    }

    /// Ends when nobody has them any more.
    pub(crate) fn gone(&self) -> watch::Receiver<()> {
        self.gone.subscribe()
    }

    pub(crate) fn others(&self) -> Option<&Arc<Others>> {
        self.others.as_ref()
    }

    /// How many shards there are, here and elsewhere.
    pub(crate) fn shards(&self) -> u32 {
        self.shards
    }

    /// The shard of an entity.
    pub(crate) fn shard_of(&self, entity: &EntityId) -> ShardId {
        shard_of(entity, self.shards)
    }

    pub(crate) fn add(&self, shard: ShardId, way: Way) {
        self.here.write().insert(shard, way);
    }

    pub(crate) fn remove(&self, shard: ShardId) -> Option<Way> {
        self.leaving.lock().remove(&shard);
        self.here.write().remove(&shard)
    }

    pub(crate) fn is_here(&self, shard: ShardId) -> bool {
        self.here.read().contains_key(&shard)
    }

    /// Whether a shard is here, and is to stay.
    pub(crate) fn stays_here(&self, shard: ShardId) -> bool {
        self.is_here(shard) && !self.leaving.lock().contains(&shard)
    }

    /// How many runs of a shard that is here are in memory with their code.
    pub(crate) fn load_of(&self, shard: ShardId) -> usize {
        self.here.read().get(&shard).map_or(0, |way| way.load.load(Ordering::Relaxed))
    }

    /// Why nothing of a shard that is here can be written any more; nothing if it can.
    pub(crate) fn is_over(&self, shard: ShardId) -> Option<Arc<steadfast_store::Error>> {
        match &*self.here.read().get(&shard)?.health.borrow() {
            Health::Over { error } => Some(Arc::clone(error)),
            _ => None,
        }
    }

    /// The engine stops: whoever looks for a shard that moves does not wait for it.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    pub(crate) fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    /// Whether it is known which shards are this instance's, and if not, why.
    pub(crate) fn is_sure(&self, trouble: Option<Health>) {
        let mut unsure = self.unsure.lock();
        let is_over = matches!(*unsure, Some(Health::Over { .. })); // that does not pass
        if !is_over && (trouble.is_none() || unsure.is_none() || matches!(trouble, Some(Health::Over { .. }))) {
            *unsure = trouble; // the first trouble tells since when
        }
    }

    /// The shards that are here.
    pub(crate) fn here(&self) -> Vec<ShardId> {
        self.here.read().keys().copied().collect()
    }

    /// Asks the shard of the entity that it is about.
    ///
    /// # Errors
    /// If that is not here, has stopped, or has too much to do.
    pub(crate) fn ask(&self, request: Request) -> Result<(), Error> {
        let shard = request.entity().map_or(0, |entity| self.shard_of(&entity));
        let here = self.here.read();
        let way = here.get(&shard).ok_or(Error::Stopped)?;
        way.requests.try_send(request).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::busy("requests_max"),
            mpsc::error::TrySendError::Closed(_) => Error::Stopped,
        })
    }

    /// Where a shard is asked, if it is here.
    pub(crate) fn requests_of(&self, shard: ShardId) -> Option<mpsc::Sender<Request>> {
        self.here.read().get(&shard).map(|way| way.requests.clone())
    }

    /// Tells an entity what one of another shard says, which has that term. If nobody has its shard, nobody hears it.
    pub(crate) fn say(&self, said: Said, (shard, term): (ShardId, u64)) {
        let to = self.shard_of(&said.envelope.to);
        if let Some(way) = self.here.read().get(&to) {
            let _it_has_stopped = way.said.send(said);
            return;
        }
        let Some(others) = self.others.as_ref().map(Arc::clone) else { return };
        drop(tokio::spawn(async move {
            let Some(holder) = others.holder(to) else { return others.out_of_date.notify_one() };
            let Said { envelope, mut heard } = said;
            let asked = Asked::Hear { envelope: Box::new(envelope), shard, term };
            let told = tokio::select! {
                biased;
                () = heard.closed() => return,
                told = others.ask_holder(to, &holder, asked) => told,
            };
            match told {
                Ok(_) => drop(heard.send(())),
                Err(_) => others.out_of_date.notify_one(),
            }
        }));
    }

    /// Has another instance remove what has ended, of a shard that it has: how many are gone; nothing if it does not want to now.
    pub(crate) async fn sweep_afar(&self, shard: ShardId, ended: Vec<Sweep>) -> Option<usize> {
        let others = self.others.as_ref()?;
        match others.ask(&*others.holder(shard)?, Asked::Sweep { shard, ended }).await {
            Ok(Told::Swept(gone)) => Some(gone),
            _ => None,
        }
    }

    /// Hands what a session says to the shard of its run.
    pub(crate) fn report(&self, report: Report) {
        let run = EntityId::Run(report.run.clone());
        if let Some(way) = self.here.read().get(&self.shard_of(&run)) {
            let _it_has_stopped = way.reports.send(report);
        }
    }

    /// Tells every shard.
    pub(crate) fn tell(&self, control: impl Fn() -> Control) {
        for way in self.here.read().values() {
            let _it_has_stopped = way.control.send(control());
        }
    }

    /// So many runs are to leave room for that workflow, in all shards but that one: each is told its share, rounded up.
    pub(crate) fn leave_room(&self, but: ShardId, workflow: &WorkflowName, runs: usize) {
        let here = self.here.read();
        let others = || here.iter().filter(|(shard, _)| **shard != but);
        let share = runs.div_ceil(others().count().max(1));
        for (_, way) in others() {
            let _it_has_stopped = way.control.send(Control::LeaveRoom { workflow: workflow.clone(), runs: share });
        }
    }

    /// Has all shards begin nothing new; ends when nothing is in flight in any of them.
    pub(crate) fn drain(&self) -> impl Future<Output = ()> + use<> {
        let drained: Vec<_> = self.here.read().values().filter_map(Way::drain).collect();
        async move {
            for drained in drained {
                let _it_has_stopped = drained.await;
            }
        }
    }

    /// Has one shard begin nothing new; ends when nothing is in flight there, or with false if it has ended otherwise.
    pub(crate) fn drain_one(&self, shard: ShardId) -> impl Future<Output = bool> + use<> {
        let drained = self.here.read().get(&shard).and_then(Way::drain);
        self.leaving.lock().insert(shard);
        async move {
            match drained {
                Some(drained) => drained.await.is_ok(),
                None => false,
            }
        }
    }

    /// A shard that was to be given away stays here after all.
    pub(crate) fn keep(&self, shard: ShardId) {
        self.leaving.lock().remove(&shard);
    }

    pub(crate) fn control_of(&self, shard: ShardId) -> Option<mpsc::UnboundedSender<Control>> {
        self.here.read().get(&shard).map(|way| way.control.clone())
    }

    /// How the shards are: as the one that is worst.
    pub(crate) fn health(&self) -> Health {
        let all: Vec<Health> = self.here.read().values().map(|way| way.health.borrow().clone()).collect();
        let worst = all.iter().find(|health| matches!(health, Health::Over { .. }));
        let worst = worst.or_else(|| all.iter().find(|health| !health.is_well())).cloned();
        worst.or_else(|| self.unsure.lock().clone()).unwrap_or_default()
    }
}

impl Way {
    fn drain(&self) -> Option<oneshot::Receiver<()>> {
        let (reply, drained) = oneshot::channel();
        self.control.send(Control::Drain { reply }).ok().map(|()| drained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of the shards is told to let go, when the first one lacks so many places.
    fn shares(shards: u32, runs: usize) -> Vec<Option<usize>> {
        let (ways, workflow) = (Ways::new(shards, None), WorkflowName::new("nap").unwrap());
        let mut told = Vec::new();
        for shard in 0..shards {
            let (control, of_shard) = mpsc::unbounded_channel();
            let (requests, reports, said) = (mpsc::channel(1).0, mpsc::unbounded_channel().0, mpsc::unbounded_channel().0);
            let (health, load) = (watch::channel(Health::default()).1, Arc::default());
            ways.add(shard, Way { control, requests, reports, said, health, load });
            told.push(of_shard);
        }
        ways.leave_room(0, &workflow, runs);
        let share = |of_shard: &mut mpsc::UnboundedReceiver<Control>| match of_shard.try_recv() {
            Ok(Control::LeaveRoom { runs, .. }) => Some(runs),
            _ => None,
        };
        told.iter_mut().map(share).collect()
    }

    #[test]
    fn the_places_that_a_shard_lacks_are_divided_among_the_others() {
        assert_eq!(shares(1, 6), [None], "nobody else is here");
        assert_eq!(shares(4, 6), [None, Some(2), Some(2), Some(2)]);
        assert_eq!(shares(4, 7), [None, Some(3), Some(3), Some(3)], "rounded up");
        assert_eq!(shares(64, 100).into_iter().flatten().sum::<usize>(), 126);
    }
}
