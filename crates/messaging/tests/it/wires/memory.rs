//! The network in memory: the contract without faults, and each fault.

use super::contract::{LONGEST, Links, contract, end, next};
use bytes::Bytes;
use std::time::Duration;
use steadfast_kernel::Class;
use steadfast_messaging::wire::memory::{Faults, Listener, Memory};
use steadfast_messaging::wire::{Link, Wire};
use tokio::time::{Instant, timeout};

struct Pair {
    network: Memory,
    listener: Listener,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let network = Memory::with_packets_up_to(seed, LONGEST);
        let listener = network.listen("b");
        println!("{network}");
        Pair { network, listener }
    }
}

impl Links for Pair {
    async fn link(&mut self) -> (Link, Link) {
        let near = self.network.wire_of("a").connect("b").await.unwrap();
        (near, self.listener.accept().await.unwrap())
    }
}

async fn pair() -> Pair {
    Pair::new(1)
}

contract!(pair(), tokio::test(start_paused = true));

fn number(packet: &Bytes) -> u32 {
    u32::from_le_bytes(packet[..].try_into().unwrap())
}

/// Sends numbers from a to b, ends the link, and gives what has arrived, with the time that it took.
async fn numbers(seed: u64, faults: Faults) -> (Vec<u32>, Duration) {
    let mut pair = Pair::new(seed);
    let (near, mut far) = pair.link().await;
    pair.network.set("a", "b", faults);
    let began = Instant::now();
    let reads = tokio::spawn(async move {
        let mut got = Vec::new();
        while let Some(Ok(packet)) = far.incoming.recv().await {
            got.push(number(&packet));
        }
        got
    });
    for number in 0_u32..1000 {
        near.outgoing.send(number.to_le_bytes().to_vec().into()).await.unwrap();
    }
    drop(near);
    (reads.await.unwrap(), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_give_equal_faults_and_others_do_not() {
    let millis = Duration::from_millis;
    let faults = Faults { drop: 0.1, duplicate: 0.1, reorder: 0.1, delay: Some(millis(1)..=millis(9)), ..Faults::default() };
    let first = numbers(7, faults.clone()).await;
    assert_eq!(first, numbers(7, faults.clone()).await);
    assert_ne!(first.0, numbers(8, faults).await.0);
}

#[tokio::test(start_paused = true)]
async fn some_packets_are_dropped_and_the_rest_keeps_its_order() {
    let (got, _) = numbers(2, Faults { drop: 0.2, ..Faults::default() }).await;
    assert!((700..900).contains(&got.len()), "{}", got.len());
    assert!(got.is_sorted_by(|one, other| one < other));
}

#[tokio::test(start_paused = true)]
async fn some_packets_arrive_twice() {
    let (mut got, _) = numbers(3, Faults { duplicate: 0.2, ..Faults::default() }).await;
    assert!((1100..1300).contains(&got.len()), "{}", got.len());
    assert!(got.is_sorted());
    got.dedup();
    assert_eq!(got, (0..1000).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn some_packets_are_overtaken_and_none_is_lost() {
    let (mut got, _) = numbers(4, Faults { reorder: 0.2, ..Faults::default() }).await;
    assert!(!got.is_sorted());
    got.sort_unstable();
    assert_eq!(got, (0..1000).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn delayed_packets_keep_their_order() {
    let delay = Duration::from_millis(50)..=Duration::from_millis(100);
    let (got, took) = numbers(5, Faults { delay: Some(delay), ..Faults::default() }).await;
    assert_eq!(got, (0..1000).collect::<Vec<_>>());
    assert!(took >= Duration::from_millis(50), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn connecting_takes_the_way_there_and_back() {
    let mut pair = Pair::new(6);
    let delay = Duration::from_millis(30)..=Duration::from_millis(40);
    pair.network.set_both("a", "b", Faults { delay: Some(delay), ..Faults::default() });
    let began = Instant::now();
    let _ends = pair.link().await;
    assert!((60..=82).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn cut_ends_both_ends_and_says_so() {
    let mut pair = Pair::new(7);
    let (mut near, mut far) = pair.link().await;
    pair.network.cut("b", "a");
    for link in [&mut near, &mut far] {
        let reason = end(link).await.1.expect("a reason");
        assert_eq!(reason.class, Class::Transient);
    }
    assert_eq!((pair.network.counts().cut, pair.network.links()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn cut_of_others_leaves_a_link_alone() {
    let mut pair = Pair::new(7);
    let (near, mut far) = pair.link().await;
    pair.network.cut("a", "c");
    pair.network.cut_off("c");
    near.outgoing.send("there".into()).await.unwrap();
    assert_eq!(next(&mut far).await, "there");
    pair.network.cut_off("a");
    end(&mut far).await;
}

#[tokio::test(start_paused = true)]
async fn links_are_cut_every_so_often() {
    let mut pair = Pair::new(8);
    let mut ends = pair.link().await; // there before the fault is
    let second = Duration::from_secs(1)..=Duration::from_secs(2);
    pair.network.set("a", "b", Faults { cut_after: Some(second), ..Faults::default() });
    for _ in 0..3 {
        let began = Instant::now();
        end(&mut ends.0).await;
        assert!((1000..=2001).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
        ends = pair.link().await;
    }
    assert_eq!(pair.network.counts().cut, 3);
}

#[tokio::test(start_paused = true)]
async fn half_open_link_swallows_one_direction_and_nobody_is_told() {
    let mut pair = Pair::new(9);
    let (mut near, mut far) = pair.link().await;
    pair.network.set("a", "b", Faults { swallow: true, ..Faults::default() });
    for _ in 0..100 {
        near.outgoing.send("lost".into()).await.unwrap();
        far.outgoing.send("back".into()).await.unwrap();
        assert_eq!(next(&mut near).await, "back");
    }
    drop(near);
    let hour = Duration::from_secs(3600);
    assert!(timeout(hour, far.incoming.recv()).await.is_err(), "the end is swallowed as well");
    for _ in 0..100 {
        far.outgoing.send("to nobody".into()).await.unwrap();
    }
    pair.network.heal();
    assert_eq!(end(&mut far).await.0.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn half_open_both_ways_lets_neither_connect_nor_end() {
    let mut pair = Pair::new(10);
    let (near, mut far) = pair.link().await;
    pair.network.set_everywhere(Faults { swallow: true, ..Faults::default() });
    let hour = Duration::from_secs(3600);
    assert!(timeout(hour, pair.network.wire().connect("b")).await.is_err());
    drop(near);
    assert!(timeout(hour, far.incoming.recv()).await.is_err());
    pair.network.cut_all();
    end(&mut far).await;
}

#[tokio::test(start_paused = true)]
async fn refused_connections_fail_transiently_and_links_stay() {
    let mut pair = Pair::new(11);
    let (near, mut far) = pair.link().await;
    pair.network.set("a", "b", Faults { refuse: true, ..Faults::default() });
    let refused = pair.network.wire_of("a").connect("b").await.unwrap_err();
    assert_eq!(refused.class, Class::Transient);
    assert!(pair.network.wire_of("c").connect("b").await.is_ok(), "only the one is refused");
    near.outgoing.send("still".into()).await.unwrap();
    assert_eq!(next(&mut far).await, "still");
    pair.network.heal();
    pair.network.wire_of("a").connect("b").await.unwrap();
    let nobody = pair.network.wire_of("a").connect("nobody").await.unwrap_err();
    assert!(nobody.class == Class::Transient && nobody.message.contains("nobody listens"), "{nobody:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_listens_last_gets_the_links() {
    let mut pair = Pair::new(12);
    let mut newer = pair.network.listen("b");
    let _near = pair.network.wire_of("a").connect("b").await.unwrap();
    assert_eq!(newer.accept().await.unwrap().remote.address, "a");
    assert!(pair.listener.accept().await.is_none());
    drop(newer);
    assert!(pair.network.wire_of("a").connect("b").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn few_packets_wait_for_a_reader() {
    let mut pair = Pair::new(13);
    let (near, _far) = pair.link().await;
    let mut sent = 0;
    while timeout(Duration::from_secs(1), near.outgoing.send("x".into())).await.is_ok() {
        sent += 1;
    }
    assert!((4..=64).contains(&sent), "{sent}");
}
