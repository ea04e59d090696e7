//! From the settings to what the engine and the server are told.

use crate::config::{Config, settings};
use crate::error::Error;
use std::net::SocketAddr;
use steadfast_runtime::Retention;

pub(super) fn of_engine(config: &Config) -> steadfast_runtime::Config {
    let usual = steadfast_runtime::Config::default();
    steadfast_runtime::Config {
        requests_max: config.number(settings::REQUESTS_MAX),
        runs_live_max: config.number(settings::RUNS_LIVE_MAX),
        runs_idle_max: config.number(settings::RUNS_IDLE_MAX),
        snapshot_every: config.number(settings::SNAPSHOT_EVERY),
        payload_bytes_max: config.number(settings::PAYLOAD_BYTES_MAX),
        heartbeat_every: config.time(settings::HEARTBEAT_EVERY).unwrap_or(usual.heartbeat_every),
        shutdown_grace: config.time(settings::SHUTDOWN_GRACE).unwrap_or(usual.shutdown_grace),
        retention: Retention {
            completed: config.time(settings::KEEP_COMPLETED),
            failed: config.time(settings::KEEP_FAILED),
            cancelled: config.time(settings::KEEP_CANCELLED),
        },
    }
}

/// As many open files as this process may have: every connection is one, and the usual limit is for programs that have few.
pub(super) fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}

pub(super) fn of_server(config: &Config) -> Result<steadfast_server::Config, Error> {
    let usual = steadfast_server::Config::default();
    let listen = config.text(settings::LISTEN).and_then(|listen| listen.parse::<SocketAddr>().ok());
    Ok(steadfast_server::Config {
        listen: listen.ok_or_else(|| Error::Usage("listen is empty; set an address like 127.0.0.1:7373".into()))?,
        token_file: config.path(settings::TOKEN_FILE),
        allowed_hosts: config.list(settings::ALLOWED_HOSTS),
        cors_origins: config.list(settings::CORS_ORIGINS),
        body_bytes_max: config.number(settings::BODY_BYTES_MAX),
        request_time: config.time(settings::REQUEST_TIME).unwrap_or(usual.request_time),
        wait_max: config.time(settings::WAIT_MAX).unwrap_or(usual.wait_max),
        in_flight_max: config.number(settings::IN_FLIGHT_MAX),
        feed_readers_max: config.number(settings::FEED_READERS_MAX),
        shutdown_grace: config.time(settings::SHUTDOWN_GRACE).unwrap_or(usual.shutdown_grace),
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Given;

    #[test]
    fn what_is_not_set_is_as_engine_and_server_have_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("empty.toml");
        std::fs::write(&file, "").unwrap();
        let config = Config::load(&Given { file: Some(file), ..Given::default() }).unwrap();
        assert_eq!(format!("{:?}", of_engine(&config)), format!("{:?}", steadfast_runtime::Config::default()));
        assert_eq!(format!("{:?}", of_server(&config).unwrap()), format!("{:?}", steadfast_server::Config::default()));
    }
}
