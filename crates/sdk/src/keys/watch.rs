//! Watching keys: what becomes of them, in its order.

use super::HeldKey;
use crate::{Engine, Error, Fed, Feed, Follow, Place, Position};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Attempt, EntityId, Event, Failure, KeyName, Revision, RunId, Timestamp, check_prefix};
use steadfast_runtime as runtime;

/// A watch that is being put together. Await it.
#[must_use = "nothing is watched until this is awaited"]
pub struct WatchKeys {
    engine: Engine,
    prefix: String,
    after: Option<Position>,
}

/// Somebody who watches keys.
pub struct Watch {
    feed: Feed,
    prefix: String,
    /// What was read and not yet given out.
    read: VecDeque<Arc<Fed>>,
    position: Position,
}

/// Something that became of a key.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Watched {
    /// Its place in the order of writing.
    pub place: Place,
    /// The key.
    pub key: KeyName,
    /// When it was written.
    pub at: Timestamp,
    /// What.
    pub change: Change,
}

/// What became of a key.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// It was put.
    Put(Box<HeldKey>),
    /// It was given another time.
    Renewed {
        /// Which change of it.
        revision: Revision,
        /// For how long it lives from there on.
        ttl: Duration,
        /// Until then.
        expires_at: Timestamp,
    },
    /// It was deleted.
    Deleted {
        /// The revision that is gone.
        revision: Revision,
        /// The directory that it was deleted with.
        with: Option<KeyName>,
    },
    /// It has expired.
    Expired {
        /// The revision that is gone.
        revision: Revision,
        /// When its time was over.
        expired_at: Timestamp,
        /// The directory that it expired with.
        with: Option<KeyName>,
    },
    /// Its expiry was told to who was to be told.
    Told {
        /// The revision that expired.
        revision: Revision,
        /// The attempt that worked.
        attempt: Attempt,
        /// The run that was started for it.
        run: Option<RunId>,
    },
    /// Its expiry could not be told, and it will be tried again.
    NotTold {
        /// The revision that expired.
        revision: Revision,
        /// The attempt that failed.
        attempt: Attempt,
        /// When the next one is due.
        next_at: Timestamp,
        /// Why.
        failure: Failure,
    },
    /// Its expiry could not be told, and is a dead letter now.
    DeadLetter {
        /// The id of the letter.
        letter: String,
        /// Why.
        failure: Failure,
    },
    /// Somebody has a dead letter told again.
    Redriven {
        /// The id of the letter.
        letter: String,
    },
    /// Somebody has thrown a dead letter away.
    Dropped {
        /// The id of the letter.
        letter: String,
    },
}

impl Engine {
    /// Watches what becomes of the keys whose names begin so, from now on or [after a place](WatchKeys::after).
    ///
    /// Nothing is queued for who watches, and nobody waits for it. Each change comes once, in the order of writing. Of keys that are gone the journal is kept for
    /// [a while](crate::Config::keys_kept_for), and of keys that are changed again and again the last changes: whoever comes back later than that has to
    /// [list](Engine::keys) them.
    ///
    /// ```
    /// # use steadfast::{Change, Engine, MINUTE};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// # let engine = Engine::in_memory().clock(steadfast::VirtualClock::start()).start().await?;
    /// let mut watch = engine.watch("price:").await?;
    /// engine.put("price:apple", &3).ttl(MINUTE).await?;
    /// assert!(matches!(watch.next().await?.change, Change::Put(held) if held.value::<u32>()? == 3));
    /// assert!(matches!(watch.next().await?.change, Change::Expired { .. }));
    /// let place = watch.position(); // keep it, and come back
    /// let mut watch = engine.watch("price:").after(place).await?;
    /// # Ok(()) }
    /// ```
    pub fn watch(&self, prefix: &str) -> WatchKeys {
        WatchKeys { engine: self.clone(), prefix: prefix.into(), after: None }
    }
}

impl WatchKeys {
    /// Begins after that position: the [position](Watch::position) that an earlier watch had, or the default for all that is still known.
    pub fn after(mut self, position: Position) -> Self {
        self.after = Some(position);
        self
    }

    async fn begin(self) -> Result<Watch, Error> {
        check_prefix(&self.prefix).map_err(runtime::Error::from)?;
        let feed = self.engine.feed(Follow { after: self.after, entity: None }).await?;
        let position = feed.position().clone();
        Ok(Watch { feed, prefix: self.prefix, read: VecDeque::new(), position })
    }
}

impl IntoFuture for WatchKeys {
    type Output = Result<Watch, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.begin().boxed()
    }
}

impl Watch {
    /// Up to what was given out last; a watch that begins after it goes on there.
    pub fn position(&self) -> Position {
        self.position.clone()
    }

    /// What became of a key next; waits until there is something.
    ///
    /// # Errors
    /// If the store cannot be read, or the engine stops. After an error that [may pass](Error::is_retryable) it can be asked again.
    ///
    /// # Cancellation
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Watched, Error> {
        loop {
            while let Some(fed) = self.read.pop_front() {
                self.position.advance(fed.place);
                if let Some(watched) = watched(&fed, &self.prefix) {
                    return Ok(watched);
                }
            }
            self.position.join(self.feed.position());
            self.read = self.feed.next().await?.into();
        }
    }
}

fn watched(fed: &Fed, prefix: &str) -> Option<Watched> {
    let EntityId::Key(key) = &fed.entity else { return None };
    let change = if key.as_str().starts_with(prefix) { change(key, fed)? } else { return None };
    Some(Watched { place: fed.place, key: key.clone(), at: fed.entry.at, change })
}

fn change(key: &KeyName, fed: &Fed) -> Option<Change> {
    let letter = |seq| format!("{}.{seq}", fed.entity);
    Some(match fed.entry.event.clone() {
        Event::KeyPut(held) => Change::Put(Box::new(HeldKey::new(key.clone(), *held))),
        Event::KeyRenewed { revision, ttl, expires_at, .. } => Change::Renewed { revision, ttl, expires_at },
        Event::KeyDeleted { revision, with } => Change::Deleted { revision, with },
        Event::KeyExpired { revision, ended_at, with, .. } => Change::Expired { revision, expired_at: ended_at, with },
        Event::CallbackSettled { revision, attempt, run } => Change::Told { revision, attempt, run },
        Event::CallbackFailed { revision, attempt, due_at, failure, .. } => Change::NotTold { revision, attempt, next_at: due_at, failure },
        Event::LetterAdded(about) => Change::DeadLetter { letter: letter(fed.entry.seq), failure: about.failure },
        Event::LetterRedriven { letter: seq, .. } => Change::Redriven { letter: letter(seq) },
        Event::LetterDropped { letter: seq, .. } => Change::Dropped { letter: letter(seq) },
        _ => return None,
    })
}
