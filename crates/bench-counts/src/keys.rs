//! Puts keys and waits until each has expired and its handler was called.

use crate::region::in_virtual_time;
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use steadfast::{Engine, Expired, Failure, VirtualClock};
use tokio::sync::{Mutex, mpsc};

const TTL: Duration = Duration::from_secs(1);

struct Subject {
    engine: Engine,
    expired: Mutex<mpsc::UnboundedReceiver<Expired>>,
}

pub(crate) fn put_and_expiry(operations: u32) -> Result<()> {
    in_virtual_time(operations, prepare, async |subject, keys| {
        for number in keys {
            subject.engine.put(&format!("session:{number:08}"), &number).ttl(TTL).await?;
            let expired = subject.expired.lock().await.recv().await.context("the engine has stopped")?;
            ensure!(expired.value::<u32>().map_err(Failure::into_error)? == number, "another key has expired");
        }
        Ok(())
    })
}

async fn prepare() -> Result<Subject> {
    let (sender, expired) = mpsc::unbounded_channel();
    let handler = move |expired| {
        let sent = sender.send(expired);
        async move { Ok(sent?) }
    };
    let engine = Engine::in_memory().clock(VirtualClock::start()).on_expire("session:", handler).start().await?;
    Ok(Subject { engine, expired: Mutex::new(expired) })
}
