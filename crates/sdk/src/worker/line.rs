//! The line between a worker and a server, over a stream of messages.

use crate::messages::{Stream, StreamReceiver, StreamSender};
use bytes::Bytes;
use steadfast_kernel::Failure;
use steadfast_runtime::host::Duplex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How many chunks wait in each direction, beside what the stream itself lets under way. A beat waits behind all of it.
const CHUNKS: usize = 2;

/// What goes over the stream at once is not longer. The stream lets so many pieces under way however short they are: shorter ones let a beat arrive sooner on a line that is
/// slow, longer ones carry more on a line that is long. Where a chunk ends means nothing.
const PIECE_BYTES: usize = 8 << 10;

/// The route of streams by which workers come.
pub(crate) const ROUTE: &str = "steadfast.worker";

/// The ends of that stream, for a server or a worker. It ends when either of them does, and the other way round; what is with it then tells with what the stream has failed, if it has.
pub(crate) fn duplex(stream: Stream) -> (Duplex, JoinHandle<Option<Failure>>) {
    let (sender, receiver) = stream.split();
    let ((outgoing, out), (inward, incoming)) = (mpsc::channel(CHUNKS), mpsc::channel(CHUNKS));
    tokio::spawn(send(out, sender));
    (Duplex { incoming, outgoing }, tokio::spawn(receive(receiver, inward)))
}

async fn send(mut out: mpsc::Receiver<Bytes>, mut stream: StreamSender) {
    while let Some(mut chunk) = out.recv().await {
        while !chunk.is_empty() {
            let piece = chunk.split_to(chunk.len().min(PIECE_BYTES));
            if stream.send(piece).await.is_err() {
                return;
            }
        }
    }
    stream.finish();
}

async fn receive(mut stream: StreamReceiver, inward: mpsc::Sender<Bytes>) -> Option<Failure> {
    loop {
        let piece = tokio::select! {
            biased;
            piece = stream.next() => piece,
            () = inward.closed() => return None,
        };
        match piece {
            Ok(piece) => inward.send(piece?).await.ok()?,
            Err(failure) => {
                tracing::debug!(%failure, "the line between worker and server has ended");
                return Some(failure);
            }
        }
    }
}
