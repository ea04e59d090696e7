//! Dead letters of the engine's node: kept by the engine, and tried again by the node.

use super::{Direction, Letter, LetterKind, Letters, Node};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, OnceLock};
use steadfast_kernel::{Direction as Went, Encoding, Failure, LetterId, MessageKind, Payload};
use steadfast_messaging::WeakNode;
use steadfast_runtime::{Engine, MessageLetter, Redeliver, WeakEngine};

/// The longest name of a peer that a letter has, in bytes.
const PEER_MAX: usize = 256;

/// Has an engine keep what a node gives up, and the node try again what the engine kept: given to both before they start, and told of both afterwards. An engine with
/// [messages](crate::EngineBuilder::messages) does that for its own node.
#[derive(Clone, Default)]
pub struct Post {
    between: Arc<OnceLock<(WeakEngine, WeakNode)>>,
}

impl Post {
    /// Between those two. It keeps neither of them.
    pub fn connect(&self, engine: &Engine, node: &Node) {
        let _they_were = self.between.set((WeakEngine::of(engine), node.downgrade()));
    }
}

impl Letters for Post {
    fn post(&self, letter: Letter) -> BoxFuture<'static, Result<(), Failure>> {
        let engine = self.between.get().and_then(|(engine, _)| engine.upgrade());
        async move {
            let engine = engine.ok_or_else(|| Failure::transient("the engine that keeps dead letters has not started, or has stopped"))?;
            engine.post_message(to_engine(letter)).await.map(drop).map_err(|error| error.to_failure())
        }
        .boxed()
    }
}

impl Redeliver for Post {
    fn deliver(&self, _: LetterId, message: MessageLetter) -> BoxFuture<'static, Result<(), Failure>> {
        let node = self.between.get().and_then(|(_, node)| node.upgrade());
        async move {
            let node = node.ok_or_else(|| Failure::transient("the node has not started, or has ended"))?;
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
