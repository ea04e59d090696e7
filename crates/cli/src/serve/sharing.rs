//! How the server shares tenants with other instances.

use crate::config::{Config, of_redis, settings};
use crate::error::Error;
use std::path::Path;
use std::sync::Arc;
use steadfast_kernel::InstanceId;
use steadfast_runtime::{Fallback, Sharing};
use steadfast_store_redis::Redis;

/// What the engine is told; nothing if it shares nothing. Redis need not be there yet.
pub(super) fn of_sharing(config: &Config, data: &Path) -> Result<Option<Sharing>, Error> {
    let Some(redis) = of_redis(config) else { return Ok(None) };
    let instance = match config.text(settings::REDIS_INSTANCE) {
        Some(name) => InstanceId::new(name).map_err(|error| Error::Usage(format!("redis.instance: {error}")))?,
        None => steadfast_store_embedded::instance(data).map_err(|error| super::with_code(&error, error.code()))?,
    };
    let (gone_after, kept_for) = (redis.heartbeat_ttl, redis.ttl);
    let commons = Redis::open(redis).map_err(|error| Error::Usage(format!("redis.{error}")))?;
    let usual = Sharing::new(Arc::new(commons), instance);
    Ok(Some(Sharing {
        gone_after,
        kept_for,
        fallback: config.text(settings::LOCKS_FALLBACK).and_then(Fallback::parse).unwrap_or_default(),
        lease: config.time(settings::LOCKS_LEASE).unwrap_or(usual.lease),
        patience: config.time(settings::REDIS_PATIENCE).unwrap_or(usual.patience),
        ..usual
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Given;
    use std::time::Duration;

    fn sharing(set: &[&str]) -> Option<Sharing> {
        let dir = tempfile::tempdir().unwrap();
        let set = set.iter().map(|text| (*text).into()).collect();
        of_sharing(&Config::load(&Given { set, ..Given::default() }).unwrap(), dir.path()).unwrap()
    }

    #[test]
    fn settings_of_redis_and_locks_reach_the_engine() {
        assert!(sharing(&[]).is_none());
        let usual = sharing(&["redis.url=redis://h", "redis.instance=a"]).unwrap();
        let default = Sharing::new(Arc::clone(&usual.commons), usual.instance.clone());
        let times = |of: &Sharing| (of.gone_after, of.lease, of.patience, of.fallback);
        assert_eq!((times(&usual), usual.instance.as_str()), (times(&default), "a"));
        let set =
            sharing(&["redis.url=redis://h", "redis.heartbeat_ttl=3s", "redis.patience=4s", "locks.fallback=refuse", "locks.lease=5s"])
                .unwrap();
        let seconds = Duration::from_secs;
        assert_eq!(times(&set), (seconds(3), seconds(5), seconds(4), Fallback::Refuse));
        assert_eq!(set.instance.as_str().len(), 32, "the folder has an id");
    }
}
