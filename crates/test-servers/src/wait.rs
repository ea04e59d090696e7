//! Waiting for a fact, with a bound.

use std::time::{Duration, Instant};

/// Looks again and again until something holds.
///
/// # Panics
/// If it does not hold within that time; the text says what did not.
#[expect(clippy::disallowed_methods, reason = "other processes are waited for, which know nothing of a clock of ours")]
pub fn wait_until(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < within, "waited {within:?} for nothing: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
