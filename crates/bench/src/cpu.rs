//! Processor time.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// What this process has used so far, in user and system mode, over all its threads.
pub(crate) fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
