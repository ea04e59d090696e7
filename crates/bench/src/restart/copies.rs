//! A store with a great many sleeping runs: an engine makes one, and the store is given copies of it, with the same records, row and timer under other
//! ids. To an engine they look as if it had made them; it would take it a long while.

use super::{BUILT, sleeping};
use anyhow::{Context, Result};
use std::path::Path;
use steadfast::{Clock, Engine, RunId, Status, SystemClock};
use steadfast_kernel::{Record, Timer};
use steadfast_store::{Append, Batch, Fence, RunRow, Store, TimerChange};
use steadfast_store_embedded::Embedded;

/// How many are made durable at once.
const BATCH: usize = 5_000;

pub(super) async fn build(folder: &Path, runs: usize) -> Result<()> {
    let store = Embedded::open(folder)?;
    let original = Original::make(&store).await?;
    let mut fence = {
        let head = store.claim(0).await?;
        Fence { shard: 0, term: head.term, after: head.seq, upto: head.seq + 1 }
    };
    for begin in (1..runs).step_by(BATCH) {
        let mut batch = Batch { fences: vec![fence], ..Batch::default() };
        for i in begin..runs.min(begin + BATCH) {
            original.copy(RunId::new(format!("0199a8f2-7c1e-7d3a-9b2f-{i:012x}"))?, &mut batch);
        }
        store.commit(batch).await?;
        (fence.after, fence.upto) = (fence.upto, fence.upto + 1);
    }
    println!("{BUILT}");
    std::future::pending().await // until it is killed
}

struct Original {
    journal: Vec<Record>,
    row: RunRow,
    timer: Timer,
}

impl Original {
    async fn make(store: &Embedded) -> Result<Self> {
        let engine = Engine::on(store.clone()).register(sleeping).start().await?;
        let run = engine.start("sleeping", &0).await?;
        while run.view().await?.status != Status::Waiting {
            SystemClock.sleep(std::time::Duration::from_millis(1)).await;
        }
        engine.shutdown().await;
        let timers = store.timers(0, None, 1).await?;
        Ok(Original {
            journal: store.journal(&run.id().into(), 0, 10).await?,
            row: store.run(run.id()).await?.context("it has a row")?,
            timer: timers.into_iter().next().context("it has a timer")?,
        })
    }

    fn copy(&self, run: RunId, batch: &mut Batch) {
        let append = |record: &Record| Append { shard: 0, entity: (&run).into(), record: record.clone() };
        batch.events.extend(self.journal.iter().map(append));
        batch.runs.push(RunRow { run: run.clone(), ..self.row.clone() });
        batch
            .timers
            .push(TimerChange::Arm { shard: 0, timer: Timer { entity: run.into(), ..self.timer.clone() } });
    }
}
