//! Packets that wait at a wire, to be read or to be sent: many small ones or a few long ones.

use std::collections::VecDeque;
use tokio::sync::mpsc::{self, error::TrySendError};

/// The end of a channel at which packets go in: as many wait as it has places, and not more than so many bytes, unless a single packet is longer.
pub(crate) struct Queue<T> {
    to: mpsc::Sender<T>,
    bytes_max: usize,
    /// How long those are that may still wait, oldest first.
    lengths: VecDeque<usize>,
    bytes: usize,
}

/// Nobody takes any more.
#[derive(Debug)]
pub(crate) struct Closed;

impl<T> Queue<T> {
    /// Puts packets into that channel. What others have put there before counts as one of the packets that wait, and not by its bytes.
    pub(crate) fn new(to: mpsc::Sender<T>, bytes_max: usize) -> Self {
        Queue { to, bytes_max, lengths: VecDeque::new(), bytes: 0 }
    }

    /// Puts a packet in as soon as there is room for it.
    pub(crate) async fn send(&mut self, packet: T, length: usize) -> Result<(), Closed> {
        self.forget_to(self.to.max_capacity() - self.to.capacity());
        let stay = self.may_stay(length);
        if stay < self.lengths.len() {
            drop(self.to.reserve_many(self.to.max_capacity() - stay).await.map_err(|_| Closed)?);
            self.forget_to(stay);
        }
        self.lengths.push_back(length);
        self.bytes += length;
        match self.to.try_send(packet) {
            Err(TrySendError::Full(packet)) => self.to.send(packet).await.map_err(|_| Closed),
            sent => sent.map_err(|_| Closed),
        }
    }

    /// So many wait; the older ones were taken.
    fn forget_to(&mut self, waiting: usize) {
        while self.lengths.len() > waiting {
            self.bytes -= self.lengths.pop_front().unwrap_or_default();
        }
    }

    /// How many of those that wait may do so beside one of that length.
    fn may_stay(&self, length: usize) -> usize {
        let (mut stay, mut bytes) = (self.lengths.len(), self.bytes + length);
        for before in &self.lengths {
            if stay < self.to.max_capacity() && bytes <= self.bytes_max {
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
    use bytes::Bytes;
    use futures_util::FutureExt;

    const PACKETS_MAX: usize = 256;
    const BYTES_MAX: usize = 1 << 20;

    fn queue() -> (Queue<Bytes>, mpsc::Receiver<Bytes>) {
        let (to, incoming) = mpsc::channel(PACKETS_MAX);
        (Queue::new(to, BYTES_MAX), incoming)
    }

    async fn send(queue: &mut Queue<Bytes>, length: usize) -> Result<(), Closed> {
        queue.send(Bytes::from(vec![0; length]), length).await
    }

    /// How many packets of that length go in while nobody reads.
    fn fit(length: usize) -> usize {
        let (mut queue, _incoming) = queue();
        (0..).take_while(|_| send(&mut queue, length).now_or_never().is_some()).count()
    }

    #[test]
    fn packets_wait_by_count_and_by_bytes() {
        assert_eq!(fit(0), PACKETS_MAX);
        assert_eq!(fit(250), PACKETS_MAX);
        assert_eq!(fit(BYTES_MAX / 4), 4);
        assert_eq!(fit(BYTES_MAX / 4 + 1), 3);
        assert_eq!(fit(BYTES_MAX * 3), 1);
    }

    /// The one who answers a hello does so by itself, and what comes next may find no place.
    #[tokio::test]
    async fn a_channel_that_somebody_else_has_filled_is_not_closed() {
        let (to, mut incoming) = mpsc::channel(1);
        to.send(Bytes::from_static(b"hello")).await.expect("somebody reads");
        let mut queue = Queue::new(to, BYTES_MAX);
        let mut sending = Box::pin(send(&mut queue, 10));
        assert!(sending.as_mut().now_or_never().is_none(), "there is no room");
        assert_eq!(incoming.recv().await.expect("a packet"), "hello");
        sending.now_or_never().expect("there is room").expect("somebody reads");
        assert_eq!(incoming.recv().await.expect("a packet").len(), 10);
        assert_eq!(queue.bytes, 10);
        send(&mut queue, 20).await.expect("somebody reads");
        assert_eq!(queue.bytes, 20, "what was taken does not count any more");
    }

    #[tokio::test]
    async fn reading_makes_room() {
        let (mut queue, mut incoming) = queue();
        for round in 0..100 {
            let length = [10, BYTES_MAX / 2, 0, BYTES_MAX, 700][round % 5];
            send(&mut queue, length).now_or_never().expect("there is room").expect("somebody reads");
            assert_eq!(incoming.recv().await.expect("a packet").len(), length);
        }
        drop(incoming);
        assert!(send(&mut queue, 0).await.is_err());
    }
}
