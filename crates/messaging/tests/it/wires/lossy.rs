//! The wire over HTTP/2 through a bad network on real sockets.

use super::contract::{end, next};
use super::http2::{Port, settings};
use bytes::Bytes;
use std::time::Duration;
use steadfast_kernel::Class;
use steadfast_messaging::wire::http2::{Http2, Settings};
use steadfast_messaging::wire::{Link, Wire};
use steadfast_test_servers::{Losses, Proxy};
use tokio::time::timeout;

/// Asks early and often whether the other end is alive.
fn impatient() -> Settings {
    let mut settings = settings();
    (settings.ping_after, settings.ping_timeout) = (Duration::from_millis(100), Duration::from_millis(300));
    settings
}

/// A port behind a proxy, at whose address the wire connects.
async fn behind() -> (Port, Proxy) {
    let mut port = Port::with(|listens| listens.link = impatient()).await;
    let proxy = Proxy::before(port.listening.addr().port());
    port.address = format!("http://127.0.0.1:{}", proxy.port());
    port.wire = Http2::new(impatient());
    (port, proxy)
}

async fn link(port: &mut Port) -> (Link, Link) {
    let near = port.wire.connect(&port.address).await.unwrap();
    (near, port.links.recv().await.unwrap())
}

#[tokio::test]
async fn quiet_link_lives_on() {
    let (mut port, _proxy) = behind().await;
    let (near, mut far) = link(&mut port).await;
    assert!(timeout(Duration::from_secs(1), far.incoming.recv()).await.is_err());
    near.outgoing.send("still there".into()).await.unwrap();
    assert_eq!(next(&mut far).await, "still there");
}

#[tokio::test]
async fn half_open_link_ends_at_both_ends() {
    let (mut port, proxy) = behind().await;
    let (mut near, mut far) = link(&mut port).await;
    proxy.swallow();
    let reason = end(&mut near).await.1.expect("a reason");
    assert_eq!(reason.class, Class::Transient, "{reason:?}");
    assert_eq!(end(&mut far).await, (Vec::new(), None), "HTTP/2 gives those who listen no reason");
    assert!(timeout(Duration::from_millis(200), port.wire.connect(&port.address)).await.is_err(), "nothing answers");
    proxy.let_go();
    link(&mut port).await;
}

#[tokio::test]
async fn lost_answers_end_a_link_that_is_still_heard() {
    let (mut port, proxy) = behind().await;
    let (mut near, mut far) = link(&mut port).await;
    proxy.swallow_answers();
    near.outgoing.send("heard".into()).await.unwrap();
    assert_eq!(next(&mut far).await, "heard");
    far.outgoing.send("lost".into()).await.unwrap();
    let (packets, reason) = end(&mut near).await;
    assert_eq!((packets.len(), reason.expect("a reason").class), (0, Class::Transient));
}

#[tokio::test]
async fn cut_connection_ends_both_ends_transiently() {
    let (mut port, proxy) = behind().await;
    let (mut near, mut far) = link(&mut port).await;
    proxy.cut();
    for link in [&mut near, &mut far] {
        assert!(end(link).await.1.is_none_or(|reason| reason.class == Class::Transient));
    }
    proxy.refuse(true);
    assert_eq!(port.wire.connect(&port.address).await.unwrap_err().class, Class::Transient);
}

/// Sends numbers until the link ends.
async fn count_up(link: Link) {
    for number in 0_u32.. {
        let packet = [&number.to_le_bytes()[..], &vec![7; number as usize % 5000]].concat();
        if link.outgoing.send(packet.into()).await.is_err() {
            return;
        }
    }
}

fn is_number(packet: &Bytes, number: u32) -> bool {
    packet[..4] == number.to_le_bytes() && packet[4..].iter().all(|byte| *byte == 7) && packet.len() == 4 + number as usize % 5000
}

#[tokio::test]
async fn what_a_bad_network_lets_through_is_whole_and_in_order() {
    let seed = 42;
    println!("seed {seed}");
    let (mut port, proxy) = behind().await;
    let millis = Duration::from_millis;
    proxy.lose(Some(Losses { cut_after: millis(100)..=millis(400), stall: millis(50), swallow: 0.3, ..Losses::new(seed) }));
    let (mut links, mut packets) = (0, 0_u32);
    while links < 12 {
        let near = match timeout(Duration::from_secs(2), port.wire.connect(&port.address)).await {
            Ok(Ok(near)) => near,
            Ok(Err(failure)) if failure.class != Class::Transient => panic!("a bad network is no permanent failure: {failure:?}"),
            _ => continue,
        };
        let mut far = port.links.recv().await.unwrap();
        links += 1;
        tokio::spawn(count_up(near));
        let (got, reason) = end(&mut far).await;
        assert!(reason.is_none_or(|reason| reason.class == Class::Transient));
        assert!(got.iter().zip(0..).all(|(packet, number)| is_number(packet, number)), "link {links}");
        packets += u32::try_from(got.len()).unwrap();
    }
    assert!(packets > 100, "{packets} in {links} links");
    proxy.lose(None);
    link(&mut port).await;
}
