//! How the server shares tenants with other instances, or mirrors what is in its database.

use crate::config::{Config, of_redis, settings};
use crate::error::Error;
use std::path::Path;
use std::sync::Arc;
use steadfast_kernel::InstanceId;
use steadfast_runtime::{Fallback, Sharing};
use steadfast_store_redis::Redis;

/// What the engine is told; nothing if it shares nothing. Redis need not be there yet. Beside a database it is a mirror only, which all servers of that database write under one name.
pub(super) fn of_sharing(config: &Config, data: &Path, mirrored_as: Option<&str>) -> Result<Option<Sharing>, Error> {
    let Some(redis) = of_redis(config) else { return Ok(None) };
    let instance = match mirrored_as.or_else(|| config.text(settings::REDIS_INSTANCE)) {
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
        mirror_only: mirrored_as.is_some(),
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
        of_sharing(&Config::load(&Given { set, ..Given::default() }).unwrap(), dir.path(), None).unwrap()
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
        assert_eq!((set.instance.as_str().len(), set.mirror_only), (32, false), "the folder has an id");
    }

    #[test]
    fn beside_a_database_all_servers_mirror_under_one_name() {
        let (dir, set) = (tempfile::tempdir().unwrap(), vec!["redis.url=redis://h".into(), "redis.instance=a".into()]);
        let config = Config::load(&Given { set, ..Given::default() }).unwrap();
        let sharing = of_sharing(&config, dir.path(), Some("database")).unwrap().unwrap();
        assert_eq!((sharing.instance.as_str(), sharing.mirror_only), ("database", true));
    }
}
