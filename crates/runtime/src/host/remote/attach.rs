//! The server's end of a line to a worker: what is read of it goes to the shard, what waits for it is sent in as few chunks as it fits.

use super::peer::{Peer, Waiting};
use super::{Duplex, Gone, Pool};
use crate::host::wire::{Broken, Down, Frames, Hello, Outbox, Reader, Up, Welcome, put_down, weigh_up};
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};

/// What a worker has said and the shard has not looked at is counted in these.
const UNIT: usize = 1 << 10;

/// A worker that is there. However that ends, the pool hears of it.
struct Attached {
    pool: Arc<Pool>,
    peer: Arc<Peer>,
    gone: Gone,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.peer.end(self.gone.clone());
        self.pool.leave(&self.peer, &self.gone);
    }
}

impl Pool {
    /// Has a worker take part until it is gone. Why it is.
    pub(crate) async fn attach(self: Arc<Self>, hello: Hello, duplex: Duplex) -> Gone {
        let Duplex { mut incoming, outgoing } = duplex;
        let (queue, mut waiting) = mpsc::unbounded_channel();
        let joined = match hello.check() {
            Ok(()) => self.join(hello, queue),
            Err(Broken(why)) => Err(Gone::Refused(why)),
        };
        let peer = match joined {
            Ok(peer) => peer,
            Err(gone) => return say_bye(&outgoing, gone),
        };
        let mut attached = Attached { pool: Arc::clone(&self), peer: Arc::clone(&peer), gone: Gone::Ended };
        let ended = peer.ended();
        peer.send(Down::Welcome(Welcome {
            version: peer.version(),
            payload_bytes_max: self.payload_bytes_max,
            message_bytes_max: self.message_bytes_max(),
            heartbeat_every: self.heartbeat_every,
            now: self.clock.now(),
        }));
        let gone = tokio::select! {
            biased;
            gone = ended => gone.unwrap_or(Gone::Ended),
            gone = self.read(&peer, &mut incoming) => gone,
            gone = self.write(&peer, &mut waiting, &outgoing) => gone,
        };
        attached.gone = gone.clone();
        drop(attached);
        say_bye(&outgoing, gone)
    }

    async fn read(&self, peer: &Peer, incoming: &mut mpsc::Receiver<Bytes>) -> Gone {
        let (mut frames, reader) = (Frames::new(self.message_bytes_max()), Reader::new(self.payload_bytes_max));
        let units = (self.settings.queued_bytes_max / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        let room = Arc::new(Semaphore::new(units));
        let mut silence = self.clock.sleep(peer.heartbeat);
        loop {
            let chunk = tokio::select! {
                biased;
                chunk = incoming.recv() => chunk,
                () = &mut silence => {
                    let quiet = peer.quiet();
                    if quiet >= peer.heartbeat {
                        return Gone::Silent(quiet);
                    }
                    silence = self.clock.sleep(peer.heartbeat - quiet);
                    continue;
                }
            };
            let Some(chunk) = chunk else { return Gone::Ended };
            peer.hear();
            frames.add(chunk);
            loop {
                let frame = match frames.next() {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(Broken(why)) => return Gone::Broken(why),
                };
                let weight = u32::try_from((weigh_up(&frame) / UNIT + 1).min(units)).unwrap_or(u32::MAX);
                match reader.up(frame) {
                    Ok(Up::Report { session, says }) => {
                        let weight = Arc::clone(&room).acquire_many_owned(weight).await.ok();
                        peer.report(self, session, says, weight);
                    }
                    Ok(Up::Attempts { question, attempts }) => peer.answer(question, attempts),
                    Ok(Up::Room { runs }) => self.share(peer, runs as usize),
                    Ok(Up::Beat { number }) => self.beat(peer, number),
                    Ok(Up::Drain) => peer.drain(),
                    Ok(Up::Bye { abandons: false }) => {
                        self.give_back(peer);
                        return Gone::Left;
                    }
                    Ok(Up::Bye { abandons: true }) => return if peer.sessions() == 0 { Gone::Left } else { Gone::GaveUp },
                    Err(Broken(why)) => return Gone::Broken(why),
                }
            }
        }
    }

    /// A worker is given runs once it was heard: what it has for an answer then tells it for how long it may have them.
    fn beat(&self, peer: &Peer, number: u64) {
        peer.beat(number);
        if !peer.is_ready() {
            self.ready(peer);
        }
        self.leave_room(peer); // those that were needed when it was said may only wait by now
    }

    /// A worker that hosts runs of others, too, has room for more or for fewer.
    fn share(&self, peer: &Peer, runs: usize) {
        if peer.let_have(runs) {
            self.made_room(peer);
        }
        self.leave_room(peer);
    }

    async fn write(&self, peer: &Peer, waiting: &mut mpsc::UnboundedReceiver<Waiting>, outgoing: &mpsc::Sender<Bytes>) -> Gone {
        let mut outbox = Outbox::default();
        loop {
            let mut weights = (0, 0);
            tokio::select! {
                biased;
                () = peer.has_beaten() => {}
                first = waiting.recv() => {
                    let mut next = first;
                    while let Some(Waiting { down, weight }) = next {
                        let is_open = matches!(down, Down::Open { .. });
                        weights = (weights.0 + weight, weights.1 + if is_open { 0 } else { weight });
                        put_down(down, &mut outbox);
                        next = if outbox.is_full() { None } else { waiting.try_recv().ok() };
                    }
                    if outbox.is_empty() {
                        return Gone::Ended;
                    }
                }
            }
            if let Err(gone) = self.send_all(peer, &mut outbox, outgoing).await {
                return gone;
            }
            peer.sent(weights);
        }
    }

    /// Sends all that waits. The worker is told between two chunks that it was heard.
    async fn send_all(&self, peer: &Peer, outbox: &mut Outbox, outgoing: &mpsc::Sender<Bytes>) -> Result<(), Gone> {
        loop {
            if let Some(number) = peer.take_beat() {
                put_down(Down::Beat { number, now: self.clock.now() }, outbox);
            }
            let Some(chunk) = outbox.take() else { return Ok(()) };
            self.send(peer, outgoing, chunk).await?;
        }
    }

    /// Sends a chunk. A worker that does not take it for as long as it may be silent does not read.
    async fn send(&self, peer: &Peer, outgoing: &mpsc::Sender<Bytes>, chunk: Bytes) -> Result<(), Gone> {
        let chunk = match outgoing.try_send(chunk) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Gone::Ended),
            Err(mpsc::error::TrySendError::Full(chunk)) => chunk,
        };
        tokio::select! {
            biased;
            sent = outgoing.send(chunk) => sent.map_err(|_| Gone::Ended),
            () = self.clock.sleep(peer.heartbeat) => Err(Gone::Slow(peer.queued())),
        }
    }
}

/// Tells a worker why the line is over, if it listens.
fn say_bye(outgoing: &mpsc::Sender<Bytes>, gone: Gone) -> Gone {
    let mut outbox = Outbox::default();
    put_down(Down::Bye { why: gone.to_string(), for_good: gone.is_for_good() }, &mut outbox);
    let _it_does_not_listen = outbox.take().map(|chunk| outgoing.try_send(chunk));
    gone
}
