//! Whose name it is: two who come by one name and have proved different things, or nothing.

use crate::network::{Raw, node, until};
use bytes::BytesMut;
use steadfast_messaging::envelope::{self, Body, Hello};
use steadfast_messaging::wire::memory::{Listener, Memory};
use steadfast_messaging::wire::{Link, Wire};
use steadfast_messaging::{Code, Failure, Node, Policy};

/// Comes to the bank by the name of `shop`, with that proof.
async fn come(network: &Memory, bank: &Node, listener: &mut Listener, principal: Option<&str>) -> (Link, Result<(), Failure>) {
    let near = network.wire_of("shop").connect("bank").await.unwrap();
    let mut packet = BytesMut::new();
    envelope::append(&mut packet, &Body::Hello(Hello { version: 1, node: "shop".into(), frame_bytes_max: 1 << 20, refused: None }));
    near.outgoing.send(packet.freeze()).await.unwrap();
    let mut far = listener.accept().await.unwrap();
    far.remote.principal = principal.map(Into::into);
    (near, bank.accept(far).await)
}

/// What the bank has said first on that link.
async fn said(link: &mut Link) -> Hello {
    let packet = link.incoming.recv().await.unwrap().unwrap();
    let frame = envelope::packet(packet).unwrap().next().unwrap();
    let Some(Body::Hello(hello)) = envelope::frame(frame).unwrap() else { panic!("no hello") };
    hello
}

#[tokio::test(start_paused = true)]
async fn a_name_is_of_the_one_who_has_proved_it_as_long_as_that_one_is_connected() {
    let network = Memory::new(1);
    let bank = Node::builder().name("bank").build().unwrap();
    let mut listener = network.listen("bank");
    let mut links = Vec::new();
    for (principal, is_taken) in [(Some("ada"), true), (Some("eve"), false), (None, false), (Some("ada"), true)] {
        let (mut link, outcome) = come(&network, &bank, &mut listener, principal).await;
        assert_eq!(outcome.err().map(|failure| failure.code), (!is_taken).then_some(Code::PermissionDenied), "{principal:?}");
        let refused = said(&mut link).await.refused.map(|error| error.code);
        assert_eq!(refused.as_deref(), (!is_taken).then_some("PERMISSION_DENIED"), "{principal:?} is told");
        links.push(link);
    }
    drop(links);
    until("nobody is connected", || bank.counts().connections == 0).await;
    come(&network, &bank, &mut listener, Some("eve")).await.1.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_has_proved_nothing_makes_way_for_who_has() {
    let network = Memory::new(1);
    let bank = Node::builder().name("bank").build().unwrap();
    let mut listener = network.listen("bank");
    let (mut unproved, outcome) = come(&network, &bank, &mut listener, None).await;
    outcome.unwrap();
    assert_eq!(said(&mut unproved).await.refused, None);
    let (_proved, outcome) = come(&network, &bank, &mut listener, Some("ada")).await;
    outcome.unwrap();
    assert!(!matches!(unproved.incoming.recv().await, Some(Ok(_))), "it is cut");
    let connected = bank.connections();
    assert_eq!(connected.iter().map(|one| one.principal.as_deref()).collect::<Vec<_>>(), [Some("ada")]);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_name_is_somebody_elses_hears_so_when_it_calls() {
    let network = Memory::new(1);
    let bank = Node::builder().name("bank").build().unwrap();
    let mut listener = network.listen("bank");
    let (_ada, outcome) = come(&network, &bank, &mut listener, Some("ada")).await;
    outcome.unwrap();
    let accepting = bank.clone();
    tokio::spawn(async move {
        while let Some(link) = listener.accept().await {
            drop(accepting.accept(link).await);
        }
    });
    let failure = node(&network, "shop").call("bank", "x", "").policy(Policy::once()).await.unwrap_err();
    assert_eq!(failure.code, Code::PermissionDenied);
    assert!(failure.message.contains("bank refuses the link: a node shop is connected"), "{failure:?}");
    drop(Raw::connect(&network, "bank", "another").await);
}
