//! Packets that have come and wait to be read: many small ones or a few long ones.

use bytes::Bytes;
use std::collections::VecDeque;
use steadfast_kernel::Failure;
use tokio::sync::mpsc;

/// How many packets wait at the most.
const PACKETS_MAX: usize = 256;

/// How many bytes wait at the most, unless a single packet is longer.
const BYTES_MAX: usize = 1 << 20;

/// The end of the queue at which packets go in.
pub(super) struct Queue {
    to: mpsc::Sender<Result<Bytes, Failure>>,
    /// How long those are that may still wait, oldest first.
    lengths: VecDeque<usize>,
    bytes: usize,
}

/// Nobody reads any more.
#[derive(Debug)]
pub(super) struct Closed;

impl Queue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Result<Bytes, Failure>>) {
        let (to, incoming) = mpsc::channel(PACKETS_MAX);
        (Queue { to, lengths: VecDeque::with_capacity(PACKETS_MAX), bytes: 0 }, incoming)
    }

    /// What the queue sends with.
    pub(super) fn sender(&self) -> mpsc::Sender<Result<Bytes, Failure>> {
        self.to.clone()
    }

    /// Puts a packet in as soon as there is room for it.
    pub(super) async fn send(&mut self, packet: Bytes) -> Result<(), Closed> {
        self.forget_to(PACKETS_MAX - self.to.capacity());
        let stay = self.may_stay(packet.len());
        if stay < self.lengths.len() {
            drop(self.to.reserve_many(PACKETS_MAX - stay).await.map_err(|_| Closed)?);
            self.forget_to(stay);
        }
        self.lengths.push_back(packet.len());
        self.bytes += packet.len();
        self.to.try_send(Ok(packet)).map_err(|_| Closed)
    }

    /// So many wait; the older ones were read.
    fn forget_to(&mut self, waiting: usize) {
        while self.lengths.len() > waiting {
            self.bytes -= self.lengths.pop_front().unwrap_or_default();
        }
    }

    /// How many of those that wait may do so beside one of that length.
    fn may_stay(&self, length: usize) -> usize {
        let (mut stay, mut bytes) = (self.lengths.len(), self.bytes + length);
        for before in &self.lengths {
            if stay < PACKETS_MAX && bytes <= BYTES_MAX {
                break;
            }
            stay -= 1;
            bytes -= before;
        }
        stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    /// How many packets of that length go in while nobody reads.
    fn fit(length: usize) -> usize {
        let (mut queue, _incoming) = Queue::new();
        (0..).take_while(|_| queue.send(Bytes::from(vec![0; length])).now_or_never().is_some()).count()
    }

    #[test]
    fn packets_wait_by_count_and_by_bytes() {
        assert_eq!(fit(0), PACKETS_MAX);
        assert_eq!(fit(250), PACKETS_MAX);
        assert_eq!(fit(BYTES_MAX / 4), 4);
        assert_eq!(fit(BYTES_MAX / 4 + 1), 3);
        assert_eq!(fit(BYTES_MAX * 3), 1);
    }

    #[tokio::test]
    async fn reading_makes_room() {
        let (mut queue, mut incoming) = Queue::new();
        for round in 0..100 {
            let length = [10, BYTES_MAX / 2, 0, BYTES_MAX, 700][round % 5];
            queue
                .send(Bytes::from(vec![0; length]))
                .now_or_never()
                .expect("there is room")
                .expect("somebody reads");
            assert_eq!(incoming.recv().await.expect("a packet").expect("a packet").len(), length);
        }
        drop(incoming);
        assert!(queue.send(Bytes::new()).await.is_err());
    }
}
