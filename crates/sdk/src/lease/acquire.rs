//! Acquiring a lease.

use super::Lease;
use super::claim::{Claim, Renewed, refused};
use super::keeper::State;
use crate::{Clock, Engine, Error, Feed, Follow};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{EntityId, Event, KeyName, Payload, Revision, Timestamp};
use steadfast_runtime as runtime;

/// How long a lease is held without renewal, unless somebody says otherwise.
const TTL: Duration = Duration::from_secs(30);

/// How soon the feed is followed again after it could not be read.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// A lease that is about to be acquired.
#[must_use = "a lease is acquired by acquire or acquire_within"]
pub struct AcquireLease {
    engine: Engine,
    name: String,
    ttl: Duration,
    owner: Option<String>,
}

impl Engine {
    /// A lease: the right to be the only one, for as long as it is renewed. It is a [key](Engine::get) of that name, so it can be seen, and deleted by an operator who names its
    /// owner.
    ///
    /// ```
    /// # use steadfast::{Engine, Lost, SECOND};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// # let engine = Engine::in_memory().clock(steadfast::VirtualClock::start()).start().await?;
    /// let lease = engine.lease("leader").ttl(10 * SECOND).owner("node-1").acquire().await?;
    /// assert!(lease.is_held());
    /// let refused = engine.lease("leader").owner("node-2").acquire().await.unwrap_err();
    /// assert_eq!(refused.code(), "SF0118");
    /// tokio::select! {
    ///     biased;
    ///     why = lease.lost() => println!("stop at once: {why}"),
    ///     () = async { /* what only the leader does, with lease.fence() */ } => {}
    /// }
    /// lease.release().await?;
    /// assert_eq!(lease.lost().await, Lost::Released);
    /// # Ok(()) }
    /// ```
    pub fn lease(&self, name: &str) -> AcquireLease {
        AcquireLease { engine: self.clone(), name: name.into(), ttl: TTL, owner: None }
    }
}

impl AcquireLease {
    /// For how long it is held without renewal: 30 seconds unless this says otherwise. It is renewed at a third of that.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Who is to hold it, for others to see. Without one a name is made up. The same owner does not get a lease twice: it is refused while it is held, whoever asks.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Takes the lease if nobody holds it.
    ///
    /// # Errors
    /// [`Error::LeaseHeld`] if somebody does. Otherwise if the name or the time cannot be, or the store cannot be used now: it may be that the lease was taken all the same, then
    /// it ends by itself when its time is over.
    pub async fn acquire(self) -> Result<Lease, Error> {
        Claimant::new(self)?.try_once().await
    }

    /// Takes the lease as soon as nobody holds it, and waits that long at most. Those who wait are no queue: who is first is left to chance.
    ///
    /// # Errors
    /// [`Error::LeaseHeld`] if somebody still holds it then. Otherwise as for [`acquire`](AcquireLease::acquire); the store is asked again while there is time.
    ///
    /// # Cancellation
    /// If the future is dropped the lease is not taken, or ends by itself when its time is over.
    pub async fn acquire_within(self, patience: Duration) -> Result<Lease, Error> {
        let mut claimant = Claimant::new(self)?;
        let engine = claimant.claim.engine.clone();
        let (clock, entity) = (Arc::clone(&engine.clock), EntityId::Key(claimant.claim.key.clone()));
        let until = clock.now().saturating_add(patience);
        loop {
            let feed = engine.feed(Follow { after: None, entity: Some(entity.clone()) }).await; // before it is looked at
            let error = match claimant.try_once().await {
                Ok(lease) => return Ok(lease),
                Err(error) => error,
            };
            let left = until.saturating_since(clock.now());
            if left.is_zero() || !(error.is_retryable() || matches!(error, Error::LeaseHeld { .. })) {
                return Err(error);
            }
            tokio::select! {
                biased;
                () = again(feed, &error, &*clock) => {}
                () = clock.sleep(left) => {}
            }
        }
    }
}

/// Ends when it may be worth another try.
async fn again(feed: Result<Feed, Error>, error: &Error, clock: &dyn Clock) {
    match (error.retry_after(), feed) {
        (None, Ok(feed)) => freed(feed, clock).await,
        (pause, _) => clock.sleep(pause.unwrap_or(RETRY_AFTER)).await,
    }
}

/// Ends when the key is gone.
async fn freed(mut feed: Feed, clock: &dyn Clock) {
    loop {
        match feed.next().await {
            Ok(news) => {
                if news
                    .iter()
                    .any(|fed| matches!(fed.entry.event, Event::KeyDeleted { .. } | Event::KeyExpired { .. }))
                {
                    return;
                }
            }
            Err(_) => return clock.sleep(RETRY_AFTER).await, // whether it has stopped shows when it is asked
        }
    }
}

/// Somebody who wants a lease.
struct Claimant {
    claim: Claim,
    /// The store did not say whether the key was put with this token.
    unsure: bool,
}

impl Claimant {
    fn new(wanted: AcquireLease) -> Result<Self, Error> {
        let AcquireLease { engine, name, ttl, owner } = wanted;
        let key = KeyName::new(&name).map_err(runtime::Error::from)?;
        let token = unique(engine.clock.now());
        let owner = owner.unwrap_or_else(|| token.clone());
        Ok(Claimant { claim: Claim { engine, key, owner, ttl, token: told(&token) }, unsure: false })
    }

    async fn try_once(&mut self) -> Result<Lease, Error> {
        let asked_at = self.claim.now();
        let error = match self.claim.put().await {
            Ok(revision) => return Ok(self.lease(asked_at, revision)),
            Err(error) => error,
        };
        if error.is_retryable() {
            self.unsure = true;
        }
        refused(error)?;
        if self.unsure
            && let Some(lease) = self.found().await?
        {
            return Ok(lease);
        }
        self.claim.token = told(&unique(self.claim.now())); // the next try is another claim
        self.unsure = false;
        let row = self.claim.engine.inner.key(&self.claim.key).await?;
        Err(Error::LeaseHeld { name: self.claim.key.to_string(), owner: row.and_then(|row| row.held.owner) })
    }

    /// The lease, if the key was put by an earlier try.
    async fn found(&self) -> Result<Option<Lease>, Error> {
        let Some(revision) = self.claim.ours().await? else { return Ok(None) };
        let asked_at = self.claim.now();
        match self.claim.renew(revision).await? {
            Renewed::To(revision) => Ok(Some(self.lease(asked_at, revision))),
            Renewed::Gone | Renewed::Taken => Ok(None),
        }
    }

    fn lease(&self, asked_at: Timestamp, revision: Revision) -> Lease {
        let until = asked_at.saturating_add(self.claim.ttl);
        Lease::new(self.claim.clone(), revision, State { until, revision, lost: None })
    }
}

fn told(token: &str) -> Payload {
    Payload::json(format!("\"{token}\""))
}

/// A name that nobody else has.
fn unique(now: Timestamp) -> String {
    let micros = u64::try_from(now.as_micros()).unwrap_or_default();
    let nanos = u32::try_from(micros % 1_000_000).unwrap_or_default() * 1000;
    uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, micros / 1_000_000, nanos)).to_string()
}
