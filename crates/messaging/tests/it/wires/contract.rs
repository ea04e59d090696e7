//! What every wire keeps to, whatever it is made of.

use bytes::Bytes;
use std::future::Future;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure};
use steadfast_messaging::wire::Link;
use tokio::time::timeout;

/// The longest packet that the wires under test take.
pub(super) const LONGEST: usize = 1 << 20;

/// How long something may take that should happen at once.
const SOON: Duration = Duration::from_secs(10);

/// How long somebody has not moved who is held to be stuck.
const STUCK: Duration = Duration::from_millis(300);

/// Gives the tests of the contract for one wire. `$links` gives two ends of a new link as often as it is asked; `$test` is the attribute of a test.
macro_rules! contract {
    ($links:expr, $test:meta) => {
        $crate::wires::contract::contract!(@each $links, $test,
            packets_arrive_whole_and_in_order both_ways_at_once reader_that_does_not_read_stops_the_writer what_was_sent_before_the_end_arrives
            dropping_what_goes_out_ends_all dropping_what_comes_in_ends_all dropping_a_link_ends_the_other longest_packet_arrives
            packet_that_is_too_long_ends_its_link_only remote_is_known);
    };
    (@each $links:expr, $test:meta, $($name:ident)+) => {
        $(#[$test] async fn $name() { $crate::wires::contract::$name($links.await).await; })+
    };
}
pub(super) use contract;

/// Gives links; holds what they need.
pub(super) trait Links {
    fn link(&mut self) -> impl Future<Output = (Link, Link)>;
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(SOON, what).await.expect("it should have happened by now")
}

/// The next packet, which has to come.
pub(super) async fn next(link: &mut Link) -> Bytes {
    soon(link.incoming.recv()).await.expect("the link has ended").expect("the link has failed")
}

/// Waits for the end of a link at this end; gives what came before it, and the reason if there was one.
pub(super) async fn end(link: &mut Link) -> (Vec<Bytes>, Option<Failure>) {
    let (mut packets, mut reason) = (Vec::new(), None);
    while let Some(packet) = soon(link.incoming.recv()).await {
        assert!(reason.is_none(), "nothing comes after the reason");
        match packet {
            Ok(packet) => packets.push(packet),
            Err(failure) => reason = Some(failure),
        }
    }
    soon(link.outgoing.closed()).await;
    (packets, reason)
}

fn packet(number: usize) -> Bytes {
    let length = [0, 1, 8, 250, 4000, 70_000][number % 6];
    let mut bytes = vec![u8::try_from(number % 251).unwrap(); length];
    let mark = number.to_le_bytes();
    let marked = length.min(mark.len());
    bytes[..marked].copy_from_slice(&mark[..marked]);
    bytes.into()
}

pub(super) async fn packets_arrive_whole_and_in_order(mut links: impl Links) {
    let (near, mut far) = links.link().await;
    let sends = async {
        for number in 0..1200 {
            near.outgoing.send(packet(number)).await.unwrap();
        }
    };
    let reads = async {
        for number in 0..1200 {
            assert_eq!(next(&mut far).await, packet(number), "packet {number}");
        }
    };
    tokio::join!(sends, reads);
}

pub(super) async fn both_ways_at_once(mut links: impl Links) {
    let (near, far) = links.link().await;
    let goes = |mut link: Link| async move {
        let (outgoing, count) = (link.outgoing.clone(), 500);
        let sends = async {
            for number in 0..count {
                outgoing.send(packet(number)).await.unwrap();
            }
        };
        let reads = async {
            for number in 0..count {
                assert_eq!(next(&mut link).await, packet(number));
            }
        };
        tokio::join!(sends, reads);
        link
    };
    let _both = tokio::join!(goes(near), goes(far));
}

pub(super) async fn reader_that_does_not_read_stops_the_writer(mut links: impl Links) {
    let (near, mut far) = links.link().await;
    let big = Bytes::from(vec![7; 64 << 10]);
    let mut sent = 0;
    while let Ok(done) = timeout(STUCK, near.outgoing.send(big.clone())).await {
        done.unwrap();
        sent += 1;
        assert!(sent < 400, "{sent} packets of 64 KiB wait for a reader who does not read");
    }
    for _ in 0..sent {
        assert_eq!(next(&mut far).await, big);
    }
    soon(near.outgoing.send("goes on".into())).await.unwrap();
    assert_eq!(next(&mut far).await, "goes on");
}

pub(super) async fn what_was_sent_before_the_end_arrives(mut links: impl Links) {
    for swap in [false, true] {
        let (near, far) = links.link().await;
        let (one, mut other) = if swap { (far, near) } else { (near, far) };
        for number in 0..4 {
            one.outgoing.send(packet(number)).await.unwrap();
        }
        drop(one);
        assert_eq!(end(&mut other).await, ((0..4).map(packet).collect::<Vec<_>>(), None));
    }
}

pub(super) async fn dropping_what_goes_out_ends_all(mut links: impl Links) {
    for swap in [false, true] {
        let (near, far) = links.link().await;
        let (mut one, mut other) = if swap { (far, near) } else { (near, far) };
        drop(one.outgoing);
        assert!(soon(one.incoming.recv()).await.is_none_or(|last| last.is_err()));
        assert_eq!(end(&mut other).await.0.len(), 0);
    }
}

pub(super) async fn dropping_what_comes_in_ends_all(mut links: impl Links) {
    for swap in [false, true] {
        let (near, far) = links.link().await;
        let (one, mut other) = if swap { (far, near) } else { (near, far) };
        drop(one.incoming);
        soon(one.outgoing.closed()).await;
        assert_eq!(end(&mut other).await.0.len(), 0);
    }
}

pub(super) async fn dropping_a_link_ends_the_other(mut links: impl Links) {
    for swap in [false, true] {
        let (near, far) = links.link().await;
        let (one, mut other) = if swap { (far, near) } else { (near, far) };
        drop(one);
        assert_eq!(end(&mut other).await.0.len(), 0);
    }
}

pub(super) async fn longest_packet_arrives(mut links: impl Links) {
    let (mut near, mut far) = links.link().await;
    let long = Bytes::from(vec![9; LONGEST]);
    near.outgoing.send(long.clone()).await.unwrap();
    assert_eq!(next(&mut far).await, long);
    far.outgoing.send(long.clone()).await.unwrap();
    assert_eq!(next(&mut near).await, long);
}

pub(super) async fn packet_that_is_too_long_ends_its_link_only(mut links: impl Links) {
    for swap in [false, true] {
        let (mut near_before, mut far_before) = links.link().await;
        let (near, far) = links.link().await;
        let (mut one, mut other) = if swap { (far, near) } else { (near, far) };
        one.outgoing.send("before".into()).await.unwrap();
        one.outgoing.send(vec![9; LONGEST + 1].into()).await.unwrap();
        let (packets, reason) = end(&mut other).await;
        assert_eq!(packets, ["before"]);
        let told = end(&mut one).await.1;
        let reason = reason
            .into_iter()
            .chain(told)
            .find(|reason| reason.code == Code::ResourceExhausted)
            .expect("somebody is told why");
        assert_eq!(reason.class, Class::Permanent);
        assert!(reason.message.contains(&(LONGEST + 1).to_string()), "{reason:?}");
        near_before.outgoing.send("there".into()).await.unwrap();
        assert_eq!(next(&mut far_before).await, "there");
        far_before.outgoing.send("back".into()).await.unwrap();
        assert_eq!(next(&mut near_before).await, "back");
    }
}

pub(super) async fn remote_is_known(mut links: impl Links) {
    let (near, far) = links.link().await;
    assert!(!near.remote.address.is_empty() && !far.remote.address.is_empty());
    assert_eq!((near.remote.principal, far.remote.principal), (None, None));
}
