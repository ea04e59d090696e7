//! A connection that does not wait for ever: not for a client that sends nothing, and not for one that does not read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How much a client has to send before it is known what it speaks; shorter requests there are none.
const FIRST_BYTES: usize = 24;

/// A connection with bounds on both directions.
pub(crate) struct Wire<S> {
    inner: S,
    /// How many bytes have come, up to those that are asked for.
    read: usize,
    /// Until when the first bytes have to be there, or what was sent last has to be taken. One timer: a client that is to say something first is not sent anything.
    limit: Pin<Box<Sleep>>,
    /// How long a client may leave what it was sent unread.
    stall: Duration,
    /// The client does not read.
    stalled: bool,
}

impl<S> Wire<S> {
    #[expect(clippy::disallowed_methods, reason = "a bound on a socket, which has no Clock")]
    pub(crate) fn new(inner: S, first: Duration, stall: Duration) -> Self {
        Wire { inner, read: 0, limit: Box::pin(tokio::time::sleep(first)), stall, stalled: false }
    }

    /// What a write came to; if it came to nothing for too long, an error.
    fn written<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stalled = false;
            return poll;
        }
        if !self.stalled {
            self.stalled = true;
            let until = Instant::now() + self.stall;
            self.limit.as_mut().reset(until);
        }
        ready!(self.limit.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.inner).poll_read(cx, buf);
        if self.read >= FIRST_BYTES {
            return poll;
        }
        self.read += buf.filled().len() - before;
        if poll.is_pending() {
            ready!(self.limit.as_mut().poll(cx));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client says nothing")));
        }
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.written(cx, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.written(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
