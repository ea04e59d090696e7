//! A transaction for every step, as an engine has it that asks the database for each: a row in a table, over as many connections as such engines usually have.

use crate::load::{Seen, Span, slice};
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steadfast_test_servers::PostgresServer;
use tokio::sync::{Mutex, mpsc};
use tokio_postgres::{Client, NoTls, Statement};

/// How many connections there are.
const CONNECTIONS: usize = 32;

/// How long what came of a step is.
const OUTPUT: &str = "{\"kind\":\"json\",\"bytes\":\"MQ==\",\"of\":\"a step that does nothing\"}";

/// Connections that nobody uses right now.
struct Pool {
    free: Mutex<mpsc::UnboundedReceiver<(Client, Statement)>>,
    back: mpsc::UnboundedSender<(Client, Statement)>,
    number: AtomicU64,
}

/// Steps per second of so many clients, each of which waits until its step is durable.
pub(super) async fn measure(server: &PostgresServer, database: &str, clients: usize, span: Span) -> Result<Seen> {
    let (back, free) = mpsc::unbounded_channel();
    for _ in 0..CONNECTIONS {
        let (client, connection) = tokio_postgres::connect(&server.url(database), NoTls).await?;
        tokio::spawn(connection);
        client
            .batch_execute("CREATE TABLE IF NOT EXISTS baseline (run text, step bigint, output text, at timestamptz DEFAULT now(), PRIMARY KEY (run, step))")
            .await?;
        let insert = client.prepare("INSERT INTO baseline (run, step, output) VALUES ($1, $2, $3)").await?;
        back.send((client, insert))?;
    }
    let pool = Arc::new(Pool { free: Mutex::new(free), back, number: AtomicU64::new(0) });
    slice(clients, span, move || step(Arc::clone(&pool))).await
}

async fn step(pool: Arc<Pool>) -> Result<()> {
    let number = pool.number.fetch_add(1, Ordering::Relaxed);
    let Some((client, insert)) = pool.free.lock().await.recv().await else { return Ok(()) };
    let run = format!("run-{}", number / 10);
    let done = client.execute(&insert, &[&run, &i64::try_from(number)?, &OUTPUT]).await;
    pool.back.send((client, insert))?;
    done?;
    Ok(())
}
