//! What all requests share.

use crate::access::Access;
use crate::config::Config;
use crate::links::Door;
use crate::shapes::Workflow;
use crate::steps::Planned;
use bytes::Bytes;
use metrics_exporter_prometheus::PrometheusHandle;
use std::sync::{Arc, OnceLock};
use steadfast_runtime::Engine;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Knows what the engine does not: which workflows come from definitions, and what is to be said about them.
pub trait Catalogue: Send + Sync + 'static {
    /// Workflows from definitions, with their versions.
    fn describe(&self) -> Vec<Workflow>;

    /// Whether the code of that workflow is a definition; its file may be gone.
    fn defines(&self, _workflow: &str) -> bool {
        false
    }

    /// The steps of that version of a definition, in its order; none if it is not known.
    fn plan(&self, _hash: &str) -> Vec<Planned> {
        Vec::new()
    }
}

/// What all requests share.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) engine: Engine,
    pub(crate) access: Access,
    pub(crate) catalogue: Option<Arc<dyn Catalogue>>,
    pub(crate) metrics: Option<PrometheusHandle>,
    /// Where other nodes come in, if this process takes messages.
    pub(crate) door: Option<Door>,
    /// The OpenAPI document.
    pub(crate) openapi: OnceLock<Bytes>,
    /// How many more requests may begin.
    pub(crate) in_flight: Semaphore,
    /// How many more may follow the feed.
    pub(crate) readers: Arc<Semaphore>,
    /// The server is about to stop: nobody is kept waiting any more.
    pub(crate) closing: CancellationToken,
}
