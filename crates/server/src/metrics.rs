//! What `/metrics` shows: the metrics of the runtime, with their help, units and buckets.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use steadfast_runtime::metrics::ALL;

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
