//! Messages from and to workflows.

mod calls;
mod durable;
mod instances;
mod leaving;
mod letters;
mod random;
mod workers;

use std::sync::Arc;
use steadfast::messages::memory::Memory as Network;
use steadfast::messages::{Node, NodeBuilder};
use steadfast::{Engine, EngineBuilder};

/// A node that can reach others on that network.
pub(crate) fn node(network: &Network, name: &str) -> NodeBuilder {
    Node::builder().name(name).seed(network.seed()).wire(Arc::new(network.wire_of(name)))
}

/// Starts an engine and has its node listen on that network.
pub(crate) async fn start(network: &Network, builder: EngineBuilder) -> Engine {
    let engine = builder.start().await.unwrap();
    listen(network, engine.node().unwrap());
    engine
}

/// Has a node listen on that network, until it is closed.
pub(crate) fn listen(network: &Network, node: &Node) {
    let (mut listener, node) = (network.listen(node.name()), node.clone());
    tokio::spawn(async move {
        loop {
            tokio::select! {
                biased;
                () = node.closed() => return,
                link = listener.accept() => match link {
                    Some(link) => drop(node.accept(link).await),
                    None => return,
                },
            }
        }
    });
}
