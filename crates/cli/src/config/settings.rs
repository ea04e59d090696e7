//! Every setting, in one table. Keys of the file, names in the environment, checks, `steadfast config` and the manual follow from it.

use super::kind::Kind;

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its key in the file; a dot stands between section and name.
    pub(crate) key: &'static str,
    /// Its name in the environment.
    pub(crate) env: &'static str,
    /// The flag that sets it, if it has one of its own; `--set KEY=VALUE` sets each of them.
    pub(crate) flag: Option<&'static str>,
    pub(crate) kind: Kind,
    /// As it would be written; empty if it is not set by default.
    pub(crate) default: &'static str,
    /// Shown as dots.
    pub(crate) secret: bool,
    /// What it means, for people.
    pub(crate) help: &'static str,
}

macro_rules! settings {
    ($($name:ident = $key:literal, $env:literal, $flag:expr, $kind:expr, $default:literal, $secret:literal, $help:literal;)+) => {
        $(pub(crate) const $name: &Setting =
            &Setting { key: $key, env: $env, flag: $flag, kind: $kind, default: $default, secret: $secret, help: $help };)+

        /// All of them, in the order in which they are shown.
        pub(crate) const ALL: &[&Setting] = &[$($name,)+];
    };
}

settings! {
    SERVER = "server", "STEADFAST_SERVER", Some("--server"), Kind::Url, "http://127.0.0.1:7373", false,
        "where commands find the server";
    TOKEN = "token", "STEADFAST_TOKEN", None, Kind::Text, "", true,
        "the token that commands show the server";
    TOKEN_FILE = "token_file", "STEADFAST_TOKEN_FILE", Some("--token-file"), Kind::Path, "", false,
        "the file with the token: the server asks for it, commands show it";
    LISTEN = "listen", "STEADFAST_LISTEN", Some("--listen"), Kind::Address, "127.0.0.1:7373", false,
        "where the server listens; any other than a loopback address needs a token";
    DATA = "data", "STEADFAST_DATA", Some("--data"), Kind::Path, "data", false,
        "the folder of the store; it is made if it is not there";
    DEFINITIONS = "definitions", "STEADFAST_DEFINITIONS", Some("--definitions"), Kind::Path, "definitions", false,
        "the folder of the workflow definitions";
    ALLOWED_HOSTS = "allowed_hosts", "STEADFAST_ALLOWED_HOSTS", Some("--allowed-host"), Kind::List, "", false,
        "names under which the server may be asked, beside its own address";
    CORS_ORIGINS = "cors_origins", "STEADFAST_CORS_ORIGINS", Some("--cors-origin"), Kind::List, "", false,
        "web origins whose pages may ask the server";
    BODY_BYTES_MAX = "limits.body_bytes_max", "STEADFAST_LIMITS_BODY_BYTES_MAX", None, Kind::Bytes, "5MiB", false,
        "how large the body of a request may be";
    IN_FLIGHT_MAX = "limits.in_flight_max", "STEADFAST_LIMITS_IN_FLIGHT_MAX", None, Kind::Count, "1024", false,
        "how many requests may be under way at once";
    REQUEST_TIME = "limits.request_time", "STEADFAST_LIMITS_REQUEST_TIME", None, Kind::Time, "30s", false,
        "how long a request may take, beside what it asks to wait for";
    WAIT_MAX = "limits.wait_max", "STEADFAST_LIMITS_WAIT_MAX", None, Kind::Time, "60s", false,
        "how long a request may wait for the end of a run";
    FEED_READERS_MAX = "limits.feed_readers_max", "STEADFAST_LIMITS_FEED_READERS_MAX", None, Kind::Count, "2000", false,
        "how many may follow the change feed at once";
    REQUESTS_MAX = "engine.requests_max", "STEADFAST_ENGINE_REQUESTS_MAX", None, Kind::Count, "4096", false,
        "how many requests may wait for the engine";
    RUNS_LIVE_MAX = "engine.runs_live_max", "STEADFAST_ENGINE_RUNS_LIVE_MAX", None, Kind::Count, "100000", false,
        "how many runs may be held in memory with their code";
    RUNS_IDLE_MAX = "engine.runs_idle_max", "STEADFAST_ENGINE_RUNS_IDLE_MAX", None, Kind::Count, "10000", false,
        "how many runs that only wait are kept in memory";
    SNAPSHOT_EVERY = "engine.snapshot_every", "STEADFAST_ENGINE_SNAPSHOT_EVERY", None, Kind::Count, "100", false,
        "after how many events the state of a run is saved";
    PAYLOAD_BYTES_MAX = "engine.payload_bytes_max", "STEADFAST_ENGINE_PAYLOAD_BYTES_MAX", None, Kind::Bytes, "4MiB", false,
        "how large an input, an output or a result may be";
    HEARTBEAT_EVERY = "engine.heartbeat_every", "STEADFAST_ENGINE_HEARTBEAT_EVERY", None, Kind::Time, "5s", false,
        "how often at most the heartbeats of a step are recorded";
    SHUTDOWN_GRACE = "engine.shutdown_grace", "STEADFAST_ENGINE_SHUTDOWN_GRACE", None, Kind::Time, "10s", false,
        "how long a shutdown waits for attempts in flight";
    KEEP_COMPLETED = "retention.completed", "STEADFAST_RETENTION_COMPLETED", None, Kind::TimeOrForever, "forever", false,
        "how long completed runs are kept";
    KEEP_FAILED = "retention.failed", "STEADFAST_RETENTION_FAILED", None, Kind::TimeOrForever, "forever", false,
        "how long failed runs are kept";
    KEEP_CANCELLED = "retention.cancelled", "STEADFAST_RETENTION_CANCELLED", None, Kind::TimeOrForever, "forever", false,
        "how long cancelled runs are kept";
    CALLBACKS_RETRY_DELAY = "callbacks.retry_delay", "STEADFAST_CALLBACKS_RETRY_DELAY", None, Kind::Time, "1s", false,
        "how long after a failed callback it is made again; twice as long each time";
    CALLBACKS_MAX_DELAY = "callbacks.max_delay", "STEADFAST_CALLBACKS_MAX_DELAY", None, Kind::Time, "5m", false,
        "the longest time between two attempts of a callback";
    CALLBACKS_MAX_ATTEMPTS = "callbacks.max_attempts", "STEADFAST_CALLBACKS_MAX_ATTEMPTS", None, Kind::Count, "20", false,
        "how often a callback is made before it is a dead letter";
    CALLBACKS_TIMEOUT = "callbacks.timeout", "STEADFAST_CALLBACKS_TIMEOUT", None, Kind::Time, "10s", false,
        "how long one attempt of a callback may take";
    CALLBACKS_IN_FLIGHT = "callbacks.in_flight", "STEADFAST_CALLBACKS_IN_FLIGHT", None, Kind::Count, "64", false,
        "how many callbacks may be under way at once, per target";
    CALLBACKS_HOSTS = "callbacks.hosts", "STEADFAST_CALLBACKS_HOSTS", None, Kind::List, "", false,
        "hosts that callbacks may call, like hooks.example.com or *.example.com; every host if it is not set";
    KEYS_KEPT_FOR = "keys.kept_for", "STEADFAST_KEYS_KEPT_FOR", None, Kind::Time, "1h", false,
        "how long the journal of a key is kept after the key is gone and its end was told";
    EXPIRE_BATCH = "timers.expire_batch", "STEADFAST_TIMERS_EXPIRE_BATCH", None, Kind::Count, "50", false,
        "how many timers that are due are handed out at once, before other work has its turn";
    RETRY_BATCH = "timers.retry_batch", "STEADFAST_TIMERS_RETRY_BATCH", None, Kind::Count, "10", false,
        "how many timers that could not be dealt with are handed out again at once";
    POSTGRES_URL = "postgres.url", "STEADFAST_POSTGRES", Some("--postgres"), Kind::Postgres, "", false,
        "the PostgreSQL database that is the store: postgresql://user@host:port/database; the data folder is the store if it is not set";
    POSTGRES_PASSWORD_FILE = "postgres.password_file", "STEADFAST_POSTGRES_PASSWORD_FILE", None, Kind::Path, "", false,
        "a file with the password, so that it need not be in the URL";
    POSTGRES_CA_FILE = "postgres.ca_file", "STEADFAST_POSTGRES_CA_FILE", None, Kind::Path, "", false,
        "a file with the certificates (PEM) to trust instead of those of the system";
    POSTGRES_CERTIFICATE_FILE = "postgres.certificate_file", "STEADFAST_POSTGRES_CERTIFICATE_FILE", None, Kind::Path, "", false,
        "a file with a certificate (PEM) by which the database knows this server; with postgres.key_file";
    POSTGRES_KEY_FILE = "postgres.key_file", "STEADFAST_POSTGRES_KEY_FILE", None, Kind::Path, "", false,
        "a file with the key (PEM) of that certificate";
    POSTGRES_CONNECTIONS_MAX = "postgres.connections_max", "STEADFAST_POSTGRES_CONNECTIONS_MAX", None, Kind::Count, "10", false,
        "how many connections to the database there are at most, and at least 3; one writes, the others read";
    POSTGRES_CONNECT_TIMEOUT = "postgres.connect_timeout", "STEADFAST_POSTGRES_CONNECT_TIMEOUT", None, Kind::Time, "5s", false,
        "how long a connect to the database may take";
    POSTGRES_STATEMENT_TIMEOUT = "postgres.statement_timeout", "STEADFAST_POSTGRES_STATEMENT_TIMEOUT", None, Kind::Time, "30s", false,
        "how long a statement may take";
    POSTGRES_SHARDS = "postgres.shards", "STEADFAST_POSTGRES_SHARDS", None, Kind::Count, "64", false,
        "how many shards a new database gets; one that is there keeps those that it has";
    CLUSTER_LEASE = "cluster.lease", "STEADFAST_CLUSTER_LEASE", None, Kind::Time, "10s", false,
        "how long a server on a shared database may be silent before others take over its work; at least 2s, the same for all of them";
    CLUSTER_ADDRESS = "cluster.address", "STEADFAST_CLUSTER_ADDRESS", None, Kind::Url, "", false,
        "where the other servers on the same database reach this one: http://host:port; the address it listens at if it is not set";
    REDIS_URL = "redis.url", "STEADFAST_REDIS", Some("--redis"), Kind::Redis, "", false,
        "the Redis through which instances share tenants: redis://…, rediss://… or redis+sentinel://…; beside postgres.url a mirror only; nothing is shared if it is not set";
    REDIS_INSTANCE = "redis.instance", "STEADFAST_REDIS_INSTANCE", Some("--instance"), Kind::Instance, "", false,
        "who this instance is for the others; the data folder keeps an id if it is not set";
    REDIS_PASSWORD_FILE = "redis.password_file", "STEADFAST_REDIS_PASSWORD_FILE", None, Kind::Path, "", false,
        "a file with the password of Redis, so that it need not be in the URL";
    REDIS_SENTINEL_PASSWORD_FILE = "redis.sentinel_password_file", "STEADFAST_REDIS_SENTINEL_PASSWORD_FILE", None, Kind::Path, "", false,
        "a file with the password of Sentinel itself";
    REDIS_CA_FILE = "redis.ca_file", "STEADFAST_REDIS_CA_FILE", None, Kind::Path, "", false,
        "a file with the certificates (PEM) to trust instead of those of the system; with rediss:// only";
    REDIS_PREFIX = "redis.prefix", "STEADFAST_REDIS_PREFIX", None, Kind::Text, "executor:", false,
        "what all keys in Redis begin with; the same for all instances that share tenants";
    REDIS_TTL = "redis.ttl", "STEADFAST_REDIS_TTL", None, Kind::Time, "7d", false,
        "how long plans, tasks and checkpoints live in Redis after the last write";
    REDIS_HEARTBEAT_TTL = "redis.heartbeat_ttl", "STEADFAST_REDIS_HEARTBEAT_TTL", None, Kind::Time, "30s", false,
        "after how long without a sign of life others take this instance for gone";
    REDIS_PATIENCE = "redis.patience", "STEADFAST_REDIS_PATIENCE", None, Kind::Time, "10s", false,
        "how long a stage waits for the checkpoint before it to be in Redis, before that attempt has failed";
    REDIS_CONNECT_TIMEOUT = "redis.connect_timeout", "STEADFAST_REDIS_CONNECT_TIMEOUT", None, Kind::Time, "2s", false,
        "how long a connect to Redis may take";
    REDIS_RESPONSE_TIMEOUT = "redis.response_timeout", "STEADFAST_REDIS_RESPONSE_TIMEOUT", None, Kind::Time, "2s", false,
        "how long an answer of Redis may take";
    LOCKS_FALLBACK = "locks.fallback", "STEADFAST_LOCKS_FALLBACK", None, Kind::OneOf(&["auto", "local", "refuse"]), "auto", false,
        "what becomes of new locks while Redis is away: granted if no other instance was seen for locks.lease (auto), always granted (local), or refused";
    LOCKS_LEASE = "locks.lease", "STEADFAST_LOCKS_LEASE", None, Kind::Time, "2h30m", false,
        "for how long another instance that is not seen any more may still have locks: the longest lease of your plans";
    MESSAGES_NAME = "messages.name", "STEADFAST_MESSAGES_NAME", None, Kind::Text, "", false,
        "what the node of this server is called by others; if it is not set, the id of the instance, or of the first one that used the PostgreSQL database";
    MESSAGES_LISTEN = "messages.listen", "STEADFAST_MESSAGES_LISTEN", None, Kind::Address, "", false,
        "a port of their own for nodes; they can connect at the address of the API, too. Any other than a loopback address needs a token";
    MESSAGES_TOKEN_FILE = "messages.token_file", "STEADFAST_MESSAGES_TOKEN_FILE", None, Kind::Path, "", false,
        "the file with the token that nodes are shown which this one connects to, if they are among messages.token_hosts";
    MESSAGES_TOKEN_HOSTS = "messages.token_hosts", "STEADFAST_MESSAGES_TOKEN_HOSTS", None, Kind::List, "", false,
        "who is shown that token: HOST or HOST:PORT over TLS (and in plain text on this machine alone), http://HOST:PORT in plain text";
    MESSAGES_CERT_FILE = "messages.cert_file", "STEADFAST_MESSAGES_CERT_FILE", None, Kind::Path, "", false,
        "the certificate of this node, in PEM: messages.listen speaks TLS with it, and nodes at https:// addresses are shown it if they ask";
    MESSAGES_KEY_FILE = "messages.key_file", "STEADFAST_MESSAGES_KEY_FILE", None, Kind::Path, "", false,
        "its key, in PEM, if it is not in the same file";
    MESSAGES_CLIENT_CA_FILE = "messages.client_ca_file", "STEADFAST_MESSAGES_CLIENT_CA_FILE", None, Kind::Path, "", false,
        "authorities, in PEM: whoever connects at messages.listen has to have a certificate of one of them";
    MESSAGES_CA_FILE = "messages.ca_file", "STEADFAST_MESSAGES_CA_FILE", None, Kind::Path, "", false,
        "authorities, in PEM, of the nodes at https:// addresses; without it none of them is trusted";
    MESSAGES_PAYLOAD_BYTES_MAX = "messages.payload_bytes_max", "STEADFAST_MESSAGES_PAYLOAD_BYTES_MAX", None, Kind::Bytes, "4MiB", false,
        "how large a message may be: not more than engine.payload_bytes_max, by which its dead letter is kept";
    MESSAGES_CONNECTIONS_MAX = "messages.connections_max", "STEADFAST_MESSAGES_CONNECTIONS_MAX", None, Kind::Count, "1024", false,
        "how many nodes may be connected at once";
    MESSAGES_REQUESTS_MAX = "messages.requests_max", "STEADFAST_MESSAGES_REQUESTS_MAX", None, Kind::Count, "16384", false,
        "how many calls and tells of others may run or wait at once";
    WORKERS_ACCEPT = "workers.accept", "STEADFAST_WORKERS_ACCEPT", None, Kind::OneOf(&["yes", "no"]), "yes", false,
        "whether other processes that connect may host runs whose code is not here; who may use the API may connect";
    WORKERS_WORKFLOWS = "workers.workflows", "STEADFAST_WORKERS_WORKFLOWS", None, Kind::List, "", false,
        "workflows that workers bring: their runs can be started before the first of these workers has come, and wait for it";
    WORKERS_MAX = "workers.max", "STEADFAST_WORKERS_MAX", None, Kind::Count, "1000", false,
        "how many workers may be connected at once; one that comes beyond that tries again later";
    WORKERS_HEARTBEAT_MAX = "workers.heartbeat_max", "STEADFAST_WORKERS_HEARTBEAT_MAX", None, Kind::Time, "15s", false,
        "the longest heartbeat that a worker may have; after a start, what a worker may still have in flight for the process before is begun by nobody else for as long";
    WORKERS_RUNS_MAX = "workers.runs_max", "STEADFAST_WORKERS_RUNS_MAX", None, Kind::Count, "10000", false,
        "how many runs one worker hosts at once at the most, whatever it says itself";
    WORKERS_MESSAGE_BYTES_MAX = "workers.message_bytes_max", "STEADFAST_WORKERS_MESSAGE_BYTES_MAX", None, Kind::Bytes, "32MiB", false,
        "how large what a worker has recorded at once may be";
    WORKERS_QUEUED_BYTES_MAX = "workers.queued_bytes_max", "STEADFAST_WORKERS_QUEUED_BYTES_MAX", None, Kind::Bytes, "64MiB", false,
        "how much may wait to be sent to a worker; one that reads so slowly that there is more is given up";
    LOG_LEVEL = "log.level", "STEADFAST_LOG", Some("--log"), Kind::Text, "info", false,
        "what is logged: error, warn, info, debug, trace, or filters like info,steadfast_runtime=debug";
    LOG_FORMAT = "log.format", "STEADFAST_LOG_FORMAT", Some("--log-format"), Kind::OneOf(&["human", "json"]), "human", false,
        "how the log is written";
    OTLP_ENDPOINT = "otlp.endpoint", "STEADFAST_OTLP_ENDPOINT", None, Kind::Url, "", false,
        "the collector that traces are sent to (OTLP over HTTP), for example http://localhost:4318; none are made if it is not set";
}

