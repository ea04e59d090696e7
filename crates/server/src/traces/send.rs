//! Sends what is in line, many at a time.

use super::document::{Span, document};
use reqwest::header::CONTENT_TYPE;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast_runtime::clock::{Clock, SystemClock};
use tokio::sync::mpsc;

/// How many are sent at once, and how long the first of them waits for company.
const TOGETHER: usize = 512;
const GATHER: Duration = Duration::from_secs(1);

/// How long a collector has to answer, and how long it is left alone after it could not take something: once, and once more.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

pub(super) struct Sender {
    client: reqwest::Client,
    url: String,
    dropped: Arc<AtomicU64>,
}

impl Sender {
    pub(super) fn new(endpoint: &str, dropped: Arc<AtomicU64>) -> Result<Self, reqwest::Error> {
        steadfast_tls::install_default();
        let client = reqwest::Client::builder().timeout(ANSWER_WITHIN).build()?;
        Ok(Sender { client, url: format!("{}/v1/traces", endpoint.trim_end_matches('/')), dropped })
    }

    /// Runs until everybody who puts something in line is gone, and the line is empty.
    pub(super) async fn run(self, mut waiting: mpsc::Receiver<Span>) {
        let mut spans = Vec::new();
        while waiting.recv_many(&mut spans, TOGETHER).await > 0 {
            let gathered = async { while spans.len() < TOGETHER && waiting.recv_many(&mut spans, TOGETHER).await > 0 {} };
            let _that_is_enough = tokio::time::timeout(GATHER, gathered).await;
            self.send(&spans).await;
            spans.clear();
        }
    }

    async fn send(&self, spans: &[Span]) {
        let body = document(spans).to_string();
        let mut pauses = PAUSES.into_iter();
        while let Err(error) = self.post(&body).await {
            match pauses.next() {
                Some(pause) => SystemClock.sleep(pause).await,
                None => {
                    tracing::warn!(spans = spans.len(), error, "traces could not be sent and are lost");
                    return;
                }
            }
        }
        match self.dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            spans => tracing::warn!(spans, "traces were lost, because there were more than could be sent"),
        }
    }

    async fn post(&self, body: &str) -> Result<(), String> {
        let request = self.client.post(&self.url).header(CONTENT_TYPE, "application/json").body(body.to_string());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("the collector answered {}", answer.status())),
            Err(error) => Err(error.without_url().to_string()),
        }
    }
}
