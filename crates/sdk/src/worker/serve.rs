//! The server's side: workers come over streams of its node.
//!
//! Tested by `crates/cli/tests/it/workers.rs`.

use super::line::{ROUTE, duplex};
use crate::messages::{Caller, Incoming, Node, Peer, Stream};
use steadfast_kernel::{Code, Failure};
use steadfast_runtime::host::Hello;
use steadfast_runtime::{Engine, WeakEngine};

/// Has the engine take the workers that come to a node that is not the engine's own: [`EngineBuilder::workers`](crate::EngineBuilder::workers) does it for that one. The node
/// does not keep the engine alive; close it [after](Node::close_after) the engine has stopped.
pub fn take_workers(node: &Node, engine: &Engine) {
    take_workers_if(node, engine, |_| Ok(()));
}

/// The same, if that lets them: a worker is given runs, with all that is in them.
pub fn take_workers_if(node: &Node, engine: &Engine, allow: impl Fn(&Caller) -> Result<(), Failure> + Send + Sync + 'static) {
    let engine = WeakEngine::of(engine);
    node.route_streams(ROUTE, move |stream, incoming| {
        let hello = connects(&incoming.caller).and_then(|()| allow(&incoming.caller)).and_then(|()| hello(&incoming));
        attach(engine.clone(), stream, hello)
    });
}

/// Workers connect to their server. Somebody whom the server has called, and who says to be one, has passed no door.
fn connects(caller: &Caller) -> Result<(), Failure> {
    match &caller.peer {
        Peer::Named(_) => Ok(()),
        Peer::At(_) => Err(Failure::new(Code::PermissionDenied, "a worker connects to its server, and not the other way round")),
    }
}

/// What a worker says of itself. Its name is that of its node, so that who has proved to be somebody cannot be put out by somebody else.
fn hello(incoming: &Incoming) -> Result<Hello, Failure> {
    let refuse = |why: String| Failure::new(Code::InvalidArgument, why);
    let hello = Hello::decode(&incoming.payload).map_err(|broken| refuse(broken.to_string()))?;
    if *hello.name != *incoming.caller.name {
        return Err(refuse(format!("a worker has the name of its node, which is {}", incoming.caller.name)));
    }
    Ok(hello)
}

async fn attach(engine: WeakEngine, stream: Stream, hello: Result<Hello, Failure>) -> Result<(), Failure> {
    let stopped = || Failure::transient("the engine has stopped here");
    let (hello, engine) = match hello.and_then(|hello| Ok((hello, engine.upgrade().ok_or_else(stopped)?))) {
        Ok(both) => both,
        Err(failure) => {
            stream.fail(&failure);
            return Err(failure);
        }
    };
    let name = hello.name.clone();
    let attached = engine.attach(hello, duplex(stream).0);
    drop(engine); // a worker does not keep it running
    let gone = attached.await;
    tracing::debug!(worker = name, %gone, "a worker has gone");
    Ok(())
}
