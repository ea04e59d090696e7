//! What a worker does as long as it is there: it hosts runs over a line, and comes again whenever that is lost.

use super::line;
use crate::means::Means;
use crate::messages::{Node, Peer, Stream};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure, Jitter, Policy};
use steadfast_runtime::host::{self, Parted};
use tokio::sync::watch;
use tokio::time::Instant;

/// A line that has stood for that long was one to work over: what ends it is news, and the worker comes again soon. After shorter ones it waits longer each time, because somebody who is sent
/// away would otherwise come again ten times per second.
const WORKED_FOR: Duration = Duration::from_secs(10);

pub(super) struct Work {
    pub(super) server: Peer,
    pub(super) node: Node,
    pub(super) worker: host::Worker,
    pub(super) means: Means,
    pub(super) drained: watch::Receiver<bool>,
}

impl Work {
    /// Works until it is to drain, or the server does not want it.
    pub(super) async fn run(self, mut stream: Result<Stream, Failure>) -> Parted {
        let pauses = Policy::exponential(Duration::from_millis(100))
            .max_delay(Duration::from_secs(5))
            .jitter(Jitter::Equal);
        let mut attempt: u32 = 0;
        loop {
            let failure = match stream {
                Ok(stream) => {
                    let began = Instant::now();
                    let (parted, failure) = self.serve(stream).await;
                    if !parted.may_come_again() || *self.drained.borrow() {
                        return parted;
                    }
                    if began.elapsed() >= WORKED_FOR {
                        attempt = 0;
                    }
                    failure
                }
                Err(failure) => {
                    tracing::warn!(server = %self.server, %failure, "the server cannot be reached");
                    Some(failure)
                }
            };
            if let Some(refusal) = failure.as_ref().filter(|failure| is_refusal(failure)) {
                return Parted::Refused(refusal.clone());
            }
            attempt = attempt.saturating_add(1);
            let asked_for = failure.and_then(|failure| failure.retry_after).unwrap_or_default();
            let pause = pauses.delay(attempt, self.node.draw()).max(asked_for);
            let again = async {
                self.worker.clock.sleep(pause).await;
                self.node.stream(self.server.clone(), line::ROUTE, self.worker.hello().encode()).await
            };
            stream = tokio::select! {
                biased;
                () = self.draining() => return Parted::Drained,
                stream = again => stream,
            };
        }
    }

    /// Hosts runs over a line: how it ended, and with which failure of the line, if it ended by one and had hardly begun.
    async fn serve(&self, stream: Stream) -> (Parted, Option<Failure>) {
        let began = Instant::now();
        self.means.set_behalf(stream.peer_name());
        let (duplex, failed) = line::duplex(stream);
        let parted = self.worker.serve(duplex, self.draining()).await;
        let failure = failed.await.ok().flatten();
        let had_hardly_begun = parted == Parted::Ended && began.elapsed() < WORKED_FOR;
        (parted, failure.filter(|_| had_hardly_begun))
    }

    /// Ends when it is to drain, or is gone.
    fn draining(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut drained = self.drained.clone();
        Box::pin(async move { drop(drained.wait_for(|drained| *drained).await) })
    }
}

/// Whether it makes no sense to come again as it is. A line that was let go of is none: nobody said why.
fn is_refusal(failure: &Failure) -> bool {
    failure.class == Class::Permanent && failure.code != Code::Cancelled
}
