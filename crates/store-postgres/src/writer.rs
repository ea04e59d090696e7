//! The one who writes: a task that takes requests in the order of their calls. Batches that wait together are one transaction.

use crate::connect::Connector;
use crate::desk::Desk;
use crate::error::{again, stopped};
use crate::line::{Answer, Group};
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use steadfast_store::{Batch, Commit, Error, Head, ShardId, Sweep, Swept};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// The line to the task. When it is dropped, what is in line is committed, and the task ends.
#[derive(Debug)]
pub(crate) struct Writer {
    line: mpsc::UnboundedSender<Request>,
    commits: Arc<AtomicU64>,
    has_others: Arc<AtomicBool>,
}

/// What stands in line. If the task ends the answers are dropped, and whoever waits for one is told.
enum Request {
    Commit(Box<Batch>, Answer),
    Claim(ShardId, oneshot::Sender<Result<Head, Error>>),
    Head(ShardId, oneshot::Sender<Result<Head, Error>>),
    Sweep {
        shard: ShardId,
        term: u64,
        ended: Vec<Sweep>,
        answer: oneshot::Sender<Result<Vec<Swept>, Error>>,
    },
    #[cfg(test)]
    Panic(oneshot::Sender<Result<(), Error>>),
}

impl Request {
    /// Whoever waits is told that it was not done.
    fn refuse(self, error: Error) {
        match self {
            Request::Commit(_, answer) => drop(answer.send(Err(error))),
            Request::Claim(_, answer) | Request::Head(_, answer) => drop(answer.send(Err(error))),
            Request::Sweep { answer, .. } => drop(answer.send(Err(error))),
            #[cfg(test)]
            Request::Panic(answer) => drop(answer.send(Err(error))),
        }
    }
}

impl Writer {
    /// Connects, and starts the task. If there is a `member`, shards are claimed only if that instance has a lease on them.
    pub(crate) async fn start(connector: Arc<Connector>, member: Arc<Mutex<Option<String>>>) -> Result<Self, Error> {
        let commits = Arc::new(AtomicU64::new(0));
        let (line, requests) = mpsc::unbounded_channel();
        let desk = Desk::open(connector, Arc::clone(&commits), member).await?;
        let company = Company::default();
        let has_others = Arc::clone(&company.has_others);
        tokio::spawn(run(desk, requests, company));
        Ok(Writer { line, commits, has_others })
    }

    /// Whether others write to the same database, as far as is known.
    pub(crate) fn has_others(&self) -> &AtomicBool {
        &self.has_others
    }

    /// Puts a batch in line, now.
    pub(crate) fn commit(&self, batch: Batch) -> Commit {
        let (answer, outcome) = oneshot::channel();
        self.send(Request::Commit(Box::new(batch), answer));
        outcome.map(|outcome| outcome.unwrap_or_else(|_| Err(stopped()))).boxed()
    }

    /// Puts a claim in line, behind the batches that are there.
    pub(crate) async fn claim(&self, shard: ShardId) -> Result<Head, Error> {
        self.ask(|answer| Request::Claim(shard, answer)).await
    }

    /// Asks behind the batches that are there, and only when nothing that was sent before can arrive any more: the answer is final.
    pub(crate) async fn head(&self, shard: ShardId) -> Result<Head, Error> {
        self.ask(|answer| Request::Head(shard, answer)).await
    }

    /// Puts one step of a sweep in line, behind the batches that are there.
    pub(crate) async fn sweep(&self, shard: ShardId, term: u64, ended: Vec<Sweep>) -> Result<Vec<Swept>, Error> {
        self.ask(|answer| Request::Sweep { shard, term, ended, answer }).await
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Request) -> Result<T, Error> {
        let (answer, outcome) = oneshot::channel();
        self.send(request(answer));
        outcome.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// A request that nobody takes any more is dropped, and its answer with it.
    fn send(&self, request: Request) {
        let _dropped = self.line.send(request);
    }
}

/// Who wrote together is about to write again, one a little later than the other. A transaction waits for them: each costs as much as many events.
#[derive(Default)]
struct Company {
    /// How many batches the last transaction had.
    expected: usize,
    took: Duration,
    /// Others write to the same database, whose time each transaction takes.
    has_others: Arc<AtomicBool>,
}

impl Company {
    /// The longest time to wait for them.
    const PATIENCE_MAX: Duration = Duration::from_millis(5);

