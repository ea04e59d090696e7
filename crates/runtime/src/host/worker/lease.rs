//! For how long a worker may have what it was given: two thirds of its heartbeat from when it said the last thing that the server has heard.

use crate::clock::Clock;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use steadfast_kernel::Timestamp;

pub(super) struct Lease {
    clock: Arc<dyn Clock>,
    every: Duration,
    /// The number of the last beat.
    number: u64,
    next: BoxFuture<'static, ()>,
    /// The beat that was heard last, then those that were not, in order. The first one is that of the beginning.
    beats: VecDeque<Beat>,
}

struct Beat {
    number: u64,
    at: Timestamp,
    over: BoxFuture<'static, ()>,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Say that number.
    Beat(u64),
    /// Let go of everything.
    Over,
}

impl Lease {
    pub(super) fn new(clock: Arc<dyn Clock>, heartbeat: Duration) -> Self {
        let every = heartbeat / 3;
        let first = Beat { number: 0, at: clock.now(), over: clock.sleep(2 * every) };
        Lease { next: clock.sleep(Duration::ZERO), clock, every, number: 0, beats: VecDeque::from([first]) }
    }

    /// Waits for the next thing to be done.
    pub(super) async fn due(&mut self) -> Due {
        let over = poll_fn(|cx| {
            if self.beats.front_mut().is_some_and(|beat| beat.over.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(true);
            }
            self.next.as_mut().poll(cx).map(|()| false)
        })
        .await;
        if over || self.is_over() {
            return Due::Over;
        }
        self.number += 1;
        self.next = self.clock.sleep(self.every);
        self.beats
            .push_back(Beat { number: self.number, at: self.clock.now(), over: self.clock.sleep(2 * self.every) });
        Due::Beat(self.number)
    }

    /// Whether its time is over by the clock, too: a machine that has slept does not know how long by any other.
    pub(super) fn is_over(&self) -> bool {
        self.beats.front().is_some_and(|beat| self.clock.now().saturating_since(beat.at) >= 2 * self.every)
    }

    /// The server has heard that beat. When it was said, and now; nothing if it was never said, or an older one.
    pub(super) fn heard(&mut self, number: u64) -> Option<(Timestamp, Timestamp)> {
        let index = self.beats.iter().position(|beat| beat.number == number)?;
        self.beats.drain(..index);
        let sent = self.beats.front()?.at;
        Some((sent, self.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;

    const HEARTBEAT: Duration = Duration::from_secs(9);

    #[tokio::test(start_paused = true)]
    async fn it_lasts_from_when_the_last_beat_that_was_heard_was_said() {
        let clock = Arc::new(VirtualClock::start());
        let began = clock.now();
        let mut lease = Lease::new(Arc::<VirtualClock>::clone(&clock), HEARTBEAT);
        assert_eq!(lease.due().await, Due::Beat(1));
        assert_eq!(lease.due().await, Due::Beat(2));
        assert_eq!(clock.now().saturating_since(began), HEARTBEAT / 3);
        assert!(lease.heard(2).is_some() && lease.heard(1).is_none() && lease.heard(7).is_none());
        assert_eq!(lease.due().await, Due::Beat(3), "it was said at 6 s, and nobody has heard it");
        assert_eq!(lease.due().await, Due::Over);
        assert_eq!(clock.now().saturating_since(began), HEARTBEAT, "two thirds after the second");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_who_answers_is_the_end_before_the_server_gives_up() {
        let clock = Arc::new(VirtualClock::start());
        let began = clock.now();
        let mut lease = Lease::new(Arc::<VirtualClock>::clone(&clock), HEARTBEAT);
        while lease.due().await != Due::Over {}
        assert_eq!(clock.now().saturating_since(began), 2 * HEARTBEAT / 3);
    }
}
