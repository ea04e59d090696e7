//! The settings of a PostgreSQL database, put together and checked as a whole.

use super::{Config, Origin, settings};
use std::time::Duration;
use steadfast_store_postgres::{Settings, SettingsError};

/// The shortest lease.
const LEASE_MIN: Duration = Duration::from_secs(2);

/// How long a server on a shared database may be silent before others take over its work.
pub(crate) fn lease(config: &Config) -> Duration {
    config.time(settings::CLUSTER_LEASE).unwrap_or(LEASE_MIN) // it always has a value
}

/// How PostgreSQL is spoken to; nothing if the store is in the data folder.
pub(crate) fn of_postgres(config: &Config) -> Option<Settings> {
    let time = |setting| config.time(setting).unwrap_or(Duration::ZERO); // settings of this kind always have a value
    let url = config.text(settings::POSTGRES_URL)?;
    Some(Settings {
        password_file: config.path(settings::POSTGRES_PASSWORD_FILE),
        ca_file: config.path(settings::POSTGRES_CA_FILE),
        certificate_file: config.path(settings::POSTGRES_CERTIFICATE_FILE),
        key_file: config.path(settings::POSTGRES_KEY_FILE),
        connections_max: config.number(settings::POSTGRES_CONNECTIONS_MAX),
        connect_timeout: time(settings::POSTGRES_CONNECT_TIMEOUT),
        statement_timeout: time(settings::POSTGRES_STATEMENT_TIMEOUT),
        shards: u32::try_from(config.number(settings::POSTGRES_SHARDS)).unwrap_or(u32::MAX),
        ..Settings::new(url)
    })
}

/// What does not fit together, with where it stands.
pub(super) fn wrong(config: &Config) -> Option<String> {
    let (key, why) = match of_postgres(config)?.check() {
        Err(SettingsError { field, why }) => (format!("postgres.{field}"), why),
        Ok(()) if lease(config) < LEASE_MIN => {
            let why = format!("use {LEASE_MIN:?} or more: a third of it has to be enough for the database to answer");
            (settings::CLUSTER_LEASE.key.into(), why)
        }
        Ok(()) => return None,
    };
    let origin = settings::of_key(&key).map_or(Origin::Default, |setting| config.origin(setting).clone());
    Some(format!("{origin}: {key}: {why}"))
}
