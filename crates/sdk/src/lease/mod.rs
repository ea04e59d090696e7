//! Leases: somebody is the only one, for as long as that is certain.
//!
//! A lease is a key that only its holder renews. `acquire.rs` takes it, `keeper.rs` renews it and tells of its loss, and `claim.rs` is what both know of the key.

mod acquire;
mod claim;
mod keeper;

pub use acquire::AcquireLease;

use crate::Error;
use claim::Claim;
use keeper::{Keeper, State};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use steadfast_kernel::{Revision, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A lease that was acquired. It is renewed in the background, at a third of its time. Clones are the same one; when the last is gone it is not renewed any more, and it is
/// released if that is possible.
#[derive(Clone)]
pub struct Lease(Arc<Holding>);

/// Why a lease is not held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// It could not be renewed in time: its time is over, or soon is.
    Expired,
    /// Its key was deleted or taken by somebody else.
    Taken,
    /// The engine has stopped.
    Stopped,
    /// It was released here, or its last handle is gone.
    Released,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lost::Expired => "it could not be renewed in time",
            Lost::Taken => "it was deleted, or taken by somebody else",
            Lost::Stopped => "the engine has stopped",
            Lost::Released => "it was released",
        })
    }
}

/// What is shared by the handles of a lease. When it is dropped, nobody has one.
struct Holding {
    claim: Arc<Claim>,
    fence: Revision,
    state: Arc<watch::Sender<State>>,
    keeper: JoinHandle<()>,
}

impl Lease {
    fn new(claim: Claim, fence: Revision, state: State) -> Self {
        let (claim, state) = (Arc::new(claim), Arc::new(watch::Sender::new(state)));
        let keeper = tokio::spawn(Keeper { claim: Arc::clone(&claim), state: Arc::clone(&state) }.run());
        Lease(Arc::new(Holding { claim, fence, state, keeper }))
    }

    /// The name of the lease, which is the name of its key.
    pub fn name(&self) -> &str {
        self.0.claim.key.as_str()
    }

    /// Who holds it.
    pub fn owner(&self) -> &str {
        &self.0.claim.owner
    }

    /// A number that is higher than that of everybody who held the lease before: the revision of its key when it was acquired. Send it along with what is done under the lease,
    /// and have the other side refuse a lower number than it has seen: that also stops a holder who was asleep when its time was over.
    pub fn fence(&self) -> Revision {
        self.0.fence
    }

    /// Whether it is held, for certain: it is not lost, and the time since the last renewal that worked was *asked for* is less than its time to live. So it is false before
    /// anybody else can have it. Only a person who deletes its key, naming the owner, can take it away before that; the next renewal finds out.
    pub fn is_held(&self) -> bool {
        self.0.state.borrow().is_held(self.0.claim.now())
    }

    /// Until when it is held for certain, unless it is renewed.
    pub fn held_until(&self) -> Timestamp {
        self.0.state.borrow().until
    }

    /// Waits until it is lost, and says why; at once if it is lost already. A lease is lost once: everybody who waits hears the same, once. It keeps no lease alive.
    pub fn lost(&self) -> impl Future<Output = Lost> + Send + Sync + 'static {
        let mut state = self.0.state.subscribe();
        async move {
            match state.wait_for(|state| state.lost.is_some()).await {
                Ok(state) => state.lost.unwrap_or(Lost::Released),
                Err(_) => Lost::Released, // nobody has it any more
            }
        }
    }

    /// Gives it back, so that somebody else can have it at once. From the call on it is not held. It is no error if it was lost meanwhile.
    ///
    /// # Errors
    /// If that cannot be written now. It is not renewed any more, so it ends when its time is over.
    pub async fn release(&self) -> Result<(), Error> {
        if self.0.give_up() { self.0.claim.delete(self.0.revision()).await } else { Ok(()) }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Lease");
        shown.field("name", &self.name()).field("owner", &self.owner());
        shown.field("fence", &self.fence()).field("is_held", &self.is_held()).finish()
    }
}

impl Holding {
    /// Renews no more. True if there is something to be released: it was not lost before.
    fn give_up(&self) -> bool {
        self.keeper.abort();
        self.state.send_if_modified(|state| state.lose(Lost::Released))
    }

    fn revision(&self) -> Revision {
        self.state.borrow().revision
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let (claim, revision) = (Arc::clone(&self.claim), self.revision());
        if self.give_up()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { claim.delete(revision).await });
        }
    }
}
