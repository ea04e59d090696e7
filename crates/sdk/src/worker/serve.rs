//! The server's side: workers come over streams of its node.

use super::line::{ROUTE, duplex};
use crate::messages::{Incoming, Node, Stream};
use steadfast_kernel::{Code, Failure};
use steadfast_runtime::host::Hello;
use steadfast_runtime::{Engine, WeakEngine};

/// Has the engine take the workers that come to a node that is not the engine's own: [`EngineBuilder::workers`](crate::EngineBuilder::workers) does it for that one. The node
/// does not keep the engine alive; close it [after](Node::close_after) the engine has stopped.
pub fn take_workers(node: &Node, engine: &Engine) {
    let engine = WeakEngine::of(engine);
    node.route_streams(ROUTE, move |stream, incoming| attach(engine.clone(), stream, incoming));
}

async fn attach(engine: WeakEngine, stream: Stream, incoming: Incoming) -> Result<(), Failure> {
    let refuse = |why: String| Failure::new(Code::InvalidArgument, why);
    let hello = match Hello::decode(&incoming.payload) {
        Ok(hello) => hello,
        Err(broken) => {
            let failure = refuse(broken.to_string());
            stream.fail(&failure);
            return Err(failure);
        }
    };
    let Some(engine) = engine.upgrade() else {
        let failure = Failure::transient("the engine has stopped here");
        stream.fail(&failure);
        return Err(failure);
    };
    let attached = engine.attach(hello, duplex(stream));
    drop(engine); // a worker does not keep it running
    let gone = attached.await;
    tracing::debug!(worker = %incoming.caller.name, %gone, "a worker has gone");
    Ok(())
}
