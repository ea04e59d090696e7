//! Code of this process that is told of expiries.

use crate::{Engine, EngineBuilder, Error};
use futures_util::FutureExt;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::sync::Arc;
use steadfast_kernel::{Attempt, Failure, KeyName, Payload, Revision, Timestamp, check_prefix};
use steadfast_runtime as runtime;

/// What a handler is told.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Expired {
    /// The key.
    pub key: KeyName,
    /// The revision that expired.
    pub revision: Revision,
    /// The value that it had, as it came; [`value`](Expired::value) reads it.
    pub payload: Payload,
    /// The owner that it had.
    pub owner: Option<String>,
    /// When its time was over.
    pub expired_at: Timestamp,
    /// Which attempt to tell of it this is, from 1.
    pub attempt: Attempt,
}

impl Expired {
    /// The same for all attempts to tell of this expiry, and for no other: `KEY/REVISION`. A handler that remembers it does its work once.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.key, self.revision)
    }

    /// The value that the key had.
    ///
    /// # Errors
    /// A poison failure if it is something else than a `T`: trying again would not help, so it goes to the dead letters at once.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let kind = std::any::type_name::<T>();
        serde_json::from_slice(&self.payload.bytes)
            .map_err(|_| Failure::poison(format!("the value of key {} cannot be read as {kind}", self.key)))
    }
}

impl From<runtime::Expired> for Expired {
    fn from(call: runtime::Expired) -> Self {
        let runtime::Expired { key, revision, value: payload, owner, expired_at, attempt } = call;
        Expired { key, revision, payload, owner, expired_at, attempt }
    }
}

impl Engine {
    /// Has code of this process told of the expiry of keys whose names begin so, unless they say who else is to be told. Of several prefixes that fit, the longest counts; a
    /// second handler for the same prefix takes the place of the first.
    ///
    /// It is told at least once: again by [policy](crate::Callbacks), also after a restart, until it has returned `Ok`. An attempt that takes too long is called off and counts
    /// as failed, as does one that panics. What fails for good becomes a [dead letter](Engine::letters). Expiries are told side by side.
    ///
    /// Keys that were put while there was a handler wait for one when they expire. Put it on the [builder](EngineBuilder::on_expire), so that it is there before anything expires.
    /// One that has a clone of the engine keeps it running, until that is [shut down](Engine::shutdown).
    ///
    /// ```
    /// # use steadfast::{Engine, Expired, Failure, MINUTE};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// # let engine = Engine::in_memory().clock(steadfast::VirtualClock::start()).start().await?;
    /// # let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    /// engine.on_expire("session:", move |expired: Expired| {
    ///     let tell = tell.clone();
    ///     async move {
    ///         let user: String = expired.value()?;
    ///         tell.send(format!("{user} is logged out"))?;
    ///         Ok(())
    ///     }
    /// })?;
    /// engine.put("session:42", &"ada").ttl(30 * MINUTE).await?;
    /// assert_eq!(told.recv().await.unwrap(), "ada is logged out");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If no key begins so.
    pub fn on_expire<H, F>(&self, prefix: &str, handler: H) -> Result<(), Error>
    where
        H: Fn(Expired) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        Ok(self.inner.on_expire(prefix, erased(handler)).map_err(runtime::Error::from)?)
    }
}

impl EngineBuilder {
    /// Has code of this process told of expiries, from the first one on; see [`Engine::on_expire`].
    pub fn on_expire<H, F>(mut self, prefix: &str, handler: H) -> Self
    where
        H: Fn(Expired) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        match check_prefix(prefix) {
            Ok(()) => self.inner.handlers.insert(prefix, erased(handler)),
            Err(invalid) => self.wrong = Some(invalid.into()),
        }
        self
    }

    /// Sets who can reach addresses, so that keys can [have them called](crate::PutKey::call).
    pub fn caller(mut self, caller: impl runtime::Caller) -> Self {
        self.inner.caller = Some(Arc::new(caller));
        self
    }
}

fn erased<H, F>(handler: H) -> runtime::Handler
where
    H: Fn(Expired) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    Arc::new(move |call: runtime::Expired| handler(call.into()).boxed())
}
