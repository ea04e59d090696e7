//! Targets that are sick beside one that is well: how late the well one is told over HTTP, without and with the sick ones.
//!
//! Of the sick ones, nobody listens at one, and the other takes every call and never answers. Both are called as often as the well one.

use super::{builder, put, until};
use crate::report::{Measured, Report};
use anyhow::{Context, Result, anyhow, ensure};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::{Clock, Failure, SystemClock};
use steadfast_kernel::Target;
use steadfast_runtime::{Call, Caller};
use steadfast_server::{CallerSettings, HttpCaller};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How many keys of each target are due in a second.
const PER_S: u64 = 300;

/// In a runtime of its own, which has a driver for the network.
pub(super) async fn measure(report: &Report, folder: &Path, seconds: u64) -> Result<()> {
    let folder = folder.to_path_buf();
    let measured = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(Box::pin(both(folder, seconds)))
    });
    let (alone, beside) = measured.join().map_err(|_| anyhow!("the measurement panicked"))??;
    let say = |late, what: &str| report.say(&Measured::value("sick-target", PER_S as f64, what).percentiles(late));
    say(alone, "due per second; how late a target that is well had answered")?;
    say(beside, "the same beside two targets that are sick")
}

async fn both(folder: PathBuf, seconds: u64) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let alone = lateness(&folder.join("alone"), seconds, false).await?;
    Ok((alone, lateness(&folder.join("beside"), seconds, true).await?))
}

async fn lateness(folder: &Path, seconds: u64, with_sick: bool) -> Result<Vec<Duration>> {
    let (well, hangs) = (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
    let refuses = TcpListener::bind("127.0.0.1:0").await?.local_addr()?; // and nobody listens any more
    let [well_at, hangs_at, refuses_at] = [well.local_addr()?, hangs.local_addr()?, refuses].map(|address| format!("http://{address}/"));
    let servers = [tokio::spawn(answer(well)), tokio::spawn(hang(hangs))];
    let caller = Arc::new(Noting { http: HttpCaller::new(CallerSettings::default())?, well: well_at.clone(), late: Arc::default() });
    let mut builder = builder(folder)?;
    builder.caller = Some(caller.clone());
    let engine = builder.start().await?;
    let (count, first) = (PER_S * seconds, SystemClock.now().saturating_add(Duration::from_secs(3 + seconds / 4)));
    let puts = (0..count).flat_map(|number| {
        let ends_at = first.saturating_add(Duration::from_micros(number * 1_000_000 / PER_S));
        let targets = if with_sick { vec![&well_at, &hangs_at, &refuses_at] } else { vec![&well_at] };
        let engine = &engine;
        let one = move |(nth, url): (usize, &String)| put(engine, number * 3 + nth as u64, ends_at, Some(Target::Url(url.clone())));
        targets.into_iter().enumerate().map(one).collect::<Vec<_>>()
    });
    let mut puts = futures_util::stream::iter(puts).buffer_unordered(200);
    while let Some(outcome) = puts.next().await {
        outcome?;
    }
    drop(puts);
    ensure!(SystemClock.now() < first, "it took too long to put {count} keys");
    until(|| caller.late.lock().is_ok_and(|late| late.len() as u64 == count)).await;
    let failed = engine.callbacks("", None, 1).await?;
    ensure!(!with_sick || !failed.is_empty(), "the sick targets were not sick");
    engine.abort(); // what hangs is not waited for
    servers.iter().for_each(tokio::task::JoinHandle::abort);
    let late = std::mem::take(&mut *caller.late.lock().map_err(|_| anyhow!("a call panicked"))?);
    Ok(late)
}

/// Calls over HTTP, and notes how long after the end of the key the well target had answered.
struct Noting {
    http: HttpCaller,
    well: String,
    late: Arc<Mutex<Vec<Duration>>>,
}

impl Caller for Noting {
    fn check(&self, url: &str) -> Result<(), String> {
        self.http.check(url)
    }

    fn target(&self, url: &str) -> String {
        self.http.target(url)
    }

    fn call(&self, url: &str, call: Call) -> BoxFuture<'static, Result<(), Failure>> {
        let (expired_at, late) = (call.expired_at, (url == self.well).then(|| Arc::clone(&self.late)));
        let note = move |outcome: &Result<(), Failure>| {
            if let (Ok(()), Some(Ok(mut late))) = (outcome, late.as_ref().map(|late| late.lock())) {
                late.push(SystemClock.now().saturating_since(expired_at));
            }
        };
        self.http.call(url, call).inspect(note).boxed()
    }
}

/// Answers every request with nothing but a success.
async fn answer(listener: TcpListener) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream));
    }
}

async fn serve(mut stream: TcpStream) -> Result<()> {
    let mut read = Vec::new();
    loop {
        while let Some(length) = request(&read) {
            read.drain(..length);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
}

/// How long the first request is, if all of it is there.
fn request(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let body: usize = text.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse().ok()?;
    Some(head + body).filter(|length| bytes.len() >= *length)
}

/// Takes every call and never answers.
async fn hang(listener: TcpListener) -> Result<()> {
    let mut calls = Vec::new();
    loop {
        calls.push(listener.accept().await.context("nobody calls")?);
    }
}
