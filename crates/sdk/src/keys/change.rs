//! Giving a key more time, or less; and removing it.

use super::KeyStamp;
use crate::{Engine, Error};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::IntoFuture;
use std::time::Duration;
use steadfast_kernel::Revision;

/// A renewal that is being put together. Await it: when it returns, it is durable.
#[must_use = "a key is renewed when this is awaited"]
pub struct RenewKey {
    engine: Engine,
    key: String,
    ttl: Duration,
    owner: Option<String>,
    if_revision: Option<Revision>,
}

/// A removal that is being put together. Await it: when it returns, it is durable.
#[must_use = "a key is deleted when this is awaited"]
pub struct DeleteKey {
    engine: Engine,
    key: String,
    owner: Option<String>,
    if_revision: Option<Revision>,
}

impl Engine {
    /// Gives a key another time to live, from now on: longer or shorter. Its value stays. It is refused if there is no such key, or its time is over: what has expired is not
    /// brought back.
    ///
    /// ```
    /// # use steadfast::{Engine, HOUR, MINUTE};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// # let engine = Engine::in_memory().start().await?;
    /// let put = engine.put("session:42", &"ada").ttl(MINUTE).await?;
    /// let renewed = engine.renew("session:42", HOUR).await?;
    /// assert!(renewed.expires_at > put.expires_at);
    /// # Ok(()) }
    /// ```
    pub fn renew(&self, key: &str, ttl: Duration) -> RenewKey {
        RenewKey { engine: self.clone(), key: key.into(), ttl, owner: None, if_revision: None }
    }

    /// Removes a key. Nobody is called back for that; whoever [watches](Engine::watch) sees it. The revision that is gone.
    ///
    /// ```
    /// # use steadfast::{Engine, MINUTE};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// # let engine = Engine::in_memory().start().await?;
    /// let put = engine.put("session:42", &"ada").ttl(MINUTE).await?;
    /// assert_eq!(engine.delete("session:42").await?, put.revision);
    /// # Ok(()) }
    /// ```
    pub fn delete(&self, key: &str) -> DeleteKey {
        DeleteKey { engine: self.clone(), key: key.into(), owner: None, if_revision: None }
    }
}

impl RenewKey {
    /// Who asks: a key with an owner is renewed by that owner only.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Only if that is its revision now.
    pub fn if_revision(mut self, revision: Revision) -> Self {
        self.if_revision = Some(revision);
        self
    }
}

impl DeleteKey {
    /// Who asks: a key with an owner is deleted by that owner only.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Only if that is its revision now.
    pub fn if_revision(mut self, revision: Revision) -> Self {
        self.if_revision = Some(revision);
        self
    }
}

impl IntoFuture for RenewKey {
    type Output = Result<KeyStamp, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let RenewKey { engine, key, ttl, owner, if_revision } = self;
        async move { Ok(engine.inner.renew_key(&super::name(&key)?, ttl, owner, if_revision).await?.into()) }.boxed()
    }
}

impl IntoFuture for DeleteKey {
    type Output = Result<Revision, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let DeleteKey { engine, key, owner, if_revision } = self;
        async move { Ok(engine.inner.delete_key(&super::name(&key)?, owner, if_revision).await?) }.boxed()
    }
}
