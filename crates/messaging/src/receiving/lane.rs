//! The requests of one route: so many side by side, those of one key one after the other, the rest in line.

use super::Held;
use super::route::{Incoming, Route};
use futures_util::FutureExt;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

pub(crate) struct Lane {
    pub(crate) name: Arc<str>,
    pub(crate) route: Route,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    waiting: VecDeque<Box<Job>>,
    /// The keys of which a request runs, and those that wait for it.
    keys: HashMap<Vec<u8>, VecDeque<Box<Job>>>,
}

/// A request that is to be run.
pub(crate) struct Job {
    pub(crate) incoming: Incoming,
    pub(crate) held: Held,
    pub(crate) key: Option<Vec<u8>>,
}

impl Lane {
    pub(crate) fn new(name: &str, route: Route) -> Self {
        Lane { name: name.into(), route, state: Mutex::default() }
    }

    /// Runs a request now, or when its turn comes.
    pub(crate) fn run(self: Arc<Self>, job: Box<Job>) {
        let job = {
            let mut state = self.state.lock();
            if state.running >= self.route.side_by_side {
                return state.waiting.push_back(job);
            }
            let Some(job) = state.free(job) else { return };
            state.running += 1;
            job
        };
        tokio::spawn(Turn { lane: self, over: false }.work(job));
    }

    /// Takes the tells that this side has taken out of their lines.
    pub(crate) fn take_tells(&self) -> VecDeque<Box<Job>> {
        let mut state = self.state.lock();
        let State { waiting, keys, .. } = &mut *state;
        let mut tells = VecDeque::new();
        for line in std::iter::once(waiting).chain(keys.values_mut()) {
            let (taken, left): (VecDeque<_>, VecDeque<_>) = line.drain(..).partition(|job| job.held.is_taken());
            *line = left;
            tells.extend(taken);
        }
        tells
    }
}

impl State {
    /// The job, if no other of its key runs; it waits for that one if not.
    fn free(&mut self, job: Box<Job>) -> Option<Box<Job>> {
        let Some(key) = &job.key else { return Some(job) };
        match self.keys.get_mut(key) {
            Some(line) => {
                line.push_back(job);
                None
            }
            None => {
                self.keys.insert(key.clone(), VecDeque::new());
                Some(job)
            }
        }
    }

    /// What is next for somebody who has just run a job of that key; who is done if there is nothing, before anybody else looks.
    fn next(&mut self, key: Option<Vec<u8>>) -> Option<Box<Job>> {
        let next = self.find_next(key);
        self.running -= usize::from(next.is_none());
        next
    }

    fn find_next(&mut self, key: Option<Vec<u8>>) -> Option<Box<Job>> {
        if let Some(key) = key {
            match self.keys.get_mut(&key).and_then(VecDeque::pop_front) {
                Some(job) => return Some(job),
                None => drop(self.keys.remove(&key)),
            }
        }
        while let Some(job) = self.waiting.pop_front() {
            if let Some(job) = self.free(job) {
                return Some(job);
            }
        }
        None
    }
}

/// The right to run one request at a time, and the duty to go on with those that wait.
struct Turn {
    lane: Arc<Lane>,
    over: bool,
}

impl Turn {
    async fn work(mut self, mut job: Box<Job>) {
        loop {
            let key = job.key.take();
            // What panics beside the handler, such as the drop of what it held, is no reason to leave the others waiting.
            let running = AssertUnwindSafe(super::run(&self.lane, job));
            if running.catch_unwind().await.is_err() {
                tracing::warn!("something panicked beside a handler");
            }
            match self.lane.state.lock().next(key) {
                Some(next) => job = next,
                None => break,
            }
        }
        self.over = true;
    }
}

/// Only the end of the runtime stops a turn before it is over. Nothing runs any more then: all that waits is let go, and whoever can still be told is.
impl Drop for Turn {
    fn drop(&mut self) {
        if !self.over {
            let left = std::mem::take(&mut *self.lane.state.lock());
            drop(left);
        }
    }
}
