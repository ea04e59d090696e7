//! What `/metrics` shows: the metrics of the runtime, with their help, units and buckets.
//!
//! Tested by `crates/cli/tests/it/observed.rs`.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use steadfast_messaging::NodeCounts;
use steadfast_runtime::metrics::{self as names, ALL};

/// Counts from here on, for all engines that are started after it in this process. What it gives is for the server's parts; whoever installs it also calls its
/// `run_upkeep` now and then, or what is measured adds up until somebody looks.
///
/// # Errors
/// If something else counts already.
pub fn install_metrics() -> Result<PrometheusHandle, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in ALL.iter().filter(|metric| !metric.buckets.is_empty()) {
        builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.into()), metric.buckets)?;
    }
    let handle = builder.install_recorder()?;
    for metric in ALL {
        let help = metric.help.trim();
        match metric.kind() {
            "counter" => metrics::describe_counter!(metric.name, metric.unit, help),
            "gauge" => metrics::describe_gauge!(metric.name, metric.unit, help),
            _ => metrics::describe_histogram!(metric.name, metric.unit, help),
        }
    }
    Ok(handle)
}

/// What a node has, and what it has done.
pub(crate) fn measure_messages(counts: &NodeCounts) {
    let NodeCounts { connections, requests, inbox, totals, .. } = counts;
    for (name, value) in [
        (names::MESSAGE_CONNECTIONS, *connections),
        (names::MESSAGE_REQUESTS, *requests),
        (names::INBOX_ENTRIES, inbox.running + inbox.finished),
        (names::INBOX_BYTES, inbox.bytes),
    ] {
        metrics::gauge!(name).set(value as f64);
    }
    for (name, calls, tells) in [
        (names::MESSAGES_RECEIVED, totals.calls_received, totals.tells_received),
        (names::MESSAGES_SENT, totals.calls, totals.tells),
        (names::MESSAGES_FAILED, totals.calls_failed, totals.tells_failed),
    ] {
        metrics::counter!(name, "kind" => "call").absolute(calls);
        metrics::counter!(name, "kind" => "tell").absolute(tells);
    }
    metrics::counter!(names::MESSAGES_RETRIED).absolute(totals.retries);
    metrics::counter!(names::MESSAGES_DEAD).absolute(totals.letters);
    metrics::counter!(names::MESSAGES_LOST).absolute(totals.letters_lost);
    metrics::counter!(names::INBOX_FORGOTTEN).absolute(inbox.forgotten_early);
}
