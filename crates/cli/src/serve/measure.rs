//! Numbers for `/metrics`: the recorder, which has to be there before the engine starts.

use crate::output::time;
use metrics_exporter_prometheus::PrometheusHandle;
use std::time::Duration;

/// How often metrics are put in order; what was measured would pile up without it.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// From here on the engine is measured.
pub(super) fn install() -> Option<PrometheusHandle> {
    let handle = match steadfast_server::install_metrics() {
        Ok(handle) => handle,
        Err(error) => {
            tracing::warn!(%error, "there are no metrics");
            return None;
        }
    };
    let kept = handle.clone();
    tokio::spawn(async move {
        loop {
            time::pass(UPKEEP_EVERY).await;
            kept.run_upkeep();
        }
    });
    Some(handle)
}
