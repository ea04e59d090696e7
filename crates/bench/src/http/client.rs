//! A client that costs as little as it can, so that the server is what is measured: one connection, one request at a time.

use anyhow::{Context, Result, bail, ensure};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, buffer: Vec::with_capacity(4096) })
    }

    /// Sends a JSON body, and reads the whole answer: its status.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Result<u16> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(head.as_bytes()).await?;
        self.answer().await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<u16> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await?;
        self.answer().await
    }

    /// Begins to follow a run, and reads until the server has said where it begins.
    pub(crate) async fn follow(&mut self, run: &str) -> Result<()> {
        self.stream
            .write_all(format!("GET /v1/events?id={run} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())
            .await?;
        self.buffer.clear();
        while !contains(&self.buffer, b"id: ") {
            self.read().await?;
        }
        ensure!(self.buffer.starts_with(b"HTTP/1.1 200"), "the feed was refused");
        Ok(())
    }

    async fn answer(&mut self) -> Result<u16> {
        self.buffer.clear();
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.read().await?;
        };
        let text = std::str::from_utf8(&self.buffer[..head])?;
        let status = text.split(' ').nth(1).context("there is no status")?.parse()?;
        let length = text.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length:")
                .map(|length| length.trim().parse::<usize>())
        });
        let length = length.context("the length of the answer is not said")??;
        while self.buffer.len() < head + length {
            self.read().await?;
        }
        Ok(status)
    }

    async fn read(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server has closed the connection");
        }
        Ok(())
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    find(text, what).is_some()
}

/// Connections that wait to be used again.
pub(crate) struct Pool {
    addr: SocketAddr,
    idle: Mutex<Vec<Client>>,
}

impl Pool {
    pub(crate) fn new(addr: SocketAddr) -> Arc<Self> {
        Arc::new(Pool { addr, idle: Mutex::default() })
    }

    pub(crate) async fn take(&self) -> Result<Client> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        match idle {
            Some(client) => Ok(client),
            None => Client::connect(self.addr).await,
        }
    }

    pub(crate) fn give_back(&self, client: Client) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(client);
        }
    }
}
