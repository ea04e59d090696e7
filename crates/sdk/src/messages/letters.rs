//! Dead letters of the engine's node: kept by the engine, and tried again by the node.

use super::{Direction, Letter, LetterKind, Letters, Node};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, OnceLock};
use steadfast_kernel::{Direction as Went, Encoding, Failure, LetterId, MessageKind, PEER_MAX, Payload};
use steadfast_messaging::WeakNode;
use steadfast_runtime::{Engine, MessageLetter, Redeliver, WeakEngine};

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
        peer: escaped(&peer, direction),
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
        peer: unescaped(peer, direction),
        route,
        id: request,
        payload: payload.bytes,
        failure,
    }
}

/// Who sent something may be named by its token, as people like it, and a letter has visible characters alone: others are bytes in hexadecimal digits after a %. Whom something was
/// sent to has no others. What is too long is cut, so that the letter is kept all the same.
fn escaped(peer: &str, direction: Direction) -> String {
    if direction == Direction::Sent {
        return peer.into();
    }
    let mut escaped = String::with_capacity(peer.len());
    for byte in peer.bytes() {
        match byte.is_ascii_graphic() && byte != b'%' {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped.truncate(PEER_MAX);
    if escaped.is_empty() { "unknown".into() } else { escaped }
}

/// What was [escaped]; what never was stays as it is.
fn unescaped(peer: String, direction: Went) -> String {
    if direction == Went::Sent || !peer.contains('%') {
        return peer;
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(peer.len()), peer.as_bytes());
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).unwrap_or(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sent_something_is_the_same_after_it_was_kept() {
        let long = format!("{}@dns:{}", "n".repeat(200), "d".repeat(253));
        for peer in ["shop", "shop@token:Ann Smith", "shop@token:Ann_Smith", "a%20b@token:Ä %\n", "100%@token:%", &long] {
            let kept = escaped(peer, Direction::Received);
            assert!(steadfast_kernel::check_peer(&kept).is_ok(), "{kept}");
            assert_eq!(unescaped(kept, Went::Received), peer);
        }
        assert_eq!(unescaped("100%@token:%4".into(), Went::Received), "100%@token:%4", "as it was kept before");
        assert_eq!(escaped(&" ".repeat(PEER_MAX), Direction::Received).len(), PEER_MAX, "it is kept all the same");
    }

    #[test]
    fn whom_something_was_sent_to_is_kept_as_it_is() {
        let peer = format!("{}@@http://[fe80::1%25eth0]:7400/{}", "b".repeat(200), "x".repeat(150));
        assert_eq!(escaped(&peer, Direction::Sent), peer);
        assert_eq!(unescaped(peer.clone(), Went::Sent), peer);
        assert!(steadfast_kernel::check_peer(&peer).is_ok());
    }
}
