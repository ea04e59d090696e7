//! Runs of a worker whose line is over while the worker may not know that yet.
//!
//! A line that has ended here may stand for its worker for a while, and what it has in flight goes on meanwhile. It lets go of everything before it was silent for its
//! heartbeat. So nobody else is given its runs before that time is over, unless the worker says that nothing is left: by a goodbye, or by coming again.

use super::peer::Peer;
use super::{Gone, Hello, Inner, Pool};
use crate::host::{Report, Says};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

impl Pool {
    /// A worker is gone, and what it hosted with it, now or once it has let go of it.
    pub(super) fn leave(self: &Arc<Self>, peer: &Arc<Peer>, gone: &Gone) {
        let mut inner = self.inner.lock();
        inner.peers.retain(|other| other.line() != peer.line());
        self.metrics.connected.set(inner.peers.len() as f64);
        let (sessions, rest) = (peer.sessions(), inner.rest(peer, gone));
        match Handle::try_current() {
            Ok(runtime) if !rest.is_zero() => {
                inner.held.push(Arc::clone(peer));
                drop(runtime.spawn(later(Arc::downgrade(self), peer.line(), rest)));
            }
            Ok(_) | Err(_) => self.lose(peer),
        }
        drop(inner);
        let (worker, line) = (peer.name(), peer.line());
        if gone.is_lost() {
            self.metrics.lost.increment(1);
            tracing::warn!(worker, line, sessions, why = %gone, after = ?rest, "a worker is lost; its runs are opened elsewhere, or wait");
        } else {
            tracing::info!(worker, line, sessions, why = %gone, "a worker is gone");
        }
    }

    /// A process says hello: nothing is left of what it hosted over older lines. Other lines of its name are over as well.
    pub(super) fn replace(&self, inner: &mut Inner, hello: &Hello) {
        let is_itself = |older: &Peer| older.is_process(&hello.name, hello.process);
        for older in inner.peers.iter().filter(|peer| peer.name() == hello.name) {
            older.end(Gone::Replaced);
            if is_itself(older) {
                self.lose(older); // now, so that the newer one may have its runs
            }
        }
        inner.peers.retain(|peer| !peer.is_gone());
        inner.held.extract_if(.., |older| is_itself(older)).for_each(|older| self.lose(&older));
    }

    /// Nothing is given to anybody any more, so that nothing need be held back.
    pub(crate) fn hold_nothing(&self) {
        let mut inner = self.inner.lock();
        inner.holds_nothing = true;
        std::mem::take(&mut inner.held).iter().for_each(|peer| self.lose(peer));
    }

    /// The worker of that line has let go of everything by now.
    fn let_go(&self, line: u64) {
        let mut inner = self.inner.lock();
        inner.held.extract_if(.., |peer| peer.line() == line).for_each(|peer| self.lose(&peer));
    }

    /// All sessions of a worker are over.
    fn lose(&self, peer: &Peer) {
        self.end_all(peer, || Says::Lost);
    }

    /// The worker goes in good order: what was on its way to it was never opened.
    pub(super) fn give_back(&self, peer: &Peer) {
        self.end_all(peer, || Says::GivenBack);
    }

    fn end_all(&self, peer: &Peer, says: fn() -> Says) {
        let ended = peer.lose();
        self.metrics.sessions.decrement(ended.len() as f64);
        for (session, run) in ended {
            self.report(Report { run, session, says: says(), weight: None });
        }
    }
}

impl Inner {
    /// How long it takes until a worker has certainly let go of what it hosts.
    fn rest(&self, peer: &Peer, gone: &Gone) -> Duration {
        if self.holds_nothing || gone.leaves_nothing() || peer.sessions() == 0 {
            return Duration::ZERO;
        }
        peer.heartbeat.saturating_sub(peer.quiet())
    }
}

async fn later(pool: std::sync::Weak<Pool>, line: u64, rest: Duration) {
    let Some(sleep) = pool.upgrade().map(|pool| pool.clock.sleep(rest)) else { return };
    sleep.await;
    pool.upgrade().iter().for_each(|pool| pool.let_go(line));
}
