//! Branches: whatever is asked for while a branch's future is polled belongs to that branch.
//!
//! Tested by `crates/sdk/tests/it/branches.rs`.

use super::board::Board;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use steadfast_kernel::InvalidId;
use steadfast_kernel::StepId;
use steadfast_kernel::random::{Seed, Stream};

/// A branch of a run: its path, and what is counted in it.
#[derive(Debug, Default)]
pub(super) struct Branch {
    pub(super) path: String,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// How often each name was used, by kind and name.
    names: BTreeMap<(&'static str, String), u32>,
    streams: BTreeMap<String, Stream>,
}

impl Branch {
    /// Which one of that kind and name this is, from 1.
    pub(super) fn count(&self, kind: &'static str, name: &str) -> u32 {
        let mut counts = self.counts.lock();
        let count = counts.names.entry((kind, name.to_string())).or_default();
        *count += 1;
        *count
    }

    /// The next number of a stream.
    pub(super) fn draw(&self, seed: &Seed, stream: &str) -> u64 {
        let mut counts = self.counts.lock();
        if let Some(stream) = counts.streams.get_mut(stream) {
            return stream.next_u64();
        }
        let mut new = Stream::new(seed, &self.path, stream);
        let number = new.next_u64();
        counts.streams.insert(stream.to_string(), new);
        number
    }

    /// A branch below this one.
    pub(super) fn child(&self, name: &str) -> Result<Arc<Branch>, InvalidId> {
        let path = StepId::branch(&self.path, name, self.count("branch", name))?.to_string();
        Ok(Arc::new(Branch { path, counts: Mutex::default() }))
    }

    fn numbered(&self, index: usize) -> Arc<Branch> {
        Arc::new(Branch { path: format!("{}.{index}", self.path), counts: Mutex::default() })
    }
}

/// Makes the branches of one join, race or the like.
#[derive(Clone)]
pub struct Fork {
    pub(super) board: Arc<Board>,
    pub(super) parent: Arc<Branch>,
}

impl Fork {
    /// The branch of that number, which does what the future does.
    pub fn branch<'a, T>(&self, index: usize, future: impl Future<Output = T> + Send + 'a) -> Scoped<'a, T> {
        Scoped { board: Arc::clone(&self.board), branch: self.parent.numbered(index), future: Box::pin(future) }
    }

    /// The only branch.
    pub fn only<'a, T>(self, future: impl Future<Output = T> + Send + 'a) -> Scoped<'a, T> {
        Scoped { board: self.board, branch: self.parent, future: Box::pin(future) }
    }
}

/// A future that is polled in a branch of its own.
pub struct Scoped<'a, T> {
    board: Arc<Board>,
    branch: Arc<Branch>,
    future: BoxFuture<'a, T>,
}

impl<T> Future for Scoped<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<T> {
        let board = Arc::clone(&self.board);
        let _left_again = Entered { outer: board.enter(Arc::clone(&self.branch)), board: &board };
        self.future.as_mut().poll(cx)
    }
}

/// Goes back to the branch around this one, also when a panic goes through it that the code catches further out.
struct Entered<'a> {
    board: &'a Board,
    outer: Arc<Branch>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.board.enter(Arc::clone(&self.outer));
    }
}
