//! What waits to be written to one connection: packets that frames are appended to, and samples of which the newest win.

use crate::envelope::{self, Body, Sample};
use crate::newest::Newest;
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A packet is closed once it is that long.
pub(super) const PACKET_BYTES: usize = 64 << 10;

/// How much of what is small may wait beyond the bound. The other side makes this one say such things, so whoever does not read them goes too far.
const SMALL_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Outgoing {
    waiting: Mutex<Waiting>,
    bytes_max: usize,
    began_at: Instant,
    /// Wakes the writer.
    filled: Notify,
    /// Wakes those who wait for room.
    emptied: Notify,
}

#[derive(Debug)]
struct Waiting {
    /// Those that are full. They are stamped when they are taken.
    packets: VecDeque<BytesMut>,
    /// The one that is being written.
    last: BytesMut,
    bytes: usize,
    samples: Newest<Sample>,
    closed: bool,
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untaken {
    /// There is no room.
    Full,
    /// The connection is cut.
    Closed,
}

impl Outgoing {
    pub(crate) fn new(bytes_max: usize, samples: Newest<Sample>) -> Self {
        let last = BytesMut::with_capacity(PACKET_BYTES); // what follows it is as long
        let waiting = Waiting { packets: VecDeque::new(), last, bytes: 0, samples, closed: false };
        Outgoing { waiting: Mutex::new(waiting), bytes_max, began_at: Instant::now(), filled: Notify::new(), emptied: Notify::new() }
    }

    /// What the clock says by which the other side sees how long a request has waited here: microseconds from 1.
    pub(crate) fn clock(&self, now: Instant) -> u64 {
        envelope::micros(now.saturating_duration_since(self.began_at)).saturating_add(1)
    }

    /// Takes a frame, if there is room.
    pub(crate) fn try_push(&self, body: &Body) -> Result<(), Untaken> {
        self.try_add(body, self.bytes_max)
    }

    /// Takes a frame, if fewer bytes wait. It is encoded before anything is locked, because others want to add theirs.
    fn try_add(&self, body: &Body, bytes_max: usize) -> Result<(), Untaken> {
        envelope::encoded(body, |frame| {
            let mut waiting = self.waiting.lock();
            match (waiting.closed, waiting.bytes >= bytes_max) {
                (true, _) => return Err(Untaken::Closed),
                (false, true) => return Err(Untaken::Full),
                (false, false) => {}
            }
            let is_first = waiting.bytes == 0; // the writer goes on as long as there is something
            waiting.append(frame);
            drop(waiting);
            if is_first {
                self.filled.notify_one();
            }
            Ok(())
        })
    }

    /// Takes a small frame without which the other side does not go on, also if there is no room for others. False if even that is too much.
    pub(crate) fn push_small(&self, body: &Body) -> bool {
        self.try_add(body, self.bytes_max.saturating_add(SMALL_BYTES_MAX)) != Err(Untaken::Full)
    }

    /// Takes a frame once there is room. False if the connection is cut.
    pub(crate) async fn push(&self, body: &Body) -> bool {
        self.push_by(|outgoing| outgoing.try_push(body)).await
    }

    /// Tries until there is room. False if the connection is cut.
    pub(crate) async fn push_by(&self, mut attempt: impl FnMut(&Self) -> Result<(), Untaken>) -> bool {
        match attempt(self) {
            Ok(()) => true,
            Err(Untaken::Closed) => false,
            Err(Untaken::Full) => Box::pin(self.push_later(attempt)).await, // boxed, because that is rare and whoever waits for an answer keeps room for it
        }
    }

    async fn push_later(&self, mut attempt: impl FnMut(&Self) -> Result<(), Untaken>) -> bool {
        loop {
            let room = self.emptied.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            match attempt(self) {
                Ok(()) => return true,
                Err(Untaken::Closed) => return false,
                Err(Untaken::Full) => room.await,
            }
        }
    }

    /// Takes a sample; the oldest go if there are too many.
    pub(crate) fn push_sample(&self, sample: Sample) -> Result<(), Untaken> {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return Err(Untaken::Closed);
        }
        let bytes = sample.payload.len();
        waiting.samples.push(sample, bytes);
        drop(waiting);
        self.filled.notify_one();
        Ok(())
    }

    /// The next packet, once there is one. Nothing if the connection is cut, and everything taken before that is written.
    pub(crate) async fn next(&self) -> Option<Bytes> {
        loop {
            let filled = self.filled.notified();
            if let Some(packet) = self.take()? {
                self.emptied.notify_waiters();
                return Some(packet);
            }
            filled.await;
        }
    }

