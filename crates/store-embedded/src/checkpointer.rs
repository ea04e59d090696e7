//! Moves the log into the main file while commits go on.
//!
//! A passive checkpoint waits for nobody and nobody waits for it, but under constant load it never sees the end of the log, which then cannot
//! start over. So the writer itself does what is left when the log has become long; by then most of it has been moved.

use crate::error;
use crate::open::connect;
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use std::ffi::c_int;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use steadfast_store::Error;

/// The log is moved each time it has grown by this many pages (4 MiB): rare enough to write a page that changes often only once.
const MOVE_PAGES: c_int = 1_000;

/// From this length on (64 MiB) the writer ends the log itself.
const LOG_PAGES_MAX: c_int = 16_000;

/// The thread. Dropping it moves what is left and closes the database.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    bell: Option<Bell>,
    thread: Option<JoinHandle<()>>,
}

/// Wakes the checkpointer; a second ring before it is awake is the same ring.
#[derive(Clone, Debug)]
pub(crate) struct Bell(SyncSender<()>);

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

/// Has the writer's connection ring the bell as its log grows. It takes the place of SQLite's own `wal_autocheckpoint`, which is a hook too.
pub(crate) fn watch(connection: &mut Connection, bell: Option<Bell>) -> rusqlite::Result<()> {
    let mut rung_at = 0;
    let hook = move |log: &mut Wal, pages: c_int| {
        if pages < rung_at {
            rung_at = 0; // the log has started over
        }
        if pages - rung_at >= MOVE_PAGES {
            rung_at = pages;
            let _awake_already = bell.as_ref().map(|bell| bell.0.try_send(()));
        }
        if pages >= LOG_PAGES_MAX {
            let _later = log.checkpoint(); // an error here would look like one of the commit, which is durable already
        }
        Ok(())
    };
    connection.wal_hook(Some(hook))
}
