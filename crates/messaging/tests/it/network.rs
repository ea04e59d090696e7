//! Nodes on a network in memory.

use bytes::Bytes;
use std::sync::Arc;
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Builder, Node};

/// A node of that name on that network, which listens there.
pub(crate) fn node(network: &Memory, name: &str) -> Node {
    node_by(network, name, |builder| builder)
}

/// The same, made otherwise.
pub(crate) fn node_by(network: &Memory, name: &str, make: impl FnOnce(Builder) -> Builder) -> Node {
    let builder = Node::builder().name(name).seed(network.seed()).wire(Arc::new(network.wire_of(name)));
    let node = make(builder).build().unwrap();
    let (mut listener, accepting) = (network.listen(name), node.clone());
    tokio::spawn(async move {
        loop {
            tokio::select! {
                biased;
                () = accepting.closed() => return,
                link = listener.accept() => {
                    let Some(link) = link else { return };
                    let node = accepting.clone();
                    tokio::spawn(async move { drop(node.accept(link).await) });
                }
            }
        }
    });
    node
}

/// Two of them, `a` and `b`.
pub(crate) fn two(seed: u64) -> (Memory, Node, Node) {
    let network = Memory::new(seed);
    let (a, b) = (node(&network, "a"), node(&network, "b"));
    (network, a, b)
}

/// Answers with what it is sent.
pub(crate) fn echo(node: &Node, route: &str) {
    node.route(route, |incoming| async move { Ok::<Bytes, _>(incoming.payload) });
}