    /// Takes those that come while it is worth to wait for them. Nobody waits alone: a batch that comes after a lone one is written at once.
    async fn gather(&self, group: &mut Group, requests: &mut mpsc::UnboundedReceiver<Request>) -> Option<Request> {
        let part = if self.has_others.load(Ordering::Relaxed) { 2 } else { 4 };
        let until = Instant::now() + (self.took / part).min(Self::PATIENCE_MAX * 2 / part);
        while group.batches.len() < self.expected {
            match tokio::time::timeout_at(until, requests.recv()).await {
                Ok(Some(Request::Commit(batch, answer))) if group.takes(&batch) => group.add(batch, answer),
                Ok(other) => return other,
                Err(_) => break,
            }
        }
        None
    }
}

async fn run(mut desk: Desk, mut requests: mpsc::UnboundedReceiver<Request>, mut company: Company) {
    let mut next = None;
    loop {
        let request = match next.take() {
            Some(request) => request,
            None => match requests.recv().await {
                Some(request) => request,
                None => return,
            },
        };
        let done = AssertUnwindSafe(handle(&mut desk, request, &mut requests, &mut company)).catch_unwind().await;
        next = done.unwrap_or_else(|_| {
            tracing::error!("what writes to PostgreSQL has panicked; it goes on with another connection");
            desk.lose();
            None
        });
        // Those who wait already need not wait for the next try, each for one of its own.
        while let Some(error) = desk.outage() {
            let Some(request) = next.take().or_else(|| requests.try_recv().ok()) else { break };
            request.refuse(again(error));
        }
    }
}

/// Does what is asked; gives what came behind it if it was taken out of the line, too. The caller may be gone; the work is done all the same.
async fn handle(
    desk: &mut Desk,
    request: Request,
    requests: &mut mpsc::UnboundedReceiver<Request>,
    company: &mut Company,
) -> Option<Request> {
    match request {
        Request::Commit(batch, answer) => {
            let mut group = Group::default();
            group.add(batch, answer);
            let mut next = fill(&mut group, requests);
            if next.is_none() {
                next = company.gather(&mut group, requests).await;
            }
            let (expected, begun) = (group.batches.len(), Instant::now());
            desk.commit(group).await;
            (company.expected, company.took) = (expected, begun.elapsed());
            return next;
        }
        Request::Claim(shard, answer) => drop(answer.send(desk.claim(shard).await)),
        Request::Head(shard, answer) => drop(answer.send(desk.head(shard).await)),
        Request::Sweep { shard, term, ended, answer } => drop(answer.send(desk.sweep(shard, term, &ended).await)),
        #[cfg(test)]
        Request::Panic(_answer) => panic!("a test wants it"),
    }
    None
}

/// Takes what waits already, as far as it can be one transaction; what comes after it if that cannot be.
fn fill(group: &mut Group, requests: &mut mpsc::UnboundedReceiver<Request>) -> Option<Request> {
    loop {
        match requests.try_recv() {
            Ok(Request::Commit(batch, answer)) if group.takes(&batch) => group.add(batch, answer),
            Ok(other) => return Some(other),
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use steadfast_test_servers::PostgresServer;

    #[tokio::test]
    async fn a_panic_ends_one_request_and_not_the_writer() {
        let server = PostgresServer::shared();
        let settings = Settings { connect_timeout: Duration::from_secs(60), ..Settings::new(server.url(&server.database())) };
        let connector = Arc::new(Connector::new(settings).unwrap());
        crate::migrate::migrate(&connector).await.unwrap();
        let writer = Writer::start(connector, Arc::default()).await.unwrap();
        assert_eq!(writer.claim(0).await.unwrap().term, 1);
        assert!(writer.ask(Request::Panic).await.unwrap_err().is_retryable());
        assert_eq!(writer.claim(0).await.unwrap().term, 2);
    }
}
