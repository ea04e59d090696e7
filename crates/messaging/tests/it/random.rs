//! Everything at once on a network that does its worst: what succeeded ran once, and nothing is left at the end.

use crate::network::{Raw, deaf, ms, node, pass, request, secs, seed_or, until};
use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steadfast_messaging::envelope::Body;
use steadfast_messaging::wire::memory::{Faults, Memory};
use steadfast_messaging::{Failure, Node, Policy};

/// How many worlds there are in a test, and how much each of their sixteen clients does. `SEED` has another world.
const WORLDS: u64 = 4;
const ROUNDS: u64 = 20;

/// How often each request ran.
type Runs = Arc<Mutex<HashMap<String, u32>>>;

fn count_runs(node: &Node) -> Runs {
    let runs = Runs::default();
    let counted = Arc::clone(&runs);
    node.route("count", move |incoming| {
        let text = String::from_utf8(incoming.payload.to_vec()).unwrap();
        *counted.lock().entry(text).or_default() += 1;
        async move {
            pass(ms(u64::from(incoming.payload[0] % 16))).await;
            Ok::<Bytes, _>(incoming.payload)
        }
    });
    node.route_streams("mirror", |mut stream, _| async move {
        while let Some(piece) = stream.next().await? {
            stream.send(piece).await?;
        }
        Ok(())
    });
    runs
}

/// What links do to packets.
#[derive(Clone, Copy, PartialEq)]
enum Links {
    /// They come whole and in order until the link is cut, as a wire promises.
    Faithful,
    /// They are lost, doubled and overtaken, and nobody is told.
    Lossy,
}

fn faults(chance: &mut ChaCha8Rng, links: Links) -> Faults {
    let any = any_faults(chance);
    match links {
        Links::Lossy => any,
        Links::Faithful => Faults { drop: 0.0, duplicate: 0.0, reorder: 0.0, swallow: false, ..any },
    }
}

fn any_faults(chance: &mut ChaCha8Rng) -> Faults {
    let mut likely = |most: f64| if chance.next_u32().is_multiple_of(2) { 0.0 } else { most * f64::from(chance.next_u32() % 100) / 100.0 };
    let (drop, duplicate, reorder) = (likely(0.1), likely(0.1), likely(0.1));
    Faults {
        drop,
        duplicate,
        reorder,
        delay: (chance.next_u32().is_multiple_of(2)).then(|| ms(0)..=ms(u64::from(chance.next_u32() % 50))),
        swallow: chance.next_u32().is_multiple_of(10),
        refuse: chance.next_u32().is_multiple_of(10),
        cut_after: (chance.next_u32().is_multiple_of(2)).then(|| ms(100)..=ms(2000)),
        rate: None, // nothing is long here
    }
}

/// What the clients of all worlds have done to the end, so that it is known that it was tried.
#[derive(Default)]
struct Did {
    tells: AtomicU64,
    calls: AtomicU64,
    abandoned: AtomicU64,
    streams: AtomicU64,
    broken_streams: AtomicU64,
    samples: AtomicU64,
    retries: AtomicU64,
}

impl Did {
    fn all(&self) -> [(&'static str, u64); 7] {
        let Did { tells, calls, abandoned, streams, broken_streams, samples, retries } = self;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("tells", read(tells)),
            ("calls", read(calls)),
            ("abandoned calls", read(abandoned)),
            ("streams", read(streams)),
            ("broken streams", read(broken_streams)),
            ("samples", read(samples)),
            ("retries", read(retries)),
        ]
    }
}

fn add(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}

/// One client's work: what was acknowledged.
async fn work(node: Node, client: u64, seed: u64, did: Arc<Did>) -> Vec<String> {
    let mut chance = ChaCha8Rng::seed_from_u64(seed ^ client << 32);
    let policy = Policy::transient().max_attempts(30).attempt_timeout(ms(700));
    let mut acknowledged = Vec::new();
    for number in 0..ROUNDS {
        let (text, draw) = (format!("{client}/{number}"), chance.next_u32());
        match draw % 8 {
            0 | 1 => {
                let tell = node.tell("b", "count", text.clone()).policy(policy.clone()).timeout(secs(120));
                if tell.await.is_ok() {
                    add(&did.tells, 1);
                    acknowledged.push(text);
                }
            }
            2 => {
                let Ok(Ok(mut stream)) = tokio::time::timeout(secs(3), node.stream("b", "mirror", "")).await else { continue };
                let talk = async {
                    for number in 0..u64::from(draw % 50) {
                        stream.send(number.to_string()).await?;
                        let piece = stream.next().await?.ok_or_else(|| Failure::transient("it has finished"))?;
                        assert_eq!(piece, number.to_string(), "no gap, nothing twice");
                    }
                    Ok::<_, Failure>(())
                };
                let whole = matches!(tokio::time::timeout(secs(3), talk).await, Ok(Ok(())));
                add(if whole { &did.streams } else { &did.broken_streams }, 1);
            }
            3 => node.sample("b", "sample", text).unwrap(),
            4 => {
                let call = node.call("b", "count", text).policy(policy.clone()).into_future();
                let ended = tokio::time::timeout(ms(u64::from(draw % 30)), call).await;
                add(&did.abandoned, u64::from(ended.is_err()));
            }
            _ => {
                let call = node.call("b", "count", text.clone()).policy(policy.clone()).timeout(secs(120));
                if let Ok(answer) = call.await {
                    assert_eq!(answer, text);
                    add(&did.calls, 1);
                    acknowledged.push(text);
                }
            }
        }
    }
    acknowledged
}

