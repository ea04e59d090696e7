//! Makes calls from one node to another over a network in memory, one after another.

use crate::region::in_virtual_time;
use anyhow::{Result, ensure};
use bytes::Bytes;
use std::sync::Arc;
use steadfast::Failure;
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Incoming, Node, Peer};

const SEED: u64 = 7;

/// The number of bytes of a request.
const BYTES: usize = 200;

pub(crate) fn call(operations: u32) -> Result<()> {
    in_virtual_time(operations, prepare, async |shop, calls| {
        let (bank, payload) = (Peer::at("bank"), Bytes::from(vec![7; BYTES]));
        for _ in calls {
            let answer = shop.call(&bank, "echo", payload.clone()).await.map_err(Failure::into_error)?;
            ensure!(answer == payload, "the answer is not the request");
        }
        Ok(())
    })
}

async fn prepare() -> Result<Node> {
    let network = Memory::new(SEED);
    let (bank, shop) = (node(&network, "bank")?, node(&network, "shop")?);
    bank.route("echo", |incoming: Incoming| async move { Ok::<Bytes, Failure>(incoming.payload) });
    let mut listener = network.listen("bank");
    tokio::spawn(async move {
        while let Some(link) = listener.accept().await {
            drop(bank.accept(link).await);
        }
    });
    Ok(shop)
}

fn node(network: &Memory, name: &str) -> Result<Node> {
    let builder = Node::builder().name(name).seed(SEED).wire(Arc::new(network.wire_of(name)));
    Ok(builder.build().map_err(Failure::into_error)?)
}
