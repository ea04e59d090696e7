//! Giving a key a value.

use super::KeyStamp;
use crate::{Engine, Error};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::future::IntoFuture;
use std::time::Duration;
use steadfast_kernel::{Payload, Revision, Target, WorkflowName};
use steadfast_runtime as runtime;

/// A put that is being put together. Await it: when it returns, the key is durable.
#[must_use = "a key is put when this is awaited"]
pub struct PutKey {
    engine: Engine,
    key: String,
    value: Result<Payload, serde_json::Error>,
    ttl: Duration,
    owner: Option<String>,
    directory: bool,
    on_expire: Result<Option<Target>, Error>,
    if_revision: Option<Revision>,
}

impl Engine {
    /// Gives a key a value, whether or not there is one. It needs a [time to live](PutKey::ttl). Everything of an earlier key of that name is replaced, its time included.
    ///
    /// ```
    /// # use steadfast::{Engine, MINUTE};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// # let engine = Engine::in_memory().start().await?;
    /// let first = engine.put("session:42", &"ada").ttl(30 * MINUTE).owner("web-1").await?;
    /// let refused = engine.put("session:42", &"bob").ttl(MINUTE).await.unwrap_err();
    /// assert_eq!(refused.code(), "SF0118", "it belongs to web-1");
    /// let second = engine.put("session:42", &"bob").ttl(MINUTE).owner("web-1").if_revision(first.revision).await?;
    /// assert!(second.revision > first.revision);
    /// # Ok(()) }
    /// ```
    pub fn put<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> PutKey {
        PutKey {
            engine: self.clone(),
            key: key.into(),
            value: serde_json::to_vec(value).map(Payload::json),
            ttl: Duration::ZERO,
            owner: None,
            directory: false,
            on_expire: Ok(None),
            if_revision: None,
        }
    }
}

impl PutKey {
    /// For how long it lives from now on. A time of nothing is refused; one that is longer than the calendar lasts as long as the calendar.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Who may change, renew or delete it: nobody who does not name this owner. Without one, everybody may.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Has the keys below it, `KEY/…`, end with it: they expire when it expires, and are deleted when it is deleted. They end first; then its own end is told.
    pub fn directory(mut self) -> Self {
        self.directory = true;
        self
    }

    /// Has an address called when it expires. The engine has to be [able to](crate::EngineBuilder::caller).
    pub fn call(mut self, url: impl Into<String>) -> Self {
        self.on_expire = Ok(Some(Target::Url(url.into())));
        self
    }

    /// Has a run of a registered workflow started when it expires: one run for each expiry. Its id is `expired/KEY/REVISION`; where the key has what ids of runs do not have,
    /// its digest stands there as well.
    pub fn start<T: Serialize + ?Sized>(mut self, workflow: &str, input: &T) -> Self {
        self.on_expire = start(workflow, input).map(Some);
        self
    }

    /// Only if that is its revision now. It is refused otherwise, with `SF0119`.
    pub fn if_revision(mut self, revision: Revision) -> Self {
        self.if_revision = Some(revision);
        self
    }

    /// Only if there is no such key, or its time is over.
    pub fn if_absent(self) -> Self {
        self.if_revision(0)
    }

    async fn send(self) -> Result<KeyStamp, Error> {
        let key = super::name(&self.key)?;
        let value = self.value.map_err(|source| Error::Unreadable { what: format!("the value of key {key}"), source })?;
        let put = runtime::Put {
            value,
            ttl: self.ttl,
            owner: self.owner,
            directory: self.directory,
            on_expire: self.on_expire?,
            if_revision: self.if_revision,
        };
        Ok(self.engine.inner.put_key(&key, put).await?.into())
    }
}

fn start<T: Serialize + ?Sized>(workflow: &str, input: &T) -> Result<Target, Error> {
    let name = WorkflowName::new(workflow).map_err(runtime::Error::from)?;
    let unreadable = |source| Error::Unreadable { what: format!("the input of {workflow}"), source };
    let input = serde_json::to_vec(input).map(Payload::json).map_err(unreadable)?;
    Ok(Target::StartRun { workflow: name, input })
}

impl IntoFuture for PutKey {
    type Output = Result<KeyStamp, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}
