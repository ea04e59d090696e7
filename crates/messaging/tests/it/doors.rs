//! Who may ask a node for something: those who have connected to it, and, unless it says otherwise, those whom it has connected to.

use crate::network::{Raw, counted, echo, node, node_by, request, secs, until};
use bytes::Bytes;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast_messaging::envelope::Body;
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Code, Failure, Node, Peer, Policy, Route};

/// Has a node call back whoever calls it, by all that there is.
fn calls_back(node: &Node) {
    let back = node.clone();
    node.route("greet", move |incoming| {
        let (node, peer) = (back.clone(), incoming.caller.peer.clone());
        async move {
            let call = node.call(peer.clone(), "secret", "x").policy(Policy::once()).await;
            let tell = node.tell(peer.clone(), "secret", "x").policy(Policy::once()).await;
            let stream = node.stream(peer.clone(), "secrets", "x").await;
            let sample = node.sample(peer, "samples", "x");
            let code = |failure: Failure| failure.code.to_string();
            let said = [call.map(drop).map_err(code), tell.map(drop).map_err(code), stream.map(drop).map_err(code)];
            Ok::<_, Failure>(Bytes::from(format!("{said:?} {}", sample.is_ok())))
        }
    });
}

/// A node with something that is not for everybody, and how often somebody got it.
fn secrets(network: &Memory, closed: bool) -> (Node, impl Fn() -> usize) {
    let node = node_by(network, "a", |builder| if closed { builder.only_for_those_who_connect() } else { builder });
    let calls = counted(&node, "secret", |_| Ok(Bytes::new()));
    let others = crate::network::Count::default();
    let (streams, samples) = (others.clone(), others.clone());
    node.route_streams("secrets", move |_, _| {
        streams.add();
        async { Ok(()) }
    });
    node.route_samples("samples", move |_| {
        samples.add();
        async {}
    });
    (node, move || calls.get() + others.get())
}

#[tokio::test(start_paused = true)]
async fn whom_a_node_calls_may_call_it_unless_it_is_only_for_those_who_connect() {
    for closed in [false, true] {
        let network = Memory::new(1);
        let (a, got) = secrets(&network, closed);
        let b = node(&network, "b");
        calls_back(&b);
        let said = a.call("b", "greet", "").await.unwrap();
        let denied = Err::<(), _>(Code::PermissionDenied.to_string());
        let expected = if closed { [denied.clone(), denied.clone(), denied] } else { [Ok(()), Ok(()), Ok(())] };
        assert_eq!(said, format!("{expected:?} true"));
        crate::network::pass(secs(1)).await;
        assert_eq!(got(), if closed { 0 } else { 4 });
        b.call("a", "secret", "").await.unwrap(); // over a connection of its own
        assert_eq!(got(), if closed { 1 } else { 5 });
        assert!(b.stream(Peer::at("a"), "secrets", "").await.is_ok());
    }
}

/// A tell is new over one connection and comes again over another, before it is known whether there is room for it: nobody hears that it was taken, since it was not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tell_that_finds_no_room_is_not_acknowledged_to_whoever_repeats_it_meanwhile() {
    let network = Memory::new(1);
    let b = node(&network, "b");
    let (looks, looked) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (looks, goes_on) = (Mutex::new(looks), Mutex::new(goes_on));
    let key = move |incoming: &steadfast_messaging::Incoming| {
        if *incoming.payload == *b"x" {
            looks.lock().unwrap().send(()).unwrap();
            goes_on.lock().unwrap().recv().unwrap();
        }
        "same"
    };
    let ran = Arc::new(Mutex::new(Vec::new()));
    let runs = Arc::clone(&ran);
    let handler = move |incoming: steadfast_messaging::Incoming| {
        runs.lock().unwrap().push(incoming.payload);
        std::future::pending::<Result<Bytes, Failure>>()
    };
    b.route_by("full", Route::new(handler).side_by_side(1).in_line(0).serial_by(key));
    echo(&b, "echo");

    let mut first = Raw::connect(&network, "b", "a").await;
    first.say(&[Body::Tell(request(1, "busy", "full", "busy"))]).await;
    first.reply().await.unwrap();
    until("the only place is taken", || ran.lock().unwrap().len() == 1).await;
    first.say(&[Body::Tell(request(2, "id", "full", "x"))]).await;
    looked.recv_timeout(Duration::from_secs(10)).expect("it is being looked at");
    let mut again = Raw::connect(&network, "b", "a").await;
    again
        .say(&[Body::Tell(request(2, "id", "full", "x")), Body::Call(request(3, "e", "echo", "here"))])
        .await;
    assert_eq!(again.reply().await.unwrap(), "here", "the tell before it is not answered yet");
    go_on.send(()).unwrap();
    for raw in [&mut first, &mut again] {
        assert_eq!(raw.reply().await.unwrap_err().code, Code::ResourceExhausted);
    }
    assert_eq!(ran.lock().unwrap().len(), 1);
}