async fn one_world(seed: u64, links: Links, did: &Arc<Did>) {
    let network = Memory::new(seed);
    let b = node(&network, "b");
    let runs = count_runs(&b);
    let sampled = Arc::clone(did);
    b.route_samples("sample", move |_| {
        add(&sampled.samples, 1);
        async {}
    });
    let clients: Vec<_> = (0..4)
        .map(|client| deaf(&network, &format!("c{client}"), |builder| builder.seed(seed + client)))
        .collect();
    let storm = tokio::spawn({
        let network = network.clone();
        async move {
            let mut chance = ChaCha8Rng::seed_from_u64(seed);
            loop {
                let name = format!("c{}", chance.next_u32() % 4);
                network.set(&name, "b", faults(&mut chance, links));
                network.set("b", &name, faults(&mut chance, links));
                if chance.next_u32().is_multiple_of(8) {
                    network.cut("b", &name);
                }
                pass(ms(u64::from(chance.next_u32() % 3000))).await;
                if chance.next_u32().is_multiple_of(3) {
                    network.heal();
                }
            }
        }
    });
    let mut works = tokio::task::JoinSet::new();
    for client in 0..4 {
        for lane in 0..4 {
            works.spawn(work(clients[client as usize].clone(), client * 4 + lane, seed, Arc::clone(did)));
        }
    }
    let acknowledged = works.join_all().await.concat();
    storm.abort();
    network.heal();
    until("all that runs has ended", || b.counts().requests == 0).await;
    let nodes = || clients.iter().chain([&b]);
    assert_eq!(nodes().map(|node| node.counts().calls).sum::<usize>(), 0, "SEED={seed}: calls are open");
    if links == Links::Lossy {
        network.cut_all(); // what was lost may have been the end of a stream, which then lives as long as its connection
    }
    until("no stream is open", || nodes().all(|node| node.counts().streams == 0)).await;
    let runs = runs.lock().clone();
    let wrong: Vec<_> = acknowledged.iter().filter(|text| runs.get(*text) != Some(&1)).collect();
    assert!(wrong.is_empty(), "SEED={seed}: acknowledged, but not run once: {wrong:?}");
    assert!(acknowledged.len() > 100, "SEED={seed}: only {} of some 220 were acknowledged", acknowledged.len());
    add(&did.retries, clients.iter().map(|client| client.counts().totals.retries).sum());
    assert_eq!(b.counts().inbox.running, 0);
    drop(clients);
    until("their connections have ended with them", || b.counts().connections == 0).await;
    b.close(secs(1)).await;
    drop(b);
    until("no link is left", || network.links() == 0).await;
}

/// Worlds of several seeds, one after the other.
fn worlds(links: Links) {
    let first = seed_or(1);
    let count = if std::env::var("SEED").is_ok() { 1 } else { WORLDS };
    let did = Arc::new(Did::default());
    for seed in first..first + count {
        println!("SEED={seed}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            one_world(seed, links, &did).await;
            pass(secs(30)).await;
            let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            assert_eq!(tasks, 0, "SEED={seed}: tasks are left");
        });
    }
    println!("{:?}", did.all());
    assert!(did.all().iter().all(|(_, count)| *count > 0), "not everything was tried: {:?}", did.all());
}

#[test]
fn what_was_acknowledged_ran_once_whatever_happens_and_no_task_is_left() {
    worlds(Links::Lossy);
}

#[test]
fn on_links_that_keep_their_word_no_stream_is_left_open_either() {
    worlds(Links::Faithful);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_duplicates_in_a_storm_run_once_each_in_bounded_memory() {
    let seed = seed_or(5);
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let network = Memory::new(seed);
    let b = node(&network, "b");
    let runs = count_runs(&b);
    let mut raws = [Raw::connect(&network, "b", "raw").await, Raw::connect(&network, "b", "raw").await];
    for round in 0..1000 {
        let requests: Vec<_> = (0..100)
            .map(|_| {
                let number = u64::from(chance.next_u32() % 20);
                let mut request = request(number, &number.to_string(), "count", &format!("{number}"));
                request.attempt = round + 1;
                if number < 10 { Body::Call(request) } else { Body::Tell(request) }
            })
            .collect();
        let raw = &mut raws[round as usize % 2];
        raw.say(&requests).await;
        while raw.within(ms(u64::from(chance.next_u32() % 2))).await.is_some() {}
        let counts = b.counts();
        assert!(counts.inbox.running + counts.inbox.finished <= 20 && counts.requests <= 20, "SEED={seed}: {counts:?}");
        assert!(counts.outgoing_bytes < 1 << 20, "SEED={seed}: {counts:?}");
    }
    assert_eq!(runs.lock().values().copied().collect::<Vec<_>>(), [1; 20], "SEED={seed}");
}
