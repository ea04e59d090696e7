//! A link made of two streams of HTTP/2: packets that go out are taken by the connection itself, packets that come in are passed on by a task.
//!
//! Whoever drops a half, or ends a stream, ends the link: nothing more is taken, what was sent before still goes out, and the other end sees the end behind it.

use super::errors::{failure, status};
use crate::wire::{Gone, Link, Pulse, Queue, Remote, too_long};
use bytes::Bytes;
use futures_util::Stream;
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use steadfast_kernel::Failure;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::codec::Streaming;

/// How many packets wait to go out. The connection takes all that are there at once.
const OUTGOING_MAX: usize = 32;

/// How many packets that have come wait to be read.
const INCOMING_MAX: usize = 256;

/// How many bytes of them, unless a single packet is longer.
const INCOMING_BYTES_MAX: usize = 1 << 20;

/// How long the other end has to take what was sent before the end, and to end as well.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// Whether a link is over, and why.
#[derive(Debug, Default)]
pub(super) struct Ending {
    token: CancellationToken,
    /// What the token says, without a lock.
    over: AtomicBool,
    reason: Mutex<Option<Failure>>,
    /// The connection takes nothing more.
    dropped: CancellationToken,
}

impl Ending {
    pub(super) fn end(&self, reason: Option<Failure>) {
        if !self.over.swap(true, Ordering::AcqRel) {
            *self.reason.lock() = reason;
            self.token.cancel();
        }
    }

    async fn ended(&self) {
        self.token.cancelled().await;
    }

    /// Waits until the link is over, or its connection takes nothing more.
    pub(super) async fn ended_or_dropped(&self) {
        tokio::select! {
            biased;
            () = self.token.cancelled() => {}
            () = self.dropped.cancelled() => {}
        }
    }
}

/// Which end of a link this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// What goes out, for the connection to take.
pub(super) struct Outgoing {
    packets: mpsc::Receiver<Bytes>,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    ending: Arc<Ending>,
    packet_bytes_max: usize,
    side: Side,
}

impl Outgoing {
    pub(super) fn new(side: Side, packet_bytes_max: usize) -> (mpsc::Sender<Bytes>, Self) {
        let (sender, packets) = mpsc::channel(OUTGOING_MAX);
        let ending = Arc::new(Ending::default());
        let ended = Box::pin(ending.token.clone().cancelled_owned());
        (sender, Outgoing { packets, ended, ending, packet_bytes_max, side })
    }

    pub(super) fn ending(&self) -> Arc<Ending> {
        Arc::clone(&self.ending)
    }

    /// A packet that is too long ends the link here. A client has no way to say why but to cut off what it sent before.
    fn refuse(&mut self, length: usize) -> Option<Result<Bytes, Status>> {
        let reason = too_long(length, self.packet_bytes_max);
        let told = (self.side == Side::Server).then(|| Err(status(&reason)));
        self.packets.close();
        while self.packets.try_recv().is_ok() {}
        self.ending.end(Some(reason));
        told
    }
}

impl Stream for Outgoing {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ending.over.load(Ordering::Acquire) {
            self.packets.close();
        }
        let packet = match self.packets.poll_recv(cx) {
            Poll::Pending if self.ended.as_mut().poll(cx).is_ready() => {
                self.packets.close();
                std::task::ready!(self.packets.poll_recv(cx))
            }
            Poll::Pending => return Poll::Pending,
            Poll::Ready(packet) => packet,
        };
        Poll::Ready(match packet {
            Some(packet) if packet.len() > self.packet_bytes_max => self.refuse(packet.len()),
            Some(packet) => Some(Ok(packet)),
            None => {
                self.ending.end(None);
                None
            }
        })
    }
}

impl Drop for Outgoing {
    /// The connection has no use for this any more. What has come by then is still read; the end of the link, and why, is found behind it.
    fn drop(&mut self) {
        self.ending.dropped.cancel();
    }
}

/// Puts a link together; a task passes on what comes in until the link ends.
pub(super) fn link(outgoing: mpsc::Sender<Bytes>, packets: Streaming<Bytes>, ending: Arc<Ending>, remote: Remote, pulse: Pulse) -> Link {
    let (to, incoming) = mpsc::channel(INCOMING_MAX);
    drop(tokio::spawn(pass_on(packets, to, ending)));
    Link { outgoing, incoming, remote, pulse, gone: Gone::default() }
}

async fn pass_on(mut packets: Streaming<Bytes>, to: mpsc::Sender<Result<Bytes, Failure>>, ending: Arc<Ending>) {
    let mut queue = Queue::new(to.clone(), INCOMING_BYTES_MAX);
    let reason = tokio::select! {
        biased;
        reason = read(&mut packets, &mut queue) => reason,
        () = ending.ended() => None,
        () = to.closed() => None,
    };
    drop(queue);
    ending.end(reason);
    let reason = ending.reason.lock().take();
    let tell = async move {
        if let Some(reason) = reason {
            let _nobody_wants_to_know = to.send(Err(reason)).await;
        }
    };
    // What the other end has sent by now is thrown away, so that it comes to its own end.
    let discard = async { while let Ok(Some(_)) = packets.message().await {} };
    let _it_takes_too_long = timeout(LINGER, async { tokio::join!(tell, discard) }).await;
}

/// Reads until the other end has ended; says why if it was not by its own will.
async fn read(packets: &mut Streaming<Bytes>, queue: &mut Queue<Result<Bytes, Failure>>) -> Option<Failure> {
    loop {
        match packets.message().await {
            Ok(packet) => {
                let packet = packet?;
                let length = packet.len();
                queue.send(Ok(packet), length).await.ok()?;
            }
            Err(status) => return Some(failure(&status)),
        }
    }
}
