//! Tenants that several instances share, each with a store of its own.

use crate::{Engine, EngineBuilder};
use steadfast_kernel::InstanceId;
use steadfast_runtime as runtime;

impl EngineBuilder {
    /// Says who this instance is. It has to be the same after a restart on the same data, and no other may have it; the embedded store keeps one in its folder, which is used if
    /// nothing is said.
    pub fn instance(mut self, id: &str) -> Self {
        match InstanceId::new(id) {
            Ok(id) => self.instance = Some(id),
            Err(invalid) => self.wrong = Some(invalid.into()),
        }
        self
    }

    /// Shares tenants with other instances, as it says.
    pub fn sharing(mut self, sharing: runtime::Sharing) -> Self {
        self.inner.sharing = Some(sharing);
        self
    }

    /// Shares tenants with other instances through Redis: a tenant's lock is one for all of them, any of them shows every plan and task, and a task whose instance is gone can
    /// be retried on another one. The engine starts while Redis is away.
    #[cfg(feature = "redis")]
    pub fn redis(self, settings: steadfast_store_redis::Settings) -> Self {
        self.redis_with(settings, |_| {})
    }

    /// The same, with something changed about how it is shared.
    #[cfg(feature = "redis")]
    pub fn redis_with(mut self, settings: steadfast_store_redis::Settings, change: impl FnOnce(&mut runtime::Sharing)) -> Self {
        let wrong = |why: String| Some(runtime::Error::InvalidSetting(why));
        let (gone_after, kept_for) = (settings.heartbeat_ttl, settings.ttl);
        match (steadfast_store_redis::Redis::open(settings), self.instance.clone()) {
            (Ok(redis), Some(instance)) => {
                let mut sharing = runtime::Sharing { gone_after, kept_for, ..runtime::Sharing::new(std::sync::Arc::new(redis), instance) };
                change(&mut sharing);
                self.inner.sharing = Some(sharing);
            }
            (Ok(_), None) => {
                self.wrong = wrong("this store does not say who this instance is: say it by `instance`, before `redis`".into())
            }
            (Err(error), _) => self.wrong = wrong(format!("the settings of Redis cannot be used: {error}")),
        }
        self
    }
}

impl Engine {
    /// How this instance gets on with what it shares; nothing if it shares nothing.
    pub fn sharing(&self) -> Option<runtime::SharingHealth> {
        self.inner.sharing()
    }

    /// Waits until other instances could know everything that is known here now.
    pub async fn shared(&self) {
        self.inner.shared().await;
    }
}
