//! The settings of a PostgreSQL database, put together and checked as a whole.

use super::{Config, Origin, settings};
use std::time::Duration;
use steadfast_store_postgres::{Settings, SettingsError};

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
    let postgres = of_postgres(config)?;
    let SettingsError { field, why } = postgres.check().err()?;
    let key = format!("postgres.{field}");
    let origin = settings::of_key(&key).map_or(Origin::Default, |setting| config.origin(setting).clone());
    Some(format!("{origin}: {key}: {why}"))
}