/// The section whose keys are free: what templates see as `vars`.
pub(crate) const VARS: &str = "vars";
/// What the environment calls it; the rest of the name, in lower case, is the variable's.
pub(crate) const VARS_ENV: &str = "STEADFAST_VARS_";
/// Names the file itself, so it cannot stand in it.
pub(crate) const CONFIG_ENV: &str = "STEADFAST_CONFIG";

/// The setting of that key.
pub(crate) fn of_key(key: &str) -> Option<&'static Setting> {
    ALL.iter().find(|setting| setting.key == key).copied()
}

/// The setting of that name in the environment.
pub(crate) fn of_env(name: &str) -> Option<&'static Setting> {
    ALL.iter().find(|setting| setting.env == name).copied()
}

/// The known name that somebody may have meant: a misspelt one of the same section, one that was put into the wrong section, or any that is near.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let (section, own) = parts(name);
    let misspelt = || near(name, known.clone().filter(|other| parts(other).0 == section));
    let misplaced = || known.clone().find(|other| parts(other).1 == own);
    misspelt().or_else(misplaced).or_else(|| near(name, known.clone()))
}

fn parts(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or(("", name))
}

/// The nearest one, if it is near enough to be meant.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, other) = known.map(|other| (strsim::damerau_levenshtein(name, other), other)).min()?;
    (distance <= (other.len() / 3).clamp(1, 4)).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_environment_follow_from_the_keys() {
        for setting in ALL.iter().filter(|setting| !["log.level", "postgres.url", "redis.url"].contains(&setting.key)) {
            assert_eq!(setting.env, format!("STEADFAST_{}", setting.key.to_uppercase().replace('.', "_")));
        }
    }

    #[test]
    fn defaults_can_be_read_and_are_those_of_the_engine() {
        for setting in ALL {
            assert!(setting.kind.parse(setting.default).is_ok(), "{}", setting.key);
        }
        let engine = steadfast_runtime::Config::default();
        for (setting, is) in [
            (REQUESTS_MAX, engine.requests_max.to_string()),
            (RUNS_LIVE_MAX, engine.runs_live_max.to_string()),
            (RUNS_IDLE_MAX, engine.runs_idle_max.to_string()),
            (SNAPSHOT_EVERY, engine.snapshot_every.to_string()),
            (PAYLOAD_BYTES_MAX, format!("{}MiB", engine.payload_bytes_max >> 20)),
            (HEARTBEAT_EVERY, crate::duration::exact(engine.heartbeat_every)),
            (SHUTDOWN_GRACE, crate::duration::exact(engine.shutdown_grace)),
            (CALLBACKS_TIMEOUT, crate::duration::exact(engine.callbacks.attempt_timeout)),
            (CALLBACKS_IN_FLIGHT, engine.callbacks.in_flight_max.to_string()),
            (CALLBACKS_MAX_ATTEMPTS, engine.callbacks.policy.attempts_max().to_string()),
            (KEYS_KEPT_FOR, crate::duration::exact(engine.keys_kept_for)),
            (EXPIRE_BATCH, engine.expire_batch.to_string()),
            (RETRY_BATCH, engine.retry_batch.to_string()),
            (WORKERS_MAX, engine.workers.workers_max.to_string()),
            (WORKERS_HEARTBEAT_MAX, crate::duration::exact(engine.workers.heartbeat_max)),
            (WORKERS_RUNS_MAX, engine.workers.sessions_max.to_string()),
            (WORKERS_MESSAGE_BYTES_MAX, format!("{}MiB", engine.workers.message_bytes_max >> 20)),
            (WORKERS_QUEUED_BYTES_MAX, format!("{}MiB", engine.workers.queued_bytes_max >> 20)),
        ] {
            assert_eq!(setting.default, is, "{}", setting.key);
        }
        assert_eq!(engine.retention, steadfast_runtime::Retention::new());
        let messages = steadfast_messaging::Limits::default();
        for (setting, is) in [
            (MESSAGES_PAYLOAD_BYTES_MAX, format!("{}MiB", messages.payload_bytes_max >> 20)),
            (MESSAGES_CONNECTIONS_MAX, messages.connections_max.to_string()),
            (MESSAGES_REQUESTS_MAX, messages.requests_max.to_string()),
        ] {
            assert_eq!(setting.default, is, "{}", setting.key);
        }
        let redis = steadfast_store_redis::Settings::new("");
        let postgres = steadfast_store_postgres::Settings::new("");
        for (setting, is) in [
            (POSTGRES_CONNECTIONS_MAX, postgres.connections_max.to_string()),
            (POSTGRES_CONNECT_TIMEOUT, crate::duration::exact(postgres.connect_timeout)),
            (POSTGRES_STATEMENT_TIMEOUT, crate::duration::exact(postgres.statement_timeout)),
            (POSTGRES_SHARDS, postgres.shards.to_string()),
            (REDIS_PREFIX, redis.prefix.clone()),
            (REDIS_TTL, crate::duration::exact(redis.ttl)),
            (REDIS_HEARTBEAT_TTL, crate::duration::exact(redis.heartbeat_ttl)),
            (REDIS_CONNECT_TIMEOUT, crate::duration::exact(redis.connect_timeout)),
            (REDIS_RESPONSE_TIMEOUT, crate::duration::exact(redis.response_timeout)),
            (LOCKS_FALLBACK, steadfast_runtime::Fallback::default().as_str().into()),
            (LOCKS_LEASE, crate::duration::exact(steadfast_kernel::plan::Settings::LEASE)),
        ] {
            assert_eq!(setting.default, is, "{}", setting.key);
        }
    }

    #[test]
    fn a_misspelt_or_misplaced_key_is_recognised() {
        let keys = || ALL.iter().map(|setting| setting.key);
        assert_eq!(nearest("lisen", keys()), Some("listen"));
        assert_eq!(nearest("body_bytes_max", keys()), Some("limits.body_bytes_max"));
        assert_eq!(nearest("limit.wait_max", keys()), Some("limits.wait_max"));
        assert_eq!(nearest("retention.complete", keys()), Some("retention.completed"));
        assert_eq!(nearest("limits.in_flight", keys()), Some("limits.in_flight_max"));
        assert_eq!(nearest("keys.in_flight", keys()), Some("callbacks.in_flight"));
        assert_eq!(nearest("colour", keys()), None);
    }
}
