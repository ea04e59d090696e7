//! Who is woken when something was written.

use super::tail::Tail;
use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use steadfast_kernel::EntityId;
use steadfast_store::Leases;
use tokio::sync::watch;

/// Who is woken when something was written.
pub(crate) struct Followers {
    /// Told after every commit, for those who follow everything.
    all: watch::Sender<()>,
    /// Told when that entity was written.
    of: Mutex<IndexMap<EntityId, watch::Sender<()>, DefaultHashBuilder>>,
    /// How many entities are followed, so that a commit need not ask if there are none.
    entities: AtomicUsize,
    /// How many follow something.
    count: AtomicUsize,
    pub(super) tail: Tail,
    /// Those who are told that others may have something to read.
    leases: Option<Arc<dyn Leases>>,
}

impl Followers {
    pub(crate) fn new(leases: Option<Arc<dyn Leases>>) -> Self {
        Followers {
            all: watch::channel(()).0,
            of: Mutex::default(),
            entities: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            tail: Tail::default(),
            leases,
        }
    }

    /// How many follow something.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// That entity was written.
    pub(crate) fn wrote(&self, entity: &EntityId) {
        if self.entities.load(Ordering::Acquire) > 0
            && let Some(sender) = self.of.lock().get(entity)
        {
            sender.send_replace(());
        }
    }

    /// Something was written here.
    pub(crate) fn committed(&self) {
        if self.all.receiver_count() > 0 {
            self.all.send_replace(());
        }
        if let Some(leases) = &self.leases {
            leases.committed();
        }
    }

    /// Another instance may have written anything.
    pub(crate) fn stirred(&self) {
        self.all.send_replace(());
        if self.entities.load(Ordering::Acquire) > 0 {
            for sender in self.of.lock().values() {
                sender.send_replace(());
            }
        }
    }

    /// A way to be woken.
    pub(super) fn watch(self: &Arc<Self>, entity: Option<&EntityId>) -> Watch {
        self.count.fetch_add(1, Ordering::Relaxed);
        let followers = Arc::downgrade(self);
        let Some(entity) = entity else { return Watch { receiver: self.all.subscribe(), followers, of: None } };
        let mut of = self.of.lock();
        let receiver = of.entry(entity.clone()).or_insert_with(|| watch::channel(()).0).subscribe();
        self.entities.store(of.len(), Ordering::Release);
        Watch { receiver, followers, of: Some(entity.clone()) }
    }
}

/// Wakes a follower, and tells it when the engine has stopped.
pub(super) struct Watch {
    receiver: watch::Receiver<()>,
    followers: Weak<Followers>,
    of: Option<EntityId>,
}

impl Watch {
    /// What was written until here is going to be read.
    pub(super) fn mark(&mut self) {
        self.receiver.mark_unchanged();
    }

    /// Waits until something was written since the mark. False if nothing will be.
    pub(super) async fn changed(&mut self) -> bool {
        self.receiver.changed().await.is_ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(followers) = self.followers.upgrade() else { return };
        followers.count.fetch_sub(1, Ordering::Relaxed);
        let Some(entity) = &self.of else { return };
        let mut of = followers.of.lock();
        if of.get(entity).is_some_and(|sender| sender.receiver_count() <= 1) {
            of.swap_remove(entity);
            followers.entities.store(of.len(), Ordering::Release);
        }
    }
}
