//! What the disk could do: a plain file with the same bytes, the same group commit, and nothing else.
//!
//! As many clients as the engine has play the commits of a run, each of which carries the bytes of the records that the engine's commit has. One
//! thread takes whatever is waiting, writes it with one call, has it made durable with one `fdatasync`, and answers everybody in the group. That
//! is the least that any engine has to do that acknowledges nothing before it is on the disk.
//!
//! The file stands on the engine's file system. It is written full before the measurement, and from its beginning again when its end is reached,
//! as a write-ahead log is that is used again: then `fdatasync` has neither a new size nor new blocks to record. A file that grows is slower, by how much
//! depends on the file system, and would flatter the engine.

use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use steadfast::{Clock, Entry, SystemClock};
use steadfast_kernel::Record;
use tokio::sync::oneshot;

const FILE_BYTES: usize = 64 << 20;

/// The line to the thread that writes. It ends when the last of these is gone.
#[derive(Clone)]
pub(crate) struct Disk(Sender<Commit>);

struct Commit {
    bytes: usize,
    durable: oneshot::Sender<()>,
}

impl Disk {
    /// Makes the file in that folder.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let file = full_file(&folder.join("limit"))?;
        let (line, commits) = channel();
        std::thread::Builder::new().name("limit".into()).spawn(move || {
            if let Err(error) = write(&file, &commits) {
                eprintln!("the limit of the disk cannot be measured: {error}");
            }
        })?;
        Ok(Disk(line))
    }

    /// One commit after another, as a run makes them.
    pub(crate) async fn play(&self, commits: &[usize]) -> Result<()> {
        for &bytes in commits {
            let (durable, is_durable) = oneshot::channel();
            self.0.send(Commit { bytes, durable }).ok().context("the writer is gone")?;
            is_durable.await?;
        }
        Ok(())
    }
}

fn full_file(path: &Path) -> Result<File> {
    let file = File::create_new(path)?;
    file.write_all_at(&vec![0; FILE_BYTES], 0)?;
    file.sync_all()?;
    Ok(file)
}

fn write(file: &File, commits: &Receiver<Commit>) -> std::io::Result<()> {
    let (mut group, mut bytes, mut offset) = (Vec::new(), Vec::new(), 0);
    while let Ok(first) = commits.recv() {
        group.push(first);
        group.extend(commits.try_iter());
        for commit in &group {
            bytes.resize(bytes.len() + commit.bytes, b'x');
        }
        if offset + bytes.len() > FILE_BYTES {
            offset = 0;
        }
        file.write_all_at(&bytes, offset as u64)?;
        file.sync_data()?;
        offset += bytes.len();
        bytes.clear();
        for commit in group.drain(..) {
            let _client_is_gone = commit.durable.send(());
        }
    }
    Ok(())
}

/// How long it takes to write a few hundred bytes and have them made durable, one after another.
pub(crate) fn fdatasync(folder: &Path, times: usize) -> Result<Vec<Duration>> {
    const BYTES: usize = 512;
    let file = full_file(&folder.join("fdatasync"))?;
    let once = |i: usize| {
        let begun = SystemClock.now();
        file.write_all_at(&[b'x'; BYTES], (i * BYTES % FILE_BYTES) as u64)?;
        file.sync_data()?;
        Ok(SystemClock.now().saturating_since(begun))
    };
    (0..times).map(once).collect()
}

/// The bytes of each commit of a lone run. A commit ends where the host's report ends, which its last entry says; the start is one by itself.
pub(crate) fn commits_of(journal: &[Entry]) -> Vec<usize> {
    let ends = |entry: &Entry| entry.seq == 1 || entry.in_flight.is_some();
    journal
        .split_inclusive(ends)
        .map(|commit| commit.iter().map(|entry| record_bytes(&Record::from(entry))).sum())
        .collect()
}

/// What a record is made of; the numbers count eight bytes each.
fn record_bytes(record: &Record) -> usize {
    let Record { seq: _, epoch: _, kind, at: _, subject, attempt, backoff_ms, reason, payload, body } = record;
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let numbers = 3 + usize::from(attempt.is_some()) + usize::from(backoff_ms.is_some());
    8 * numbers + kind.len() + text(subject) + text(reason) + payload.as_ref().map_or(0, |payload| payload.len()) + body.len()
}
