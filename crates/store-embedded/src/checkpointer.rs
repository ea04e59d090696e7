//! Moves the log into the main file while commits go on.
//!
//! A passive checkpoint waits for nobody and nobody waits for it, but under constant load it never sees the end of the log, which then cannot
//! start over. So the writer itself does what is left when the log has become long; by then most of it has been moved.
//!
//! The log cannot start over while somebody reads an old state of it (a person's `sqlite3` with a transaction that was left open), nor while the main
//! file cannot grow. It is then let grow up to a bound, and from there on commits are refused until it can.

use crate::error;
use crate::open::connect;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, Row};
use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use steadfast_store::Error;

/// The log is moved each time it has grown by this many pages (4 MiB): rare enough to write a page that changes often only once.
const MOVE_PAGES: c_int = 1_000;

/// From this length on (64 MiB) the writer ends the log itself.
const LOG_PAGES_MAX: c_int = 16_000;

/// At this length (1 GiB) nothing more is written until the log could be moved: a disk that it fills up would be worse for everybody.
const LOG_PAGES_BOUND: c_int = 262_144;

/// A log that was longer gives the disk back what is over this when it starts over.
const LOG_BYTES_KEPT: i64 = 64 << 20;

/// The thread. Dropping it moves what is left and closes the database.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    bell: Option<Bell>,
    thread: Option<JoinHandle<()>>,
}

/// Wakes the checkpointer; a second ring before it is awake is the same ring.
#[derive(Clone, Debug)]
pub(crate) struct Bell(SyncSender<()>);

impl Bell {
    pub(crate) fn ring(&self) {
        let _awake_already = self.0.try_send(());
    }
}

impl Checkpointer {
    pub(crate) fn start(path: &Path) -> Result<Self, Error> {
        let connection = connect(path)?;
        let (bell, rings) = sync_channel(1);
        let thread = thread::Builder::new().name("steadfast-checkpointer".into()).spawn(move || run(&connection, &rings));
        let thread = thread.map_err(|error| error::io(path, "start the checkpointer of", error))?;
        Ok(Checkpointer { bell: Some(Bell(bell)), thread: Some(thread) })
    }

    /// The bell, for the writer. All clones have to be dropped before the checkpointer is.
    pub(crate) fn bell(&self) -> Option<Bell> {
        self.bell.clone()
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.bell = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the checkpointer of the store has panicked");
        }
    }
}

fn run(connection: &Connection, rings: &Receiver<()>) {
    while rings.recv().is_ok() {
        checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)");
    }
    checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/// What cannot be moved now stays in the log, where it is safe, and is moved the next time.
fn checkpoint(connection: &Connection, pragma: &str) {
    if let Err(error) = connection.query_row(pragma, [], |_| Ok(())) {
        tracing::warn!(%error, "the log of the store could not be moved into the main file");
    }
}

/// How long the log is, as the last commit has left it.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pages: Arc<AtomicI32>,
    bound: c_int,
}

impl Default for Log {
    fn default() -> Self {
        Log { pages: Arc::default(), bound: LOG_PAGES_BOUND }
    }
}

impl Log {
    /// A log of which nothing is known yet.
    #[cfg(test)]
    pub(crate) fn bounded(bound: c_int) -> Self {
        Log { bound, ..Log::default() }
    }

    /// True if there is room for one more commit: the log is short enough, or all of it could be moved, so that it starts over.
    pub(crate) fn has_room(&self, connection: &Connection) -> rusqlite::Result<bool> {
        if self.pages.load(Ordering::Relaxed) < self.bound {
            return Ok(true);
        }
        let moved = |row: &Row<'_>| Ok(row.get::<_, i64>("log")? == row.get::<_, i64>("checkpointed")?);
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], moved)
    }
}

/// Has the writer's connection ring the bell as its log grows. It takes the place of SQLite's own `wal_autocheckpoint`, which is a hook too.
pub(crate) fn watch(connection: &mut Connection, bell: Option<Bell>, length: &Log) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_KEPT, |_| Ok(()))?;
    let pages_now = Arc::clone(&length.pages);
    let (mut rung_at, mut tried_at) = (0, 0);
    let hook = move |log: &mut Wal, pages: c_int| {
        pages_now.store(pages, Ordering::Relaxed);
        if pages < rung_at {
            (rung_at, tried_at) = (0, 0); // the log has started over
        }
        if pages - rung_at >= MOVE_PAGES {
            rung_at = pages;
            bell.iter().for_each(Bell::ring);
        }
        if pages >= LOG_PAGES_MAX && pages - tried_at >= MOVE_PAGES {
            if tried_at > 0 {
                tracing::warn!(
                    pages,
                    "the log of the store cannot start over: somebody reads an old state of it, or the main file cannot grow"
                );
            }
            tried_at = pages;
            let _later = log.checkpoint(); // an error here would look like one of the commit, which is durable already
        }
        Ok(())
    };
    connection.wal_hook(Some(hook))
}
