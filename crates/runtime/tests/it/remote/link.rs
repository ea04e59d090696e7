//! A line between an engine and a worker with somebody in between, who can hold messages back, lose them, or cut the line after so many.

use bytes::{Buf, Bytes};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use steadfast_runtime::{Duplex, Engine, Gone, Hello, Parted, Worker};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// What becomes of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They pass.
    Pass,
    /// None of either side arrives, and neither hears of that.
    Lose,
    /// None of the worker arrives.
    LoseUp,
    /// None of the server is taken, so that they pile up.
    HoldDown,
    /// The server sees the end of the line, and the worker does not.
    CutUp,
    /// The line is over.
    Cut,
}

/// A line with both ends.
pub(crate) struct Link {
    pub(crate) mode: watch::Sender<Mode>,
    /// How many messages have passed, in both directions.
    pub(crate) passed: Arc<AtomicUsize>,
    pub(crate) gone: JoinHandle<Gone>,
    pub(crate) parted: JoinHandle<Parted>,
    drain: Option<oneshot::Sender<()>>,
}

impl Link {
    /// Connects a worker.
    pub(crate) fn new(engine: &Engine, worker: &Worker) -> Link {
        Link::until(engine, worker, usize::MAX)
    }

    /// Connects a worker. The line is cut after so many messages.
    pub(crate) fn until(engine: &Engine, worker: &Worker, messages: usize) -> Link {
        Link::by(engine, worker, worker.hello(), messages)
    }

    /// The same, for one that says that hello.
    pub(crate) fn by(engine: &Engine, worker: &Worker, hello: Hello, messages: usize) -> Link {
        let ((server, to_server), (there, to_worker)) = (Duplex::pair(64), Duplex::pair(64));
        let (mode, passed) = (watch::channel(Mode::Pass).0, Arc::<AtomicUsize>::default());
        let hello = Hello::decode(&hello.encode()).unwrap();
        let gone = tokio::spawn(engine.attach(hello, server));
        let (drain, drains) = oneshot::channel::<()>();
        let worker = worker.clone();
        let parted = tokio::spawn(async move {
            let drains = async {
                if drains.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            worker.serve(there, drains).await
        });
        tokio::spawn(between(to_server, to_worker, mode.subscribe(), Arc::clone(&passed), messages));
        Link { mode, passed, gone, parted, drain: Some(drain) }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Has the worker drain.
    pub(crate) fn drain(&mut self) {
        self.drain.take().unwrap().send(()).unwrap();
    }

    pub(crate) fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }
}

/// Passes messages on, each as a chunk of its own.
async fn between(mut server: Duplex, mut worker: Duplex, mut mode: watch::Receiver<Mode>, passed: Arc<AtomicUsize>, max: usize) {
    let mut is_there = true;
    loop {
        let now = *mode.borrow_and_update();
        if now == Mode::CutUp {
            return half_open(server, worker, mode).await;
        }
        if now == Mode::Cut || !is_there && now == Mode::Pass {
            return;
        }
        tokio::select! {
            biased;
            Ok(()) = mode.changed() => {}
            chunk = worker.incoming.recv(), if is_there => {
                let Some(chunk) = chunk else {
                    is_there = false; // whoever does not hear of it has half a line
                    continue;
                };
                if matches!(now, Mode::Pass | Mode::HoldDown) && !pass(chunk, &server.outgoing, &passed, max).await {
                    return;
                }
            }
            chunk = server.incoming.recv(), if now != Mode::HoldDown => {
                let Some(chunk) = chunk else {
                    return if now == Mode::Lose { half_open(server, worker, mode).await };
                };
                if matches!(now, Mode::Pass | Mode::LoseUp) && !pass(chunk, &worker.outgoing, &passed, max).await {
                    return;
                }
            }
        }
    }
}

/// The server has no line any more. What the worker says is lost, until it is told.
async fn half_open(server: Duplex, mut worker: Duplex, mut mode: watch::Receiver<Mode>) {
    drop(server);
    loop {
        tokio::select! {
            biased;
            changed = mode.changed() => if changed.is_err() || *mode.borrow_and_update() == Mode::Cut { return },
            chunk = worker.incoming.recv() => if chunk.is_none() { return },
        }
    }
}

async fn pass(mut chunk: Bytes, to: &mpsc::Sender<Bytes>, passed: &AtomicUsize, max: usize) -> bool {
    while chunk.has_remaining() {
        if passed.fetch_add(1, Ordering::SeqCst) >= max || to.send(message(&mut chunk)).await.is_err() {
            return false;
        }
    }
    true
}

/// The first frame of a chunk, with its head.
pub(crate) fn message(chunk: &mut Bytes) -> Bytes {
    let head = 1 + chunk.iter().take_while(|byte| *byte & 0x80 != 0).count();
    let length = chunk[..head].iter().rev().fold(0_usize, |length, byte| length << 7 | usize::from(byte & 0x7f));
    chunk.split_to((head + (length >> 2)).min(chunk.len()))
}
