//! From the settings to what the engine and the server are told.

use crate::config::{Config, settings};
use crate::error::{Error, chain};
use std::net::SocketAddr;
use steadfast_kernel::{Jitter, Policy, WorkflowName};
use steadfast_runtime::{Callbacks, Retention, Workers};
use steadfast_server::{CallerSettings, HttpCaller};

pub(super) fn of_engine(config: &Config) -> Result<steadfast_runtime::Config, Error> {
    let usual = steadfast_runtime::Config::default();
    Ok(steadfast_runtime::Config {
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
        expire_batch: config.number(settings::EXPIRE_BATCH),
        retry_batch: config.number(settings::RETRY_BATCH),
        callbacks: of_callbacks(config, usual.callbacks),
        keys_kept_for: config.time(settings::KEYS_KEPT_FOR).unwrap_or(usual.keys_kept_for),
        workers: of_workers(config)?,
    })
}

/// Who hosts runs beside this process.
fn of_workers(config: &Config) -> Result<Workers, Error> {
    let wrong = |error| Error::Usage(format!("workers.workflows ({}): {error}", config.origin(settings::WORKERS_WORKFLOWS)));
    let workflows = config.list(settings::WORKERS_WORKFLOWS).into_iter().map(WorkflowName::new);
    Ok(Workers {
        workflows: workflows.collect::<Result<_, _>>().map_err(wrong)?,
        workers_max: config.number(settings::WORKERS_MAX),
        heartbeat_max: config.time(settings::WORKERS_HEARTBEAT_MAX).unwrap_or_default(), // it always has a value
        sessions_max: config.number(settings::WORKERS_RUNS_MAX),
        message_bytes_max: config.number(settings::WORKERS_MESSAGE_BYTES_MAX),
        queued_bytes_max: config.number(settings::WORKERS_QUEUED_BYTES_MAX),
    })
}

fn of_callbacks(config: &Config, usual: Callbacks) -> Callbacks {
    let time = |setting| config.time(setting).unwrap_or_default(); // settings of this kind always have a value
    let (first, most) = (time(settings::CALLBACKS_RETRY_DELAY), time(settings::CALLBACKS_MAX_DELAY));
    let attempts = u32::try_from(config.number(settings::CALLBACKS_MAX_ATTEMPTS)).unwrap_or(u32::MAX);
    let policy = Policy::exponential(first)
        .max_delay(most.max(first))
        .max_attempts(attempts)
        .jitter(Jitter::Additive);
    Callbacks {
        policy,
        attempt_timeout: config.time(settings::CALLBACKS_TIMEOUT).unwrap_or(usual.attempt_timeout),
        in_flight_max: config.number(settings::CALLBACKS_IN_FLIGHT),
    }
}

/// Who tells of expiries over HTTP, and whom that one may call.
pub(super) fn of_caller(config: &Config) -> Result<HttpCaller, Error> {
    let hosts = config.list(settings::CALLBACKS_HOSTS);
    HttpCaller::new(CallerSettings { hosts, user_agent: None })
        .map_err(|error| Error::Usage(format!("callbacks.hosts ({}): {}", config.origin(settings::CALLBACKS_HOSTS), chain(&error))))
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
        allowed_hosts: names(config),
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

/// The names that the server goes by beside its own address: those that it is given, and the one by which other servers and workers are told to reach it.
fn names(config: &Config) -> Vec<String> {
    let told = config.text(settings::CLUSTER_ADDRESS).and_then(|address| address.split_once("://"));
    let told = told.map(|(_, authority)| authority.to_owned());
    config.list(settings::ALLOWED_HOSTS).into_iter().chain(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Given;
    use std::time::Duration;

    #[test]
    fn what_is_not_set_is_as_engine_and_server_have_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("empty.toml");
        std::fs::write(&file, "").unwrap();
        let config = Config::load(&Given { file: Some(file), ..Given::default() }).unwrap();
        assert_eq!(format!("{:?}", of_engine(&config).unwrap()), format!("{:?}", steadfast_runtime::Config::default()));
        assert_eq!(format!("{:?}", of_server(&config).unwrap()), format!("{:?}", steadfast_server::Config::default()));
    }
    #[test]
    fn settings_of_callbacks_keys_and_timers_reach_the_engine() {
        let set = [
            "callbacks.retry_delay=2s",
            "callbacks.max_delay=3s",
            "callbacks.max_attempts=7",
            "callbacks.timeout=4s",
            "callbacks.in_flight=5",
            "keys.kept_for=6m",
            "timers.expire_batch=8",
            "timers.retry_batch=9",
        ];
        let set = set.map(Into::into).to_vec();
        let engine = of_engine(&Config::load(&Given { set, ..Given::default() }).unwrap()).unwrap();
        let Callbacks { policy, attempt_timeout, in_flight_max } = engine.callbacks;
        let seconds = Duration::from_secs;
        assert_eq!(policy, Policy::exponential(seconds(2)).max_delay(seconds(3)).max_attempts(7).jitter(Jitter::Additive));
        assert_eq!((attempt_timeout, in_flight_max), (seconds(4), 5));
        assert_eq!((engine.keys_kept_for, engine.expire_batch, engine.retry_batch), (seconds(360), 8, 9));
    }

    #[test]
    fn the_server_goes_by_the_name_that_others_are_told() {
        let set = ["allowed_hosts=steadfast.example.com", "cluster.address=https://a.example.com:7373/"];
        let server = of_server(&Config::load(&Given { set: set.map(Into::into).to_vec(), ..Given::default() }).unwrap()).unwrap();
        assert_eq!(server.allowed_hosts, ["steadfast.example.com", "a.example.com:7373"], "whatever the port");
    }

    #[test]
    fn a_first_delay_that_is_longer_than_the_longest_one_counts() {
        let set = vec!["callbacks.retry_delay=10m".into()];
        let policy = of_engine(&Config::load(&Given { set, ..Given::default() }).unwrap()).unwrap().callbacks.policy;
        assert_eq!(policy.delay(1, 0), Duration::from_secs(600));
    }
}
