//! The facts. `hold` is checked after every kill on what the process left behind, `hold_at_the_end` when everything is told.

mod directories;
mod records;
mod telling;

use super::left::Left;
use super::said::Said;
use std::collections::BTreeMap;
use steadfast_kernel::{Revision, TimerName};

/// After which process an end was first known to be told.
pub(super) type Settled = BTreeMap<(String, Revision), u32>;

pub(super) fn hold(left: &Left, said: &Said, settled: &mut Settled) {
    records::hold(left);
    let stays = said.stays();
    telling::hold(left, said, &stays, settled);
    directories::hold(left);
}

pub(super) fn hold_at_the_end(left: &Left) {
    assert_eq!(left.rows, [], "no key is left");
    assert_eq!(left.callbacks, [], "every end is told");
    assert_eq!(left.letters, [], "every letter was seen to");
    let others: Vec<_> = left.timers.iter().filter(|timer| timer.name != TimerName::Forget).collect();
    assert!(others.is_empty(), "nothing is to be done but to forget, not {others:?}");
}
