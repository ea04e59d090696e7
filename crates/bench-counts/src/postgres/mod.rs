//! Commits batches through the PostgreSQL store to a scripted server; the server is not counted.

mod peer;

use crate::region::in_frozen_time;
use crate::runs;
use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use std::ops::Range;
use steadfast_kernel::{EntityId, Record, RunId};
use steadfast_store::memory::Memory;
use steadfast_store::{Append, Batch, Fence, RunRow, Store};
use steadfast_store_postgres::{Postgres, Settings};
use tempfile::TempDir;

/// The number of runs whose commits wait together and become one transaction.
const RUNS: u32 = 8;

/// The number of commits of a run of one step: its start, and the rest.
const COMMITS: u32 = 2;

struct Subject {
    store: Postgres,
    commits: [Vec<Record>; COMMITS as usize],
    row: RunRow,
    _socket: TempDir,
}

pub(crate) fn commit(operations: u32) -> Result<()> {
    in_frozen_time(operations, prepare, async |subject, commits| {
        for first in commits.step_by((RUNS * COMMITS) as usize) {
            let batches = subject.batches(first..first + RUNS * COMMITS)?;
            try_join_all(batches.into_iter().map(|batch| subject.store.commit(batch))).await?;
        }
        Ok(())
    })
}

impl Subject {
    fn batches(&self, numbers: Range<u32>) -> Result<Vec<Batch>> {
        numbers.map(|number| self.batch(number)).collect()
    }

    /// The nth commit of the only shard.
    fn batch(&self, number: u32) -> Result<Batch> {
        let run = RunId::new(runs::id(number / COMMITS))?;
        let records = &self.commits[(number % COMMITS) as usize];
        let append = |record: &Record| Append { shard: 0, entity: EntityId::Run(run.clone()), record: record.clone() };
        let fence = Fence { shard: 0, term: 1, after: number.into(), upto: u64::from(number) + 1 };
        let row = RunRow { run: run.clone(), ..self.row.clone() };
        Ok(Batch { fences: vec![fence], events: records.iter().map(append).collect(), runs: vec![row], ..Batch::default() })
    }
}

async fn prepare() -> Result<Subject> {
    let socket = tempfile::tempdir()?;
    peer::listen(socket.path())?;
    let folder = socket.path().to_str().context("the folder of temporary files has a name that is not UTF-8")?;
    let store = Postgres::open(Settings::new(format!("postgresql:///work?host={folder}&user=steadfast&sslmode=disable"))).await?;
    let (start, rest, row) = recorded().await?;
    Ok(Subject { store, commits: [start, rest], row, _socket: socket })
}

/// The batches of a one-step run.
async fn recorded() -> Result<(Vec<Record>, Vec<Record>, RunRow)> {
    let memory = Memory::new();
    let engine = runs::on(memory.clone()).await?;
    let run = engine.start("steps", &1).id(runs::id(0)).await?;
    run.result::<u32>().await?;
    let mut start = memory.journal(&EntityId::Run(run.id().clone()), 0, 100).await?;
    let rest = start.split_off(1);
    let row = memory.run(run.id()).await?.context("the run has no row")?;
    engine.shutdown().await;
    Ok((start, rest, row))
}
