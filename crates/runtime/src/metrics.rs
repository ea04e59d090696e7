//! Every metric: its name, its unit and what it means. All other places only count.
//!
//! Nothing is measured unless a recorder of the `metrics` crate was installed before the engine was started; a handle is then one atomic operation. No metric has the
//! id of a run as a label: there would be as many as runs.

use metrics::{Counter, Gauge, Histogram, Unit, counter, gauge, histogram};
use std::time::Duration;
use steadfast_kernel::{Class, Entry, Event, LetterAbout};

/// A metric, for whoever shows them.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it counts or measures.
    pub help: &'static str,
    /// In what.
    pub unit: Unit,
    /// The limits of its buckets, if it is a distribution.
    pub buckets: &'static [f64],
}

impl Metric {
    /// What it is: `counter`, `gauge` or `histogram`. A name says so, too.
    pub fn kind(&self) -> &'static str {
        match (self.buckets.is_empty(), self.name.ends_with("_total")) {
            (false, _) => "histogram",
            (true, true) => "counter",
            (true, false) => "gauge",
        }
    }
}

const SECONDS: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const SIZES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0];

macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $name:ident = $public:literal, $unit:expr, $buckets:expr;)+) => {
        $($(#[doc = $help])+ pub const $name: &str = $public;)+

        /// All of them, in the order of this file.
        pub const ALL: &[Metric] = &[$(Metric { name: $public, help: concat!($($help),+), unit: $unit, buckets: $buckets },)+];
    };
}

metrics! {
    /// Runs that were started.
    RUNS_STARTED = "steadfast_runs_started_total", Unit::Count, &[];
    /// Runs that have ended, by how: COMPLETED, FAILED or CANCELLED.
    RUNS_ENDED = "steadfast_runs_ended_total", Unit::Count, &[];
    /// Runs that were begun again by a person.
    RUNS_RETRIED = "steadfast_runs_retried_total", Unit::Count, &[];
    /// Attempts of steps that have ended, by how: success, or the class of the failure.
    ATTEMPTS = "steadfast_attempts_total", Unit::Count, &[];
    /// How much later than due the next attempt of a step began.
    RETRY_LATENESS = "steadfast_retry_lateness_seconds", Unit::Seconds, SECONDS;
    /// How long a durable commit took.
    COMMIT_SECONDS = "steadfast_commit_seconds", Unit::Seconds, SECONDS;
    /// How many journal entries one commit made durable.
    COMMIT_EVENTS = "steadfast_commit_events", Unit::Count, SIZES;
    /// Commits that failed.
    COMMITS_FAILED = "steadfast_commits_failed_total", Unit::Count, &[];
    /// Requests that wait to be looked at.
    REQUESTS_WAITING = "steadfast_requests_waiting", Unit::Count, &[];
    /// Decisions that wait for their commit.
    DECISIONS_WAITING = "steadfast_decisions_waiting", Unit::Count, &[];
    /// Runs that are in memory with their code.
    RUNS_LIVE = "steadfast_runs_live", Unit::Count, &[];
    /// Shards that this instance has, of those that it shares with others.
    SHARDS = "steadfast_shards_held", Unit::Count, &[];
    /// Keys that have expired.
    KEYS_EXPIRED = "steadfast_keys_expired_total", Unit::Count, &[];
    /// How much later than due the expiry of a key was on record.
    EXPIRY_LATENESS = "steadfast_key_expiry_lateness_seconds", Unit::Seconds, SECONDS;
    /// Attempts to tell of the end of a key, by how they went: success or failure.
    CALLBACKS = "steadfast_callback_attempts_total", Unit::Count, &[];
    /// Ends of keys that became dead letters.
    CALLBACKS_DEAD = "steadfast_callbacks_dead_total", Unit::Count, &[];
    /// Ends of keys that are still to be told.
    CALLBACKS_PENDING = "steadfast_callbacks_pending", Unit::Count, &[];
    /// For how long the one of them that has waited for longest has waited.
    CALLBACKS_OLDEST = "steadfast_callbacks_oldest_pending_seconds", Unit::Seconds, &[];
    /// Whether Redis can be used: 1 or 0.
    REDIS_UP = "steadfast_redis_up", Unit::Count, &[];
    /// How long a round trip to Redis took that wrote something.
    REDIS_WRITE_SECONDS = "steadfast_redis_write_seconds", Unit::Seconds, SECONDS;
    /// How many writes one round trip to Redis had.
    REDIS_WRITES = "steadfast_redis_writes", Unit::Count, SIZES;
    /// Round trips to Redis that have failed.
    REDIS_FAILURES = "steadfast_redis_failures_total", Unit::Count, &[];
    /// Plans and tasks of which Redis does not know the latest.
    REDIS_PENDING = "steadfast_redis_mirror_pending", Unit::Count, &[];
    /// For how long Redis has not known the latest of one of them.
    REDIS_LAG = "steadfast_redis_mirror_lag_seconds", Unit::Seconds, &[];
    /// Locks that two instances had at once, as far as Redis shows.
    REDIS_CONFLICTS = "steadfast_redis_lock_conflicts_total", Unit::Count, &[];
    /// Workers that are connected.
    WORKERS_CONNECTED = "steadfast_workers_connected", Unit::Count, &[];
    /// Runs that workers host.
    WORKERS_SESSIONS = "steadfast_workers_sessions", Unit::Count, &[];
    /// Workers that were lost: their line ended, or they were silent, did not read, or could not be understood.
    WORKERS_LOST = "steadfast_workers_lost_total", Unit::Count, &[];
    /// Those who follow the change feed.
    FEED_FOLLOWERS = "steadfast_feed_followers", Unit::Count, &[];
    /// How old an entry was when a follower of the feed was given it.
    FEED_LAG = "steadfast_feed_lag_seconds", Unit::Seconds, SECONDS;
    /// Nodes that are connected.
    MESSAGE_CONNECTIONS = "steadfast_message_connections", Unit::Count, &[];
    /// Calls and tells of others that run or wait.
    MESSAGE_REQUESTS = "steadfast_message_requests_running", Unit::Count, &[];
    /// Calls and tells that have come, by kind: call or tell; each as often as it was delivered.
    MESSAGES_RECEIVED = "steadfast_messages_received_total", Unit::Count, &[];
    /// Calls and tells that were sent, by kind.
    MESSAGES_SENT = "steadfast_messages_sent_total", Unit::Count, &[];
    /// Calls and tells that were sent and have failed for good, by kind; not those of steps, whose runs say so.
    MESSAGES_FAILED = "steadfast_messages_failed_total", Unit::Count, &[];
    /// Attempts to send a message beyond the first one.
    MESSAGES_RETRIED = "steadfast_messages_retried_total", Unit::Count, &[];
    /// Messages that became dead letters.
    MESSAGES_DEAD = "steadfast_messages_dead_total", Unit::Count, &[];
    /// Dead letters of messages that could not be kept: they are in the log, and nowhere else.
    MESSAGES_LOST = "steadfast_messages_lost_total", Unit::Count, &[];
    /// Requests that the inbox in memory knows.
    INBOX_ENTRIES = "steadfast_inbox_entries", Unit::Count, &[];
    /// What they take there, in bytes.
    INBOX_BYTES = "steadfast_inbox_bytes", Unit::Bytes, &[];
    /// Requests that the inbox has forgotten before their window was over, because room was needed.
    INBOX_FORGOTTEN = "steadfast_inbox_forgotten_early_total", Unit::Count, &[];
}

/// How much of something one shard has: what is shown is the sum over all of them.
pub(crate) struct Level {
    gauge: Gauge,
    shown: usize,
}

impl Level {
    fn of(gauge: Gauge) -> Self {
        Level { gauge, shown: 0 }
    }

    pub(crate) fn set(&mut self, level: usize) {
        let before = std::mem::replace(&mut self.shown, level);
        match level.cmp(&before) {
            std::cmp::Ordering::Greater => self.gauge.increment((level - before) as f64),
            std::cmp::Ordering::Less => self.gauge.decrement((before - level) as f64),
            std::cmp::Ordering::Equal => {}
        }
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The handles of a shard.
pub(crate) struct OfShard {
    started: Counter,
    retried: Counter,
    completed: Counter,
    failed: Counter,
    cancelled: Counter,
    success: Counter,
    transient: Counter,
    permanent: Counter,
    poison: Counter,
    lateness: Histogram,
    expired: Counter,
    expiry_lateness: Histogram,
    told: Counter,
    untold: Counter,
    dead: Counter,
    pub(crate) requests: Level,
    pub(crate) decisions: Level,
    pub(crate) live: Level,
    pub(crate) followers: Gauge,
}

impl OfShard {
    pub(crate) fn new() -> Self {
        let ended = |status: &'static str| counter!(RUNS_ENDED, "status" => status);
        let attempts = |outcome: &'static str| counter!(ATTEMPTS, "outcome" => outcome);
        OfShard {
            started: counter!(RUNS_STARTED),
            retried: counter!(RUNS_RETRIED),
            completed: ended("COMPLETED"),
            failed: ended("FAILED"),
            cancelled: ended("CANCELLED"),
            success: attempts("success"),
            transient: attempts(Class::Transient.as_str()),
            permanent: attempts(Class::Permanent.as_str()),
            poison: attempts(Class::Poison.as_str()),
            lateness: histogram!(RETRY_LATENESS),
            expired: counter!(KEYS_EXPIRED),
            expiry_lateness: histogram!(EXPIRY_LATENESS),
            told: counter!(CALLBACKS, "outcome" => "success"),
            untold: counter!(CALLBACKS, "outcome" => "failure"),
            dead: counter!(CALLBACKS_DEAD),
            requests: Level::of(gauge!(REQUESTS_WAITING)),
            decisions: Level::of(gauge!(DECISIONS_WAITING)),
            live: Level::of(gauge!(RUNS_LIVE)),
            followers: gauge!(FEED_FOLLOWERS),
        }
    }

    /// An entry is durable.
    pub(crate) fn count(&self, entry: &Entry) {
        match &entry.event {
            Event::RunStarted { .. } => self.started.increment(1),
            Event::RunRetried(_) => self.retried.increment(1),
            Event::RunCompleted { .. } => self.completed.increment(1),
            Event::RunFailed { .. } => self.failed.increment(1),
            Event::RunCancelled => self.cancelled.increment(1),
            Event::StepCompleted { step, .. } if !step.is_version() => self.success.increment(1),
            Event::UndoCompleted { .. } => self.success.increment(1),
            Event::StepFailed { failure, .. } | Event::UndoFailed { failure, .. } | Event::RetryScheduled { failure, .. } => {
                match failure.class {
                    Class::Transient => self.transient.increment(1),
                    Class::Permanent => self.permanent.increment(1),
                    Class::Poison => self.poison.increment(1),
                }
            }
            Event::KeyExpired { .. } => self.expired.increment(1),
            Event::CallbackSettled { .. } => self.told.increment(1),
            Event::CallbackFailed { .. } => self.untold.increment(1),
            Event::LetterAdded(letter) if matches!(letter.about, LetterAbout::Expiry { .. }) => {
                self.untold.increment(1);
                self.dead.increment(1);
            }
            _ => {}
        }
    }

    /// The expiry of a key is on record, so much later than it was due.
    pub(crate) fn expired_late(&self, by: Duration) {
        self.expiry_lateness.record(by);
    }

    /// The next attempt of a step began so much later than it was due.
    pub(crate) fn late(&self, by: Duration) {
        self.lateness.record(by);
    }
}

/// The handles of the committer.
#[derive(Clone)]
pub(crate) struct OfCommits {
    seconds: Histogram,
    events: Histogram,
    failed: Counter,
}

impl OfCommits {
    pub(crate) fn new() -> Self {
        OfCommits { seconds: histogram!(COMMIT_SECONDS), events: histogram!(COMMIT_EVENTS), failed: counter!(COMMITS_FAILED) }
    }

    pub(crate) fn count(&self, took: Duration, events: usize, worked: bool) {
        self.seconds.record(took);
        if worked {
            self.events.record(events as f64);
        } else {
            self.failed.increment(1);
        }
    }
}

/// The handles of those who host runs elsewhere.
pub(crate) struct OfWorkers {
    pub(crate) connected: Gauge,
    pub(crate) sessions: Gauge,
    pub(crate) lost: Counter,
}

impl OfWorkers {
    pub(crate) fn new() -> Self {
        OfWorkers { connected: gauge!(WORKERS_CONNECTED), sessions: gauge!(WORKERS_SESSIONS), lost: counter!(WORKERS_LOST) }
    }
}

/// The handles of the one who speaks with Redis.
pub(crate) struct OfCommons {
    seconds: Histogram,
    writes: Histogram,
    pub(crate) up: Gauge,
    pub(crate) failures: Counter,
    pub(crate) pending: Gauge,
    pub(crate) lag: Gauge,
    pub(crate) conflicts: Counter,
}

impl OfCommons {
    pub(crate) fn new() -> Self {
        OfCommons {
            seconds: histogram!(REDIS_WRITE_SECONDS),
            writes: histogram!(REDIS_WRITES),
            up: gauge!(REDIS_UP),
            failures: counter!(REDIS_FAILURES),
            pending: gauge!(REDIS_PENDING),
            lag: gauge!(REDIS_LAG),
            conflicts: counter!(REDIS_CONFLICTS),
        }
    }

    /// A round trip with so many writes took that long.
    pub(crate) fn wrote(&self, took: Duration, writes: usize) {
        self.seconds.record(took);
        self.writes.record(writes as f64);
    }
}

/// So many ends of keys are to be told, and one of them has waited that long.
pub(crate) fn callbacks(pending: u64, oldest: Duration) {
    gauge!(CALLBACKS_PENDING).set(pending as f64);
    gauge!(CALLBACKS_OLDEST).set(oldest.as_secs_f64());
}

/// So many shards are open here.
pub(crate) fn shards(open: usize) {
    gauge!(SHARDS).set(open as f64);
}

/// A follower of the feed was given entries, the last of which is that old.
pub fn fed(age: Duration) {
    histogram!(FEED_LAG).record(age);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_are_and_are_unique() {
        for (index, metric) in ALL.iter().enumerate() {
            assert!(metric.name.starts_with("steadfast_"), "{metric:?}");
            assert_eq!(metric.unit == Unit::Seconds, metric.name.ends_with("_seconds"), "{metric:?}: the unit goes last");
            assert!(metric.help.trim().ends_with('.'), "{metric:?}");
            assert!(ALL[..index].iter().all(|other| other.name != metric.name), "{metric:?}");
        }
    }

    #[test]
    fn the_guide_has_all_of_them() {
        let guide = include_str!("../../../docs/guide/observing.md");
        for metric in ALL {
            let line = format!("| `{}` | {} | {} |", metric.name, metric.kind(), metric.help.trim());
            assert!(guide.contains(&line), "put this into docs/guide/observing.md:\n{line}");
        }
    }
}
