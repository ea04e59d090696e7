//! Traces over OTLP, when somebody asks for them: a trace per run, a span per attempt.
//!
//! The engine tells the [`Exporter`] what has ended; that only puts it in line, and drops it if the line is full, so that nobody ever waits for whoever collects traces. A task sends what is
//! in line, many at a time, as OTLP over HTTP with JSON, which every collector takes. `docs/decisions/0005-the-product.md` says why not by a library.
//!
//! Tested by `crates/cli/tests/it/observed.rs`.

mod document;
mod send;

use document::Span;
use send::Sender;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steadfast_runtime::{Attempted, Observer, RunEnded};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How many spans may wait to be sent.
const WAITING_MAX: usize = 8192;

/// Sends spans. Give it to the engine's builder as its observer.
pub struct Exporter {
    line: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
}

/// The task that sends.
pub struct Sending(JoinHandle<()>);

impl Exporter {
    /// Begins to send to a collector: `http://localhost:4318`, to which `/v1/traces` is added.
    ///
    /// # Errors
    /// If the client cannot be made.
    pub fn start(endpoint: &str) -> Result<(Arc<Self>, Sending), reqwest::Error> {
        let (line, waiting) = mpsc::channel(WAITING_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let sender = Sender::new(endpoint, Arc::clone(&dropped))?;
        let task = tokio::spawn(sender.run(waiting));
        Ok((Arc::new(Exporter { line, dropped }), Sending(task)))
    }

    fn put(&self, span: Span) {
        if self.line.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed); // the task says so when it is at it again
        }
    }
}

impl Sending {
    /// Waits until what is in line is sent, once the engine has stopped and the exporter is gone; not longer than that.
    pub async fn finish(self, within: Duration) {
        if tokio::time::timeout(within, self.0).await.is_err() {
            tracing::warn!("traces were still to be sent, and are lost");
        }
    }
}

impl Observer for Exporter {
    fn attempted(&self, attempted: &Attempted<'_>) {
        self.put(Span::of_attempt(attempted));
    }

    fn ended(&self, ended: &RunEnded<'_>) {
        self.put(Span::of_run(ended));
    }
}