    fn take(&self) -> Option<Option<Bytes>> {
        let mut waiting = self.waiting.lock();
        if waiting.packets.is_empty() {
            // One packet: those behind it may still be driven out by newer ones.
            while waiting.packets.is_empty()
                && let Some(sample) = waiting.samples.pop()
            {
                envelope::encoded(&Body::Sample(sample), |frame| waiting.append(frame));
            }
        }
        let mut packet = match waiting.packets.pop_front() {
            Some(packet) => packet,
            None if !waiting.last.is_empty() => waiting.last.split(),
            None if waiting.closed => return None,
            None => return Some(None),
        };
        waiting.bytes -= packet.len();
        drop(waiting);
        envelope::stamp(&mut packet, self.clock(Instant::now()));
        Some(Some(packet.freeze()))
    }

    /// Little waits to be written, such as a sign of life, and no sample.
    pub(super) fn is_almost_empty(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.packets.is_empty() && waiting.samples.is_empty()
    }

    /// How much waits to be written.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.lock().bytes
    }

    /// Takes nothing more.
    pub(crate) fn close(&self) {
        self.waiting.lock().closed = true;
        self.filled.notify_one();
        self.emptied.notify_waiters();
    }
}

impl Waiting {
    fn append(&mut self, frame: &[u8]) {
        let before = self.last.len();
        if before == 0 {
            self.last.extend_from_slice(&envelope::UNSTAMPED);
        }
        self.last.extend_from_slice(frame);
        self.bytes += self.last.len() - before;
        if self.last.len() >= PACKET_BYTES {
            let full = self.last.split();
            self.packets.push_back(full);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Number;
    use futures_util::FutureExt;

    fn sample(text: &'static str) -> Sample {
        Sample { route: "r".into(), payload: Bytes::from_static(text.as_bytes()) }
    }

    fn read(packet: Bytes) -> Vec<Body> {
        envelope::packet(packet).unwrap().map(|frame| envelope::frame(frame).unwrap().unwrap()).collect()
    }

    #[tokio::test]
    async fn what_is_ready_goes_in_one_packet_and_in_order() {
        let outgoing = Outgoing::new(1 << 20, Newest::new(2, 100));
        let pings: Vec<_> = (0..5).map(|number| Body::Ping(Number { number })).collect();
        pings.iter().for_each(|ping| outgoing.try_push(ping).unwrap());
        assert_eq!(read(outgoing.next().await.unwrap()), pings);
        assert!(outgoing.next().now_or_never().is_none(), "nothing is left");
    }

    #[tokio::test]
    async fn the_newest_samples_win() {
        let outgoing = Outgoing::new(1 << 20, Newest::new(2, 100));
        for text in ["a", "b", "c"] {
            outgoing.push_sample(sample(text)).unwrap();
        }
        assert_eq!(read(outgoing.next().await.unwrap()), [Body::Sample(sample("b")), Body::Sample(sample("c"))]);
    }

    #[tokio::test]
    async fn long_samples_leave_one_packet_at_a_time_and_the_newest_still_win() {
        let outgoing = Outgoing::new(1 << 20, Newest::new(4, 1 << 20));
        let long = |number: u8| Sample { route: "r".into(), payload: vec![number; PACKET_BYTES].into() };
        (0..4).for_each(|number| outgoing.push_sample(long(number)).unwrap());
        assert_eq!(read(outgoing.next().await.unwrap()), [Body::Sample(long(0))]);
        assert_eq!(outgoing.bytes(), 0, "the others are in nobody's way");
        (4..7).for_each(|number| outgoing.push_sample(long(number)).unwrap());
        outgoing.try_push(&Body::Ping(Number { number: 1 })).unwrap();
        let next = [Body::Ping(Number { number: 1 }), Body::Sample(long(3))];
        assert_eq!(read(outgoing.next().await.unwrap()), next, "and 1 and 2 have gone");
    }

    #[tokio::test]
    async fn small_frames_have_room_of_their_own_and_that_ends_too() {
        let outgoing = Outgoing::new(1, Newest::new(2, 100));
        let ping = Body::Ping(Number { number: 1 });
        let taken = (0..2 * SMALL_BYTES_MAX).take_while(|_| outgoing.push_small(&ping)).count();
        assert!(taken > 1000 && outgoing.bytes() < SMALL_BYTES_MAX + 100, "{taken} frames, {} bytes", outgoing.bytes());
    }

    #[tokio::test]
    async fn who_finds_no_room_waits_for_it_and_what_is_closed_takes_nothing() {
        let outgoing = Outgoing::new(1, Newest::new(2, 100));
        let ping = Body::Ping(Number { number: 1 });
        outgoing.try_push(&ping).unwrap();
        assert_eq!(outgoing.try_push(&ping), Err(Untaken::Full));
        let (pushed, packet) = tokio::join!(outgoing.push(&ping), outgoing.next());
        assert!(pushed && packet.is_some());
        outgoing.close();
        assert_eq!(outgoing.try_push(&ping), Err(Untaken::Closed));
        assert!(!outgoing.push(&ping).await);
        assert!(outgoing.next().await.is_some(), "what was taken before is written");
        assert!(outgoing.next().await.is_none());
    }
}
