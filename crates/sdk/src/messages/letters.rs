//! Dead letters of the engine's node: kept by the engine, and tried again by the node.

use super::{Direction, Letter, LetterKind, Letters, Node};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, OnceLock};
use steadfast_kernel::{Direction as Went, Encoding, Failure, LetterId, MessageKind, Payload};
use steadfast_runtime::{MessageLetter, Redeliver, WeakEngine};

/// The longest name of a peer that a letter has, in bytes.
const PEER_MAX: usize = 256;

/// Has the engine keep what the node gives up.
#[derive(Default)]
pub(super) struct Kept {
    /// The engine, once it has started.
    pub(super) engine: OnceLock<WeakEngine>,
}

impl Letters for Kept {
    fn post(&self, letter: Letter) -> BoxFuture<'static, Result<(), Failure>> {
        let engine = self.engine.get().and_then(WeakEngine::upgrade);
        async move {
            let engine = engine.ok_or_else(|| Failure::transient("the engine that keeps dead letters has not started, or has stopped"))?;
            engine.post_message(to_engine(letter)).await.map(drop).map_err(|error| error.to_failure())
        }
        .boxed()
    }
}

/// Has the node try again what the engine kept.
pub(super) struct Again {
    pub(super) node: Arc<OnceLock<Node>>,
}

impl Redeliver for Again {
    fn deliver(&self, _: LetterId, message: MessageLetter) -> BoxFuture<'static, Result<(), Failure>> {
        let node = self.node.get().cloned();
        async move {
            let node = node.ok_or_else(|| Failure::transient("the node has not started"))?;
            node.redrive(&from_engine(message)).await
        }
        .boxed()
    }
}

fn to_engine(letter: Letter) -> MessageLetter {
    let Letter { direction, kind, peer, route, id, payload, failure } = letter;
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&payload).is_ok();
    MessageLetter {
        route,
        direction: match direction {
            Direction::Received => Went::Received,
            Direction::Sent => Went::Sent,
        },
        kind: match kind {
            LetterKind::Call => MessageKind::Call,
            LetterKind::Tell => MessageKind::Tell,
            LetterKind::Frame => MessageKind::Frame,
        },
        peer: visible(&peer),
        request: id,
        tenant: None,
        attempts: failure.attempts.max(1),
        failure,
        payload: Payload { encoding: if is_json { Encoding::Json } else { Encoding::Bytes }, bytes: payload },
    }
}

fn from_engine(message: MessageLetter) -> Letter {
    let MessageLetter { route, direction, kind, peer, request, failure, payload, .. } = message;
    Letter {
        direction: match direction {
            Went::Received => Direction::Received,
            Went::Sent => Direction::Sent,
        },
        kind: match kind {
            MessageKind::Call => LetterKind::Call,
            MessageKind::Tell => LetterKind::Tell,
            MessageKind::Frame => LetterKind::Frame,
        },
        peer,
        route,
        id: request,
        payload: payload.bytes,
        failure,
    }
}

/// Who sent something may be named by its token, as people like it; a letter is kept all the same.
fn visible(peer: &str) -> String {
    let visible: String = peer.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).take(PEER_MAX).collect();
    if visible.is_empty() { "unknown".into() } else { visible }
}
