//! The clock: is its date plausible, and does it go as fast as time passes?

use super::Finding;
use crate::duration::rough;
use crate::output::time;
use std::time::Duration;
use steadfast_kernel::Timestamp;

/// When this was written: no right clock is before it.
const WRITTEN_MICROS: i64 = 1_750_000_000_000_000;
/// How long the two clocks are compared.
const COMPARED_FOR: Duration = Duration::from_millis(100);
/// How far they may be apart after that: more means that somebody sets the clock right now.
const APART_MAX: Duration = Duration::from_millis(50);

pub(super) async fn check() -> Finding {
    let (wall, steady) = (time::now(), tokio::time::Instant::now());
    time::pass(COMPARED_FOR).await;
    let (passed, really) = (time::now().saturating_since(wall), steady.elapsed());
    of(wall, passed.abs_diff(really))
}

fn of(now: Timestamp, apart: Duration) -> Finding {
    let help = "set the clock, and let NTP look after it: retries and sleeps go by it";
    if now < Timestamp::from_micros(WRITTEN_MICROS) {
        return Finding::fail("clock", format!("it says {now}, which is over"), help);
    }
    if apart > APART_MAX {
        return Finding::warn("clock", format!("it was set while it was looked at, by about {}", rough(apart)), help);
    }
    Finding::ok("clock", format!("{now}, and it goes steadily"))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_clock_in_the_past_fails_and_one_that_jumps_is_told() {
        let now = time::parse("2026-01-01T12:00:00Z").unwrap();
        assert_eq!(of(Timestamp::EPOCH, Duration::ZERO).level, Level::Fail);
        assert_eq!(of(now, Duration::from_secs(3)).level, Level::Warn);
        assert_eq!(of(now, Duration::from_millis(2)).level, Level::Ok);
    }
}
