//! Time, as far as this crate needs it: tokio's, which tests can pause.

use std::time::Duration;
use tokio::time::Instant;

/// The farthest end of anything: some thirty years.
const FAR: Duration = Duration::from_secs(1 << 30);

/// That long from now; very far if there is no such time.
pub(crate) fn after(duration: Duration) -> Instant {
    from(Instant::now(), duration)
}

/// That long after a time.
pub(crate) fn from(start: Instant, duration: Duration) -> Instant {
    start.checked_add(duration.min(FAR)).unwrap_or(start)
}

/// Ends at that time.
#[expect(clippy::disallowed_methods, reason = "messages do not take part in replay, and tests pause tokio's time")]
pub(crate) async fn until(at: Instant) {
    tokio::time::sleep_until(at).await;
}
