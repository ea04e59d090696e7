//! What was heard and is not told yet: however much that is, there are only two things to tell.

use crate::Heard;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// What was heard and is not told yet, for those who implement [`Leases::heard`](crate::Leases::heard). It never grows: what is heard again before it is told is
/// told once.
#[derive(Debug, Default)]
pub struct Hearing {
    leases: AtomicBool,
    commits: AtomicBool,
    some: Notify,
}

impl Hearing {
    /// Keeps it for whoever asks next.
    pub fn hear(&self, heard: Heard) {
        self.of(heard).store(true, Ordering::SeqCst);
        self.some.notify_one();
    }

    /// Something may have been missed.
    pub fn hear_all(&self) {
        self.hear(Heard::Leases);
        self.hear(Heard::Commits);
    }

    /// The next thing to tell, once there is one.
    ///
    /// # Cancellation
    /// Nothing is lost if the future is dropped.
    pub async fn next(&self) -> Heard {
        loop {
            if let Some(heard) = self.take() {
                return heard;
            }
            self.some.notified().await;
        }
    }

    fn take(&self) -> Option<Heard> {
        let taken = [Heard::Leases, Heard::Commits]
            .into_iter()
            .find(|heard| self.of(*heard).swap(false, Ordering::SeqCst))?;
        if self.commits.load(Ordering::SeqCst) {
            self.some.notify_one(); // for another one who waits: both may have been heard before anybody looked
        }
        Some(taken)
    }

    fn of(&self, heard: Heard) -> &AtomicBool {
        match heard {
            Heard::Leases => &self.leases,
            Heard::Commits => &self.commits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::join;

    #[test]
    fn what_is_heard_again_is_told_once() {
        let hearing = Hearing::default();
        assert_eq!(hearing.next().now_or_never(), None);
        for heard in [Heard::Commits, Heard::Leases, Heard::Commits, Heard::Commits] {
            hearing.hear(heard);
        }
        assert_eq!([hearing.next().now_or_never(), hearing.next().now_or_never()], [Some(Heard::Leases), Some(Heard::Commits)]);
        assert_eq!(hearing.next().now_or_never(), None);
    }

    #[test]
    fn both_who_wait_are_told() {
        let hearing = Hearing::default();
        let mut waiting = Box::pin(join(hearing.next(), hearing.next()));
        assert_eq!((&mut waiting).now_or_never(), None);
        hearing.hear_all();
        assert_eq!(waiting.now_or_never(), Some((Heard::Leases, Heard::Commits)));
    }
}
