//! What a worker does at one instance of a server: it hosts runs over a line, and comes again whenever that is lost.

use super::instances::{self, Instances};
use super::line;
use crate::means::Means;
use crate::messages::{Node, Peer, Stream};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure, Jitter, Policy};
use steadfast_runtime::host::{self, Parted};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// A line that has stood for that long was one to work over: what ends it is news, and the worker comes again soon. After shorter ones it waits longer each time, because somebody who is sent
/// away would otherwise come again ten times per second.
const WORKED_FOR: Duration = Duration::from_secs(10);

/// What all visits of a worker share.
pub(super) struct Hosting {
    pub(super) node: Node,
    pub(super) worker: host::Worker,
    pub(super) means: Means,
    pub(super) drained: watch::Receiver<bool>,
}

impl Hosting {
    /// Opens a line.
    pub(super) async fn stream(&self, server: &Peer) -> Result<Stream, Failure> {
        self.node.stream(server.clone(), line::ROUTE, self.worker.hello().encode()).await
    }

    /// Goes to the first of those that answers, unless that says that there are instances to go to.
    pub(super) async fn arrive(&self, servers: &[Peer]) -> Result<Arrived, Failure> {
        let mut last = Failure::transient("there is no address to go to");
        for server in servers {
            match instances::ask(&self.node, server).await {
                Ok(others) if others.is_empty() => return self.stream(server).await.map(Arrived::Line),
                Ok(others) => return Ok(Arrived::Among(others)),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    pub(super) fn is_draining(&self) -> bool {
        *self.drained.borrow()
    }
}

/// Where it came to.
pub(super) enum Arrived {
    /// At a server, over this line.
    Line(Stream),
    /// At one that has instances.
    Among(Instances),
}

/// How a visit is over.
pub(super) enum Over {
    /// It makes no sense to come again, or it was to end.
    Parted(Parted),
    /// There are instances to go to instead.
    Among(Instances),
}

/// The line to that instance stands, or has ended.
pub(super) type News = (Peer, bool);

/// Whom it visits.
pub(super) enum Whom {
    /// The first of these addresses that answers; it is asked for instances each time.
    Server(Vec<Peer>),
    /// That instance. Whether its line stands is told.
    Instance(Peer, mpsc::UnboundedSender<News>),
}

/// A visit.
pub(super) struct Visit {
    pub(super) hosting: Arc<Hosting>,
    pub(super) whom: Whom,
    /// It is to end, though the worker goes on.
    pub(super) let_go: watch::Receiver<bool>,
}

impl Visit {
    /// Works until it is to end, or is not wanted.
    pub(super) async fn run(self, first: Option<Result<Arrived, Failure>>) -> Over {
        let pauses = Policy::exponential(Duration::from_millis(100))
            .max_delay(Duration::from_secs(5))
            .jitter(Jitter::Equal);
        let (mut attempt, mut pause): (u32, _) = (0, Duration::ZERO);
        let mut first = first;
        loop {
            let again = async {
                if let Some(first) = first.take() {
                    return first;
                }
                self.hosting.worker.clock.sleep(pause).await;
                self.arrive().await
            };
            let arrived = tokio::select! {
                biased;
                () = self.leaving() => return Over::Parted(Parted::Drained),
                arrived = again => arrived,
            };
            let failure = match arrived {
                Ok(Arrived::Among(instances)) => return Over::Among(instances),
                Ok(Arrived::Line(stream)) => {
                    let began = Instant::now();
                    let (parted, failure) = self.serve(stream).await;
                    if !parted.may_come_again() || self.is_leaving() {
                        return Over::Parted(parted);
                    }
                    if began.elapsed() >= WORKED_FOR {
                        attempt = 0;
                    }
                    failure
                }
                Err(failure) => {
                    tracing::warn!(server = %self.whom, %failure, "the server cannot be reached");
                    Some(failure)
                }
            };
            if let Some(refusal) = failure.as_ref().filter(|failure| is_refusal(failure)) {
                return Over::Parted(Parted::Refused(refusal.clone()));
            }
            attempt = attempt.saturating_add(1);
            let asked_for = failure.and_then(|failure| failure.retry_after).unwrap_or_default();
            pause = pauses.delay(attempt, self.hosting.node.draw()).max(asked_for);
        }
    }

    async fn arrive(&self) -> Result<Arrived, Failure> {
        match &self.whom {
            Whom::Server(addresses) => self.hosting.arrive(addresses).await,
            Whom::Instance(address, _) => self.hosting.stream(address).await.map(Arrived::Line),
        }
    }

    /// Hosts runs over a line: how it ended, and with which failure of the line, if it ended by one and had hardly begun.
    async fn serve(&self, stream: Stream) -> (Parted, Option<Failure>) {
        let began = Instant::now();
        self.stands(true);
        self.set_behalf(stream.peer_name());
        let (duplex, failed) = line::duplex(stream);
        let parted = self.hosting.worker.serve(duplex, self.leaving()).await;
        let failure = failed.await.ok().flatten();
        self.stands(false);
        let had_hardly_begun = parted == Parted::Ended && began.elapsed() < WORKED_FOR;
        (parted, failure.filter(|_| had_hardly_begun))
    }

    /// Requests are made on behalf of the server, whichever instance has the run: all of them have one name.
    fn set_behalf(&self, name: &str) {
        let before = self.hosting.means.set_behalf(name);
        if matches!(self.whom, Whom::Instance(..)) && !before.is_empty() && before != name {
            let server = &self.whom;
            tracing::warn!(%server, name, before, "instances of one server call themselves differently: give them one messages.name");
        }
    }

    fn stands(&self, stands: bool) {
        if let Whom::Instance(address, news) = &self.whom {
            let _it_ends = news.send((address.clone(), stands));
        }
    }

    fn is_leaving(&self) -> bool {
        self.hosting.is_draining() || *self.let_go.borrow()
    }

    /// Ends when it is to drain or is let go, or whoever can say so is gone.
    fn leaving(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut drained, mut let_go) = (self.hosting.drained.clone(), self.let_go.clone());
        async move {
            tokio::select! {
                biased;
                _ = drained.wait_for(|drained| *drained) => {}
                _ = let_go.wait_for(|let_go| *let_go) => {}
            }
        }
    }
}

impl std::fmt::Display for Whom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Whom::Instance(address, _) => address.fmt(f),
            Whom::Server(addresses) => f.write_str(&addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Whether it makes no sense to come again as it is. A line that was let go of is none: nobody said why.
fn is_refusal(failure: &Failure) -> bool {
    failure.class == Class::Permanent && failure.code != Code::Cancelled
}
