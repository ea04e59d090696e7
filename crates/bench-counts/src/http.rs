//! Starts runs over HTTP and waits for their results; the client is not counted.

use crate::region::{Uncounted, in_frozen_time};
use crate::runs;
use anyhow::{Context, Result, ensure};
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use steadfast::VirtualClock;
use steadfast_definitions::{Library, Settings};
use steadfast_kernel::{Timestamp, WorkflowName};
use steadfast_runtime::{Builder, Engine, Registered};
use steadfast_server::{Config, Parts, Server, install_metrics};
use steadfast_store::memory::Memory;
use steadfast_store::{Batch, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

const DEFINITION: &str =
    "workflow: one-step\nsteps:\n  - { name: add, set: { sum: \"{{ input.a + 1 }}\" } }\noutput: \"{{ steps.add.output }}\"\n";

type Client = Arc<Mutex<TcpStream>>;

pub(crate) fn start(operations: u32) -> Result<()> {
    in_frozen_time(operations, prepare, async |client, requests| {
        let client = Arc::clone(client);
        Uncounted::new(async move { post_all(&mut *client.lock().await, requests).await }).await
    })
}

async fn prepare() -> Result<Client> {
    let config = Config { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), ..Config::default() };
    let parts = Parts { metrics: Some(install_metrics()?), ..Parts::default() };
    let server = Server::bind(config, engine().await?, parts).await?;
    let stream = TcpStream::connect(server.addr()).await?;
    stream.set_nodelay(true)?;
    tokio::spawn(server.serve(pending()));
    Ok(Arc::new(Mutex::new(stream)))
}

/// An engine in memory with a workflow from a definition.
async fn engine() -> Result<Engine> {
    let (folder, store) = (tempfile::tempdir()?, Memory::new());
    std::fs::write(folder.path().join("one-step.yaml"), DEFINITION)?;
    let (library, changes) = Library::open(folder.path(), serde_json::Map::new(), Settings::default(), Vec::new())?;
    let definitions = changes.added.iter().map(|definition| definition.kept(Timestamp::EPOCH)).collect();
    store.commit(Batch { definitions, ..Batch::default() }).await?;
    let name = WorkflowName::new("one-step")?;
    let mut builder = Builder::new(Arc::new(store));
    builder.clock = Arc::new(VirtualClock::start());
    builder.registry.insert(name.clone(), Registered::new(Arc::new(library.code(&name))));
    Ok(builder.start().await?)
}

async fn post_all(stream: &mut TcpStream, requests: Range<u32>) -> Result<()> {
    for number in requests {
        let body = format!(r#"{{"workflow":"one-step","id":"{}","input":{{"a":1}},"waitMs":60000}}"#, runs::id(number));
        let length = body.len();
        let head =
            format!("POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        let answer = answer(stream).await?;
        ensure!(answer.starts_with("HTTP/1.1 201") && answer.contains("COMPLETED"), "the server answered {answer}");
    }
    Ok(())
}

/// The whole answer: its head, and as many bytes as that states.
async fn answer(stream: &mut TcpStream) -> Result<String> {
    let mut bytes = Vec::new();
    loop {
        ensure!(stream.read_buf(&mut bytes).await? > 0, "the server has closed the connection");
        let text = std::str::from_utf8(&bytes)?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.context("the answer does not state its length")?.parse()? {
            return Ok(text.to_owned());
        }
    }
}
