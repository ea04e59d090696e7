//! A transaction for every step: what an engine does that asks the database for each. It has the same tables, the same record of a step and the same fence as ours, and
//! as many connections as such engines usually have; what it does not have is company.

use crate::load::{Seen, Span, slice};
use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steadfast::{Entry, Run, Store};
use steadfast_kernel::{EntityId, Record, RunId};
use steadfast_store::{Append, Batch, Fence, ShardId};
use steadfast_store_postgres::{Postgres, Settings};
use steadfast_test_servers::PostgresServer;
use tokio::sync::{Mutex, mpsc};

/// How many connections write.
const WRITERS: ShardId = 32;

/// One connection, with a shard that it alone writes.
struct Writer {
    store: Postgres,
    fence: Fence,
}

/// Those that nobody uses right now.
struct Pool {
    free: Mutex<mpsc::UnboundedReceiver<Writer>>,
    back: mpsc::UnboundedSender<Writer>,
    number: AtomicU64,
    step: Record,
}

/// Steps per second of so many clients, each of which waits until its step is durable. A step is as in the journal of that run.
pub(super) async fn measure(server: &PostgresServer, run: &Run, clients: usize, span: Span) -> Result<Seen> {
    let journal: Vec<Entry> = run.journal().await?;
    let step = journal.get(1).map(Record::from).context("a run has steps")?;
    let (database, (back, free)) = (server.database(), mpsc::unbounded_channel());
    for shard in 0..WRITERS {
        let store = Postgres::open(Settings::new(server.url(&database))).await?;
        let head = store.claim(shard).await?;
        back.send(Writer { store, fence: Fence { shard, term: head.term, after: head.seq, upto: head.seq + 1 } })?;
    }
    let pool = Arc::new(Pool { free: Mutex::new(free), back, number: AtomicU64::new(0), step });
    slice(clients, span, move || write(Arc::clone(&pool))).await
}

async fn write(pool: Arc<Pool>) -> Result<()> {
    let Some(mut writer) = pool.free.lock().await.recv().await else { return Ok(()) };
    let number = pool.number.fetch_add(1, Ordering::Relaxed);
    let entity = EntityId::Run(RunId::new(format!("run-{}", number / 10))?);
    let record = Record { seq: number % 10 + 1, ..pool.step.clone() };
    let shard = writer.fence.shard;
    let batch = Batch { fences: vec![writer.fence], events: vec![Append { shard, entity, record }], ..Batch::default() };
    let outcome = writer.store.commit(batch).await;
    (writer.fence.after, writer.fence.upto) = (writer.fence.upto, writer.fence.upto + 1);
    pool.back.send(writer)?;
    Ok(outcome?)
}
