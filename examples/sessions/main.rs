//! What keys are for: sessions that log out, temporary files that are removed, a cache that is told, and a leader that is the only one.
//!
//! `cargo run --example sessions` takes about two seconds. Stop it with Ctrl-C in between and start it again: what has expired meanwhile is told first.
#![allow(clippy::print_stdout, reason = "an example talks to the one who runs it")]

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;
use steadfast::{Change, Engine, Error, Expired, Failure, SECOND};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// For the demonstration, nobody is away for longer than this.
const AWAY: Duration = Duration::from_millis(700);

#[derive(Serialize, Deserialize)]
struct Session {
    user: String,
}

/// Told again until it has returned `Ok`, so it may be told more than once: the key of the expiry lets the other side see it once.
async fn log_out(expired: Expired, done: UnboundedSender<String>) -> Result<(), Failure> {
    let session: Session = expired.value()?;
    accounts::log_out(&session.user, &expired.idempotency_key()).await?;
    done.send(format!("{} was away for too long and is logged out", session.user))?;
    Ok(())
}

/// A file that is gone already is removed, too.
async fn remove(expired: Expired, done: UnboundedSender<String>) -> Result<(), Failure> {
    let path: String = expired.value()?;
    match tokio::fs::remove_file(&path).await {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => done.send(format!("{path} is removed"))?,
    }
    Ok(())
}

/// Keeps prices in memory, for as long as they are good. It watches first and lists then, so that nothing falls in between.
async fn keep_prices(engine: Engine) -> Result<(), Error> {
    let mut watch = engine.watch("price:").await?;
    let mut prices: BTreeMap<String, u32> = BTreeMap::new();
    for held in engine.keys("price:").all().await? {
        prices.insert(held.key.to_string(), held.value()?);
    }
    loop {
        let watched = watch.next().await?;
        match watched.change {
            Change::Put(held) => drop(prices.insert(held.key.to_string(), held.value()?)),
            Change::Expired { .. } | Change::Deleted { .. } => drop(prices.remove(watched.key.as_str())),
            _ => {}
        }
        println!("prices: {prices:?}");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (done, mut is_done) = unbounded_channel();
    let also_done = done.clone();
    let engine = Engine::open("data")?
        .on_expire("session:", move |expired| log_out(expired, done.clone()))
        .on_expire("file:", move |expired| remove(expired, also_done.clone()))
        .start()
        .await?;
    let cache = tokio::spawn(keep_prices(engine.clone()));

    let lease = engine.lease("leader").ttl(2 * SECOND).acquire_within(10 * SECOND).await?;
    println!("this process leads, with fence {}", lease.fence());

    let path = "upload.tmp";
    engine.put("file:upload", path).ttl(AWAY).await?; // before the file is there, so that no file is without its key
    tokio::fs::write(path, "half of a file").await?;
    engine.put("price:apple", &3).ttl(AWAY).await?;
    engine.put("session:42", &Session { user: "ada".into() }).ttl(AWAY / 2).await?;
    engine.renew("session:42", AWAY).await?; // she has clicked

    for _ in 0..2 {
        println!("{}", is_done.recv().await.unwrap_or_default());
    }
    println!("still leading: {}", lease.is_held());
    lease.release().await?;
    cache.abort();
    engine.shutdown().await;
    Ok(())
}

/// A service that knows who is there. A real one remembers the requests that it has carried out.
mod accounts {
    use super::Failure;

    pub(crate) async fn log_out(user: &str, request: &str) -> Result<(), Failure> {
        println!("accounts: {user} leaves, by request {request}");
        Ok(())
    }
}
