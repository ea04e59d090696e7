//! The settings of what instances share, put together and checked as a whole.

use super::{Config, Origin, settings};
use std::path::Path;
use std::time::Duration;
use steadfast_store_redis::{Settings, SettingsError};

/// The file of the data folder that keeps who this instance is.
const INSTANCE_FILE: &str = "steadfast.instance";

/// How Redis is spoken to; nothing if nothing is shared.
pub(crate) fn of_redis(config: &Config) -> Option<Settings> {
    let time = |setting| config.time(setting).unwrap_or(Duration::ZERO); // settings of this kind always have a value
    let url = config.text(settings::REDIS_URL)?;
    Some(Settings {
        password_file: config.path(settings::REDIS_PASSWORD_FILE),
        sentinel_password_file: config.path(settings::REDIS_SENTINEL_PASSWORD_FILE),
        ca_file: config.path(settings::REDIS_CA_FILE),
        prefix: config.text(settings::REDIS_PREFIX).unwrap_or_default().into(),
        ttl: time(settings::REDIS_TTL),
        heartbeat_ttl: time(settings::REDIS_HEARTBEAT_TTL),
        connect_timeout: time(settings::REDIS_CONNECT_TIMEOUT),
        response_timeout: time(settings::REDIS_RESPONSE_TIMEOUT),
        ..Settings::new(url)
    })
}

/// What does not fit together, with where it stands.
pub(super) fn wrong(config: &Config) -> Option<String> {
    let SettingsError { field, why } = of_redis(config)?.check().err()?;
    let key = if field == "password" { "redis.password_file".into() } else { format!("redis.{field}") };
    let origin = settings::of_key(&key).map_or(Origin::Default, |setting| config.origin(setting).clone());
    Some(format!("{origin}: {key}: {why}"))
}

/// Who the data folder says that this instance is, and where that stands; nothing before its first start. Nothing is made.
pub(crate) fn instance_in(data: &Path) -> Option<(String, Origin)> {
    let file = data.join(INSTANCE_FILE);
    let id = std::fs::read_to_string(&file).ok()?.trim().to_owned();
    Some((id, Origin::File(file, 1)))
}
