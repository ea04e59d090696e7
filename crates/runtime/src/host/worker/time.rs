//! The server's time, as a worker knows it: what runs see as now, and when their sleeps end, must not depend on where they are hosted.

use crate::clock::Clock;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use steadfast_kernel::Timestamp;

/// The worker's clock, set by that of the server.
pub(super) struct ServerTime {
    clock: Arc<dyn Clock>,
    /// How far the server is ahead, in microseconds.
    ahead: AtomicI64,
}

impl ServerTime {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        ServerTime { clock, ahead: AtomicI64::new(0) }
    }

    /// The server's clock showed that time between two times of the worker's. What may just as well be the way there and back is no difference.
    pub(super) fn set(&self, server: Timestamp, sent: Timestamp, received: Timestamp) {
        let way = received.as_micros().saturating_sub(sent.as_micros()).max(0) / 2;
        let ahead = server.as_micros().saturating_sub(sent.as_micros().saturating_add(way));
        let ahead = if ahead.saturating_abs() <= way { 0 } else { ahead };
        self.ahead.store(ahead, Ordering::Release);
    }
}

impl ServerTime {
    /// The server's clock has shown that time by now. What it says is over is over for its runs as well, however long the way here was.
    pub(super) fn at_least(&self, server: Timestamp) {
        let ahead = server.as_micros().saturating_sub(self.clock.now().as_micros());
        self.ahead.fetch_max(ahead, Ordering::AcqRel);
    }
}

impl Clock for ServerTime {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.now().as_micros().saturating_add(self.ahead.load(Ordering::Acquire)))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }

    fn steady_for(&self) -> Duration {
        self.clock.steady_for()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;

    #[tokio::test(start_paused = true)]
    async fn only_a_difference_that_is_not_the_way_counts() {
        let clock = Arc::new(VirtualClock::start());
        let time = ServerTime::new(Arc::<VirtualClock>::clone(&clock));
        let at = |micros| Timestamp::from_micros(micros);
        time.set(at(1_050), at(1_000), at(1_200));
        assert_eq!(time.now(), clock.now(), "it may have been read on the way");
        time.set(at(9_100), at(1_000), at(1_200));
        assert_eq!(time.now().as_micros() - clock.now().as_micros(), 8_000);
        time.set(at(100), at(1_000), at(1_000));
        assert_eq!(time.now().as_micros() - clock.now().as_micros(), -900);
        let now = clock.now().as_micros();
        time.at_least(at(now - 1_000));
        assert_eq!(time.now().as_micros() - now, -900, "that is long ago");
        time.at_least(at(now + 5));
        assert_eq!(time.now().as_micros() - now, 5, "the way was longer there than back");
    }
}
