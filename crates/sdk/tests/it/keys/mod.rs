//! Keys end to end: they expire, and who is to be told is told, at least once, by the leader only.

mod crashes;
mod directories;
mod expiry;
mod faults;
mod handlers;
mod journals;
mod leases;
mod letters;
mod reads;
mod roles;
mod traps;
mod watching;

use crate::support::engine;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Callbacks, Config, Engine, EngineBuilder, Expired, Failure, HOUR, Jitter, Policy, SECOND, Watch, Watched};
use tokio::time::Instant;

/// What handlers were told, and when; it outlives engines.
#[derive(Clone)]
pub(crate) struct Told {
    since: Instant,
    calls: Arc<Mutex<Vec<(Duration, Expired)>>>,
}

impl Told {
    pub(crate) fn new() -> Self {
        Told { since: Instant::now(), calls: Arc::default() }
    }

    fn note(&self, expired: Expired) {
        self.calls.lock().unwrap().push((self.since.elapsed(), expired));
    }

    /// A handler that notes what it is told and succeeds.
    pub(crate) fn handler(&self) -> impl Fn(Expired) -> Ready<Result<(), Failure>> + Send + Sync + 'static {
        self.answering(|_| Ok(()))
    }

    /// A handler that notes what it is told and answers so.
    pub(crate) fn answering(
        &self,
        answer: impl Fn(&Expired) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> impl Fn(Expired) -> Ready<Result<(), Failure>> + Send + Sync + 'static {
        let told = self.clone();
        move |expired| {
            told.note(expired.clone());
            ready(answer(&expired))
        }
    }

    pub(crate) fn all(&self) -> Vec<(Duration, Expired)> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// Which keys, with the number of the attempt.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().iter().map(|(_, expired)| format!("{} a{}", expired.key, expired.attempt)).collect()
    }

    /// When that key was told of, each time.
    pub(crate) fn times(&self, key: &str) -> Vec<Duration> {
        self.all()
            .iter()
            .filter(|(_, expired)| expired.key.as_str() == key)
            .map(|(time, _)| *time)
            .collect()
    }
}

/// A second between attempts, exactly.
fn config() -> Config {
    let policy = Policy::constant(SECOND).max_attempts(20).jitter(Jitter::None);
    Config { callbacks: Callbacks { policy, ..Callbacks::default() }, ..Config::default() }
}

/// An engine on that store whose handler for all keys is this one.
fn told_by(store: &Memory, handler: impl Fn(Expired) -> Ready<Result<(), Failure>> + Send + Sync + 'static) -> EngineBuilder {
    engine(store).config(config()).on_expire("", handler)
}

/// Fails the first so many attempts of each expiry.
fn down_for(attempts: u32) -> impl Fn(&Expired) -> Result<(), Failure> + Send + Sync + 'static {
    move |expired| if expired.attempt <= attempts { Err(Failure::transient("down")) } else { Ok(()) }
}

/// Lets time pass, and everything happen that falls into it.
async fn pass(time: Duration) {
    tokio::time::sleep(time + Duration::from_millis(2)).await;
}

/// What became of a key next; it has an hour of virtual time for it.
async fn seen_next(watch: &mut Watch) -> Watched {
    let next = tokio::time::timeout(HOUR, watch.next()).await;
    next.expect("nothing more became of the keys").unwrap()
}

async fn put(engine: &Engine, key: &str, ttl: Duration) -> u64 {
    engine.put(key, &key).ttl(ttl).await.unwrap().revision
}
