//! The requests of one route: so many side by side, those of one key one after the other, and so many in line.

use super::held::SHARE;
use super::line::{Entered, Key, Line};
use super::pace::Pace;
use super::route::{Begins, Incoming, Route};
use super::{Held, RETRY_AFTER};
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use steadfast_kernel::{Code, Failure};
use tokio::time::Instant;

pub(crate) struct Lane {
    pub(crate) name: Arc<str>,
    pub(crate) route: Route,
    pace: Pace,
    line: Mutex<Line<Box<Job>>>,
    /// How many wait, for whoever looks whether there is room.
    waiting: AtomicUsize,
    /// When those were last let go whose time is over.
    looked_at: Mutex<Option<Instant>>,
}

/// A request that is to be run.
pub(crate) struct Job {
    pub(crate) incoming: Incoming,
    pub(crate) held: Held,
    /// How many attempts this side has made, of a tell that it has taken.
    pub(crate) attempts: u32,
}

impl Lane {
    pub(crate) fn new(name: &str, route: Route) -> Self {
        let line = Mutex::new(Line::new(route.side_by_side));
        Lane { name: name.into(), route, pace: Pace::default(), line, waiting: AtomicUsize::new(0), looked_at: Mutex::default() }
    }

    /// Whether a request of that key and connection may come: it runs at once, or has room to wait.
    pub(crate) fn has_room(&self, key: &Key, connection: u64, now: Instant) -> bool {
        let fits = |mine: usize, all: usize| all < self.route.in_line && mine <= SHARE.saturating_mul(self.route.in_line - all);
        let all = self.waiting.load(Ordering::Relaxed);
        fits(all, all) || {
            self.let_go_of_the_late(now);
            let line = self.line.lock();
            fits(line.len_of(connection), line.len()) || !line.is_busy(key)
        }
    }

    /// What whoever finds no room is told.
    pub(crate) fn is_full(&self) -> Failure {
        let message = format!("too many requests wait for their turn at {}", self.name);
        Failure::new(Code::ResourceExhausted, message).retry_after(RETRY_AFTER)
    }

    /// Runs a request now, or when its turn comes. True if that was done here and not by a task of its own.
    pub(crate) fn run(self: Arc<Self>, key: Key, job: Box<Job>) -> bool {
        let mut line = self.line.lock();
        let owner = job.held.connection();
        let (key, job) = match line.enter(key, owner, job) {
            Entered::Runs(key, job) => (key, job),
            Entered::Waits(number) => {
                self.count(&line);
                let called_off = line.get(number).and_then(|job| job.held.called_off.clone());
                let is_given_up = line.get(number).is_some_and(|job| job.held.is_given_up());
                drop(line);
                if is_given_up {
                    self.give_up_tells(); // whoever ends the node may have looked before it was there
                }
                if called_off.is_some_and(|called_off| called_off.waits(&self, number)) {
                    self.call_off(number);
                }
                return false;
            }
        };
        drop(line);
        let at_once = self.begins_at_once();
        let turn = Turn { lane: self, at_once, over: false };
        if !at_once {
            tokio::spawn(turn.work(key, job));
            return false;
        }
        let mut work = Box::pin(turn.work(key, job));
        if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::spawn(work); // which asks it again, so that it knows whom to wake
        }
        true
    }

    fn begins_at_once(&self) -> bool {
        let may = match self.route.begins {
            Begins::AsSeen => self.pace.is_short(),
            Begins::AtOnce => true,
            Begins::InTasks => false,
        };
        may && self.waiting.load(Ordering::Relaxed) == 0 // who ends one goes on with those that wait
    }

    /// A request that waits by that number is called off; it may run by now.
    pub(super) fn call_off(&self, number: u64) {
        let job = {
            let mut line = self.line.lock();
            let job = line.leave(number);
            self.count(&line);
            job
        };
        if let Some(job) = job {
            job.held.refuse(&super::nobody_waits());
        }
    }

    /// Lets those go whose time is over. All who wait are looked at, so it is not done for everybody who comes.
    pub(super) fn let_go_of_the_late(&self, now: Instant) {
        {
            let mut looked_at = self.looked_at.lock();
            if looked_at.is_some_and(|at| now < at + RETRY_AFTER) {
                return;
            }
            *looked_at = Some(now);
        }
        let late = self.take(|job| job.held.is_late(job.incoming.ends_at, now));
        late.into_iter().for_each(|job| job.held.refuse(&super::too_late()));
    }

    /// The tells that this side has taken and that wait here are dead letters.
    pub(crate) fn give_up_tells(&self) {
        self.take(|job| job.held.is_taken()).into_iter().for_each(|job| super::taken::give_up(self, job));
    }

    fn take(&self, mut which: impl FnMut(&Job) -> bool) -> VecDeque<Box<Job>> {
        let mut line = self.line.lock();
        let taken = line.leave_if(|job| which(job));
        self.count(&line);
        taken.into()
    }

    fn count(&self, line: &Line<Box<Job>>) {
        self.waiting.store(line.len(), Ordering::Relaxed);
    }
}

/// The right to run one request at a time, and the duty to go on with those that wait.
struct Turn {
    lane: Arc<Lane>,
    /// It began where a request was read.
    at_once: bool,
    over: bool,
}

impl Turn {
    async fn work(mut self, mut key: Key, mut job: Box<Job>) {
        loop {
            // What panics beside the handler, such as the drop of what it held, is no reason to leave the others waiting.
            let running = AssertUnwindSafe(super::run(&self.lane, job, key.is_some())).catch_unwind();
            match self.lane.pace.watch(running).await {
                Ok(None) => {}
                Ok(Some(later)) => drop(tokio::spawn(later.come_back(Arc::clone(&self.lane)))),
                Err(_) => tracing::warn!("something panicked beside a handler"),
            }
            {
                let mut line = self.lane.line.lock();
                match line.next(key) {
                    Some(next) => (key, job) = next,
                    None => break,
                }
                self.lane.count(&line);
            }
            if std::mem::take(&mut self.at_once) {
                tokio::task::yield_now().await; // from here on it is a task: a connection is not kept from being read by what came over others
            }
        }
        self.over = true;
    }
}

/// Only the end of the runtime stops a turn before it is over. Nothing runs any more then: all that waits is let go, and whoever can still be told is.
impl Drop for Turn {
    fn drop(&mut self) {
        if !self.over {
            let left = std::mem::replace(&mut *self.lane.line.lock(), Line::new(self.lane.route.side_by_side));
            self.lane.waiting.store(0, Ordering::Relaxed);
            drop(left);
        }
    }
}
