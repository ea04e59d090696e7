//! The limits of payloads between nodes over HTTP/2: the longest goes both ways, and one byte more is refused before it is sent.

use bytes::Bytes;
use std::sync::Arc;
use steadfast_messaging::wire::http2::Http2;
use steadfast_messaging::{Builder, Class, Code, Incoming, Limits, Node};

const LONGEST: usize = 4 << 20;

/// A node that answers with what it is sent, and with as many bytes as it is asked for.
async fn bank(make: impl FnOnce(Builder) -> Builder) -> (Node, String) {
    let bank = make(Node::builder().name("bank")).bind("127.0.0.1:0").await.unwrap();
    bank.route("echo", |incoming: Incoming| async move { Ok(incoming.payload) });
    bank.route("long", |incoming: Incoming| async move { Ok(vec![7; incoming.json()?]) });
    let address = format!("http://{}", bank.addr().unwrap());
    (bank, address)
}

fn shop(payload_bytes_max: usize) -> Node {
    let mut limits = Limits::default();
    limits.payload_bytes_max = payload_bytes_max;
    Node::builder().name("shop").limits(limits).wire(Arc::new(Http2::default())).build().unwrap()
}

fn payload(length: usize) -> Bytes {
    (0..length).map(|n| n as u8).collect()
}

#[tokio::test]
async fn the_longest_payload_goes_both_ways_and_one_byte_more_is_refused() {
    let (_bank, address) = bank(|builder| builder).await;
    let shop = shop(LONGEST);
    assert_eq!(shop.call(&*address, "echo", payload(LONGEST)).await.unwrap(), payload(LONGEST));
    shop.tell(&*address, "echo", payload(LONGEST)).await.unwrap();
    let failure = shop.call(&*address, "echo", payload(LONGEST + 1)).await.unwrap_err();
    assert_eq!((failure.code, failure.attempts), (Code::InvalidArgument, 0), "it is not sent: {failure:?}");
    let failure = shop.call(&*address, "long", (LONGEST + 1).to_string()).await.unwrap_err();
    assert!(failure.class == Class::Permanent && failure.message.contains("4194305 bytes, and 4194304 are allowed"), "{failure:?}");
    assert_eq!(shop.counts().connections, 1, "nothing of it has cost the connection");
    assert_eq!(shop.call(&*address, "echo", "still").await.unwrap(), "still");
}

#[tokio::test]
async fn a_node_that_takes_less_says_so_and_is_not_sent_more() {
    let less = |builder: Builder| {
        let mut limits = Limits::default();
        limits.payload_bytes_max = 1000;
        builder.limits(limits)
    };
    let (bank, address) = bank(less).await;
    let large = shop(LONGEST);
    let failure = large.call(&*address, "echo", payload(1001)).await.unwrap_err();
    assert!(failure.code == Code::InvalidArgument && failure.message.contains("takes payloads of at most 1000 bytes"), "{failure:?}");
    assert_eq!(large.call(&*address, "echo", payload(1000)).await.unwrap(), payload(1000));
    let small = shop(10);
    let failure = small.call(&*address, "long", "11").await.unwrap_err();
    assert!(failure.class == Class::Permanent && failure.message.contains("11 bytes, and 10 are allowed"), "{failure:?}");
    assert_eq!(small.call(&*address, "long", "10").await.unwrap().len(), 10);
    assert_eq!(bank.counts().totals.calls_received, 3, "what is too long has not come");
}
