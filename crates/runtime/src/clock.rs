//! The one place that reads the clock.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::time::Duration;
use steadfast_kernel::Timestamp;

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Ends when that long has passed.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// For how long sleep and time go together. Whoever waits for a time looks at the clock after that: it may have been set, or the machine may have slept.
    fn steady_for(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::EPOCH.saturating_add(since.unwrap_or_default())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the Clock")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }
}

/// A clock that follows tokio's time: in a runtime whose time is paused, hours pass as soon as nothing else is to be done.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    origin: tokio::time::Instant,
    first: Timestamp,
}

impl VirtualClock {
    /// A clock that begins now, at a fixed date: the start of 2026.
    pub fn start() -> Self {
        VirtualClock::start_at(Timestamp::from_micros(1_767_225_600_000_000))
    }

    /// A clock that begins now, at that date.
    pub fn start_at(first: Timestamp) -> Self {
        VirtualClock { origin: tokio::time::Instant::now(), first }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.first.saturating_add(self.origin.elapsed())
    }

    #[expect(clippy::disallowed_methods, reason = "this is a Clock")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed()
    }

    fn steady_for(&self) -> Duration {
        Duration::MAX
    }
}
