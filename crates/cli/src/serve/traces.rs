//! Traces, if somebody collects them.

use crate::config::{Config, settings};
use crate::error::Error;
use std::sync::Arc;
use std::time::Duration;
use steadfast_runtime::Observer;
use steadfast_server::{Exporter, Sending};

/// How long the end waits for what is left to be sent.
const WITHIN: Duration = Duration::from_secs(5);

/// Who hears of attempts, and who sends that on.
pub(super) struct Traces {
    exporter: Arc<Exporter>,
    sending: Sending,
}

impl Traces {
    /// Begins to send, if the settings say where to.
    ///
    /// # Errors
    /// If that cannot be begun.
    pub(super) fn start(config: &Config) -> Result<Option<Self>, Error> {
        let Some(endpoint) = config.text(settings::OTLP_ENDPOINT) else { return Ok(None) };
        let (exporter, sending) = Exporter::start(endpoint).map_err(|error| Error::failed("cannot send traces", &error))?;
        Ok(Some(Traces { exporter, sending }))
    }

    /// Who is told by the engine.
    pub(super) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.exporter) as Arc<dyn Observer>
    }

    /// Sends what is left, once the engine has stopped.
    pub(super) async fn finish(self) {
        drop(self.exporter);
        self.sending.finish(WITHIN).await;
    }
}
