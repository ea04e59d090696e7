//! Bodies that tell how far they have come: a long packet is one message, and whoever waits for the whole of it does not see that it moves.

use super::FRAME_BYTES;
use crate::wire::Pulse;
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A body that is read.
pub(super) struct Coming<B> {
    body: Pin<Box<B>>,
    pulse: Pulse,
}

impl<B: Body> Coming<B> {
    pub(super) fn new(body: B, pulse: Pulse) -> Self {
        Coming { body: Box::pin(body), pulse }
    }
}

impl<B: Body> Body for Coming<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(self.body.as_mut().poll_frame(cx));
        if matches!(&frame, Some(Ok(frame)) if frame.data_ref().is_some_and(Buf::has_remaining)) {
            self.pulse.came();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body that is sent, in parts that are no longer than a frame: the next one is asked for when there is room for it.
pub(super) struct Going<B> {
    body: Pin<Box<B>>,
    /// What is left of a piece.
    rest: Bytes,
    pulse: Pulse,
}

impl<B: Body<Data = Bytes>> Going<B> {
    pub(super) fn new(body: B, pulse: Pulse) -> Self {
        Going { body: Box::pin(body), rest: Bytes::new(), pulse }
    }

    fn part(&mut self) -> Bytes {
        self.rest.split_to(self.rest.len().min(FRAME_BYTES as usize))
    }
}

impl<B: Body<Data = Bytes>> Body for Going<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if !self.rest.is_empty() {
            self.pulse.went();
            return Poll::Ready(Some(Ok(Frame::data(self.part()))));
        }
        let frame = match ready!(self.body.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                Frame::data(self.part())
            }
            Err(trailers) => trailers,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full};

    #[tokio::test]
    async fn what_is_long_goes_in_parts_and_comes_whole() {
        for length in [0, 1, FRAME_BYTES as usize, FRAME_BYTES as usize + 1, 1 << 20] {
            let (bytes, went, came) = (Bytes::from(vec![7; length]), Pulse::default(), Pulse::default());
            let body = Coming::new(Going::new(Full::new(bytes.clone()), went.clone()), came.clone());
            assert_eq!(body.collect().await.unwrap().to_bytes(), bytes);
            let parts = length.div_ceil(FRAME_BYTES as usize) as u64;
            assert_eq!((came.come(), went.gone()), (parts, parts.saturating_sub(1)), "{length} bytes");
        }
    }
}
