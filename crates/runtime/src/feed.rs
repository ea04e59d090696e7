//! The change feed: what is written, for those who follow it.
//!
//! Nothing is queued for anybody. A follower remembers its place, reads on from there in the store, and is woken when there may be more; one that is slow only falls
//! behind. Who follows one entity is woken when that entity was written; those who follow all share what was read last, so that many of them cost one read.
//!
//! Tested by `crates/sdk/tests/it/feed.rs`.
//! Tested by `crates/sdk/tests/it/cluster/feed.rs`.

mod ends;
mod followers;
mod tail;

pub(crate) use followers::Followers;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::error::Error;
use crate::metrics;
use followers::Watch;
use std::sync::{Arc, Weak};
use steadfast_kernel::{EntityId, Entry, PlanId};
use steadfast_store::Store;
pub use steadfast_store::{Place, Position};

/// How many entries are read at once.
const PAGE: usize = 500;

/// Where to begin, and what of.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    /// The position after which it begins: the default is the very beginning; nothing is from now on.
    pub after: Option<Position>,
    /// Only what is written about that.
    pub entity: Option<EntityId>,
}

/// Something that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Fed {
    /// Its place in the order of writing.
    pub place: Place,
    /// Whose journal it stands in.
    pub entity: EntityId,
    /// Whose work the run is; nothing for what is not a run.
    pub tenant: Option<String>,
    /// The plan that the run is a task of; nothing if it is none.
    pub plan: Option<PlanId>,
    /// It is the end of a task that was being rolled back.
    pub rolled_back: bool,
    /// The entry.
    pub entry: Entry,
}

/// A follower of what is written.
pub struct Feed {
    store: Weak<dyn Store>,
    followers: Weak<Followers>,
    watch: Watch,
    entity: Option<EntityId>,
    after: Position,
    last: Position,
    clock: Arc<dyn Clock>,
}

impl Engine {
    /// Follows what is written.
    ///
    /// # Errors
    /// If the store cannot be read, or the engine has stopped.
    pub async fn feed(&self, follow: Follow) -> Result<Feed, Error> {
        let followers = self.followers()?;
        let watch = followers.watch(follow.entity.as_ref()); // before its place is known, so that nothing falls in between
        let last = self.store()?.last().await.map_err(Error::from_store)?;
        let after = follow.after.unwrap_or_else(|| last.clone());
        Ok(Feed {
            store: self.weak_store(),
            followers: Arc::downgrade(&followers),
            watch,
            entity: follow.entity,
            after,
            last,
            clock: self.clock(),
        })
    }
}

impl Feed {
    /// How far it has come.
    pub fn position(&self) -> &Position {
        &self.after
    }

    /// The end when it began to follow. A position that is not [included](Position::includes) in it was given by another store.
    pub fn last(&self) -> &Position {
        &self.last
    }

    /// What comes next, at least one entry; waits until there is something.
    ///
    /// # Errors
    /// If the store cannot be read, or the engine stops. After [`Error::Unavailable`] it may be asked again.
    ///
    /// # Cancellation
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Vec<Arc<Fed>>, Error> {
        let mut waited = false;
        loop {
            let (Some(store), Some(followers)) = (self.store.upgrade(), self.followers.upgrade()) else { return Err(Error::Stopped) };
            self.watch.mark();
            let page = match &self.entity {
                Some(entity) => tail::read(&*store, &self.after, Some(entity)).await?,
                None => followers.tail.read(&*store, &self.after).await?,
            };
            drop((store, followers)); // who only waits keeps nothing open
            self.after.join(&page.upto);
            if let Some(last) = page.items.last() {
                if waited {
                    metrics::fed(self.clock.now().saturating_since(last.entry.at)); // else it is behind on purpose
                }
                return Ok(page.items);
            }
            waited = !page.more;
            if waited && !self.watch.changed().await {
                return Err(Error::Stopped);
            }
        }
    }
}
