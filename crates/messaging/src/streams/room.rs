//! How much of its streams one connection keeps until somebody takes it: bounded in bytes, whatever the other side opens and sends.
//!
//! What is granted is a promise. Many streams get less each, so that all promises together stay near the bound for pieces of a usual length. Those that are longer than
//! half of what was granted cost less than they have, so bytes are counted as well, and the stream that goes beyond the bound is given up.

use super::UNIT;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The least that a stream is granted: less would let it send one piece at a time.
const WINDOW_MIN: u32 = 2;

/// A stream is granted at most one in so many of those units that nobody was promised.
const SHARE: usize = 4;

/// The room of one connection.
#[derive(Debug)]
pub(super) struct Room {
    bytes_max: usize,
    window_max: u32,
    /// What was promised, in units.
    promised: AtomicUsize,
    /// What has come and was not taken, in bytes.
    waiting: AtomicUsize,
}

/// What a stream was granted at first; free for others when it is dropped.
#[derive(Debug)]
pub(super) struct Promise {
    pub(super) window: u32,
    room: Arc<Room>,
}

/// Bytes that wait; there is room for others when it is dropped.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: usize,
    room: Arc<Room>,
}

impl Room {
    pub(super) fn new(bytes_max: usize, window_max: u32) -> Arc<Self> {
        let window_max = window_max.max(WINDOW_MIN);
        Arc::new(Room { bytes_max, window_max, promised: AtomicUsize::new(0), waiting: AtomicUsize::new(0) })
    }

    /// What a new stream is granted.
    pub(super) fn promise(self: &Arc<Self>) -> Promise {
        let free = (self.bytes_max / UNIT).saturating_sub(self.promised.load(Ordering::Relaxed));
        let window = u32::try_from(free / SHARE).unwrap_or(u32::MAX).clamp(WINDOW_MIN, self.window_max);
        self.promised.fetch_add(window as usize, Ordering::Relaxed);
        Promise { window, room: Arc::clone(self) }
    }

    /// Keeps so many bytes, if there is room for them.
    pub(super) fn keep(self: &Arc<Self>, bytes: usize) -> Option<Kept> {
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let kept = Kept { bytes, room: Arc::clone(self) };
        (before.saturating_add(bytes) <= self.bytes_max).then_some(kept)
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.room.promised.fetch_sub(self.window as usize, Ordering::Relaxed);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.room.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_streams_are_granted_less_and_what_is_given_back_is_granted_again() {
        let room = Room::new(1024 * UNIT, 64);
        let mut promises: Vec<_> = (0..256).map(|_| room.promise()).collect();
        let windows: Vec<_> = promises.iter().map(|promise| promise.window).collect();
        assert!(windows[..12].iter().all(|window| *window == 64), "a dozen get all that they may have: {windows:?}");
        assert!(windows.iter().rev().is_sorted() && windows.last() == Some(&WINDOW_MIN), "{windows:?}");
        assert!(windows.iter().sum::<u32>() <= 1024 + 256 * WINDOW_MIN);
        promises.truncate(1);
        assert_eq!(room.promise().window, 64);
        drop(promises);
        assert_eq!(room.promised.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn bytes_are_kept_up_to_the_bound_and_there_is_room_again_when_they_are_taken() {
        let room = Room::new(100, 64);
        let kept = room.keep(60).unwrap();
        assert!(room.keep(41).is_none());
        let rest = room.keep(40).unwrap();
        drop(kept);
        assert!(room.keep(60).is_some());
        drop(rest);
        assert_eq!(room.waiting.load(Ordering::Relaxed), 0);
    }
}
