//! What the disk could do: a plain file with the same bytes, the same group commit, and nothing else.
//!
//! As many clients as the engine has play the commits of a run. Each makes the records of its commit, as an engine has to, and hands them to the engine's own group
//! commit. Behind that is no database but a thread that writes the bytes of a group to a plain file with one call, has them made durable with one
//! `fdatasync`, and answers. There is no state, no decision, no row, no index, no code that is replayed.
//!
//! The file stands on the engine's file system and is appended to, as anybody would who wants a durable log and nothing else. When it has grown
//! large it begins anew. (A file that was written full before and is written over needs about two thirds of the time on ext4, because its size and blocks need
//! not be recorded; SQLite's log is used like that once it has grown, and pays with pages instead of records.)

use anyhow::{Result, ensure};
use futures_util::FutureExt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use steadfast::{Clock, Entry, SystemClock};
use steadfast_kernel::{EntityId, Record};
use steadfast_runtime::measure::GroupCommit;
use steadfast_store::{Append, Batch, Error};
use tokio::sync::oneshot;

/// How large a file becomes before it begins anew.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A plain file behind a group commit.
#[derive(Clone)]
pub(crate) struct Disk(GroupCommit);

/// A group to be made durable.
struct Group {
    batch: Batch,
    durable: oneshot::Sender<Result<(), Error>>,
}

impl Disk {
    /// Makes the file in that folder.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let file = File::create_new(folder.join("limit"))?;
        let (line, groups) = channel::<Group>();
        std::thread::Builder::new().name("limit".into()).spawn(move || {
            if let Err(error) = write(&file, &groups) {
                eprintln!("the limit of the disk cannot be measured: {error}");
            }
        })?;
        Ok(Disk(GroupCommit::start(move |batch| {
            let (durable, is_durable) = oneshot::channel();
            let gone = || Err(Error::Unavailable { what: "the writer is gone".into(), source: None });
            let _writer_is_gone = line.send(Group { batch, durable });
            is_durable.map(move |outcome| outcome.unwrap_or_else(|_| gone())).boxed()
        })))
    }

    /// One commit after another, as a run makes them.
    pub(crate) async fn play(&self, run: &EntityId, commits: &[Vec<Entry>]) -> Result<()> {
        for entries in commits {
            let append = |entry| Append { shard: 0, entity: run.clone(), record: Record::from(entry) };
            let batch = Batch { events: entries.iter().map(append).collect(), ..Batch::default() };
            ensure!(self.0.commit(batch).await, "the writer is gone");
        }
        Ok(())
    }
}

fn write(file: &File, groups: &Receiver<Group>) -> io::Result<()> {
    let (mut bytes, mut offset) = (Vec::new(), 0);
    for Group { batch, durable } in groups {
        batch.events.iter().for_each(|append| put(&mut bytes, append));
        if offset > FILE_BYTES_MAX {
            file.set_len(0)?;
            offset = 0;
        }
        file.write_all_at(&bytes, offset)?;
        file.sync_data()?;
        offset += bytes.len() as u64;
        bytes.clear();
        let _client_is_gone = durable.send(Ok(()));
    }
    Ok(())
}

/// Everything that a record has, one after another.
fn put(bytes: &mut Vec<u8>, Append { entity, record, .. }: &Append) {
    let Record { seq, epoch, kind, at, subject, attempt, backoff_ms, reason, payload, body } = record;
    bytes.extend(entity.to_string().as_bytes());
    bytes.extend(seq.to_le_bytes());
    bytes.extend(epoch.to_le_bytes());
    bytes.extend(kind.as_bytes());
    bytes.extend(at.as_micros().to_le_bytes());
    attempt.iter().for_each(|attempt| bytes.extend(attempt.to_le_bytes()));
    backoff_ms.iter().for_each(|backoff| bytes.extend(backoff.to_le_bytes()));
    [subject, reason].into_iter().flatten().for_each(|text| bytes.extend(text.as_bytes()));
    payload.iter().for_each(|payload| bytes.extend(&payload.bytes));
    bytes.extend(body);
}

/// How long it takes to append a few hundred bytes and have them made durable, one after another.
pub(crate) fn fdatasync(folder: &Path, times: usize) -> Result<Vec<Duration>> {
    const BYTES: usize = 512;
    let file = File::create_new(folder.join("fdatasync"))?;
    let once = |i: usize| {
        let begun = SystemClock.now();
        file.write_all_at(&[b'x'; BYTES], (i * BYTES) as u64)?;
        file.sync_data()?;
        Ok(SystemClock.now().saturating_since(begun))
    };
    (0..times).map(once).collect()
}

/// The commits of a lone run. One ends where the host's report ends, which its last entry says; the start is one by itself.
pub(crate) fn commits_of(journal: &[Entry]) -> Vec<Vec<Entry>> {
    let ends = |entry: &Entry| entry.seq == 1 || entry.in_flight.is_some();
    journal.split_inclusive(ends).map(<[Entry]>::to_vec).collect()
}
