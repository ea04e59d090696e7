//! The end of a node: what it has taken is done or kept, what it has answered is written, and then all connections are cut.

use super::{Inner, Node};
use crate::time;
use futures_util::future::join_all;
use std::future::Future;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// How long answers have to be written when a node is closed whose patience has ended.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// How long links have to send what they were given before they were cut, those that this side has made as well as others: as long as wires give them.
const LINGER: Duration = Duration::from_secs(1);

/// How long dead letters have to be kept when a node is closed whose patience has ended.
const LAST_LETTERS: Duration = Duration::from_secs(5);

impl Node {
    /// Ends when the node is closed.
    pub async fn closed(&self) {
        self.inner.closed.cancelled().await;
    }

    /// As [`close`](Self::close), after that work, which needs streams of this node to come to its end. No call, tell or stream is taken meanwhile. Tells that were taken before are waited for
    /// before that work begins, for as long again: it may be the end of whoever keeps dead letters.
    pub async fn close_after(&self, work: impl Future<Output = ()>, patience: Duration) {
        let inner = &self.inner;
        inner.closing.store(true, Ordering::SeqCst);
        inner.wait(time::after(patience), Inner::has_done_what_it_took).await;
        inner.give_up_tells().await;
        work.await;
        self.close(patience).await;
    }

    /// Takes nothing more, waits for what runs and for dead letters to be kept, but not for longer than that, and cuts all connections, streams with them. Tells that were taken and are not
    /// done by then are dead letters.
    /// What is answered is still written, if the other side reads it. Forgets the routes, and with them what their handlers hold.
    /// Its own requests end then, with a failure that says so, and so do those that are sent later.
    pub async fn close(&self, patience: Duration) {
        let inner = &self.inner;
        inner.closing.store(true, Ordering::SeqCst);
        let until = time::after(patience);
        inner.wait(until, Inner::is_idle).await;
        inner.give_up_tells().await;
        let left = inner.load.count();
        if left > 0 {
            tracing::warn!(node = %inner.name, requests = left, "the node ends while requests run or wait: their callers have to ask again");
        }
        inner.closed.cancel();
        let connections: Vec<_> = inner.connections.lock().values().cloned().collect();
        connections.iter().for_each(|connection| connection.outgoing.close());
        let written = join_all(connections.iter().map(|connection| connection.ended()));
        let _some_do_not_read = tokio::time::timeout_at(until.max(time::after(LAST_WORDS)), written).await;
        connections.iter().for_each(|connection| connection.cut());
        #[cfg(feature = "http2")]
        {
            let ports = std::mem::take(&mut *inner.listening.lock());
            join_all(ports.into_iter().map(|port| port.close())).await;
        }
        let gone = join_all(connections.iter().map(|connection| connection.gone.wait()));
        let _a_wire_does_not_keep_to_it = tokio::time::timeout(LINGER, gone).await;
        let routes = std::mem::take(&mut *inner.routes.write());
        drop(routes); // whose handlers may hold this node
    }
}

impl Inner {
    /// Waits until that is so, but not for longer than until then.
    async fn wait(&self, until: Instant, is_so: fn(&Inner) -> bool) {
        loop {
            let idle = self.idle.notified();
            if is_so(self) || tokio::time::timeout_at(until, idle).await.is_err() {
                return;
            }
        }
    }

    fn has_done_what_it_took(&self) -> bool {
        self.taken.load(Ordering::SeqCst) == 0 && self.postings.count() == 0
    }

    /// Tells that were taken and are not done are dead letters, whether they run or wait.
    async fn give_up_tells(&self) {
        self.gives_up.cancel();
        let lanes: Vec<_> = self.lanes.lock().iter().filter_map(Weak::upgrade).collect();
        lanes.iter().for_each(|lane| lane.give_up_tells());
        self.wait(time::after(LAST_LETTERS), Inner::has_done_what_it_took).await;
        let left = self.postings.count();
        if left > 0 {
            tracing::error!(node = %self.name, letters = left, "the node ends while dead letters wait to be kept: they are lost if its process ends now");
        }
    }
}
