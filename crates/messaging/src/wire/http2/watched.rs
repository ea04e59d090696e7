//! A connection that is watched while it begins: HTTP/2 does not tell what the other side speaks if it is not HTTP/2, nor which alert TLS has got.

use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many of the first bytes are kept.
const FIRST: usize = 5;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) first: Vec<u8>,
    pub(super) tls: Option<rustls::Error>,
}

impl Seen {
    /// What the other side speaks, if it is surely not HTTP/2.
    pub(super) fn speaks(&self) -> Option<&'static str> {
        match self.first.as_slice() {
            [0x15 | 0x16, 3, ..] => Some("TLS: use https://"),
            bytes if bytes.starts_with(b"HTTP/") => Some("HTTP/1 only"),
            _ => None,
        }
    }
}

/// A connection and what was seen on it.
#[derive(Debug)]
pub(super) struct Watched<T> {
    inner: T,
    /// How many bytes of the first are still to come.
    missing: usize,
    seen: Arc<Mutex<Seen>>,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T) -> (Self, Arc<Mutex<Seen>>) {
        let seen = Arc::default();
        (Watched { inner, missing: FIRST, seen: Arc::clone(&seen) }, seen)
    }

    fn look(&mut self, bytes: &[u8], read: &io::Result<()>) {
        if self.missing > 0 {
            let bytes = &bytes[..bytes.len().min(self.missing)];
            self.seen.lock().first.extend_from_slice(bytes);
            self.missing -= bytes.len();
        }
        if let Err(error) = read {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            self.seen.lock().tls = inner.cloned();
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = std::task::ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        self.look(&buffer.filled()[before..], &read);
        Poll::Ready(read)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
