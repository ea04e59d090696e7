//! A network in this process, with faults that follow from a seed: for tests and simulation.
//!
//! ```
//! use steadfast_messaging::wire::{Wire, memory::{Faults, Memory}};
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), steadfast_kernel::Failure> {
//! let network = Memory::new(42);
//! let mut listener = network.listen("b");
//! let mut near = network.wire_of("a").connect("b").await?;
//! let mut far = listener.accept().await.unwrap();
//! near.outgoing.send("hello".into()).await?;
//! assert_eq!(far.incoming.recv().await.unwrap()?, "hello");
//!
//! network.set("a", "b", Faults { swallow: true, ..Faults::default() }); // half-open
//! network.cut_all();
//! assert!(far.incoming.recv().await.unwrap().is_err());
//! # Ok(())
//! # }
//! ```

mod faults;
mod pipe;

pub use faults::{Counts, Faults};

use super::{Gone, Link, PACKET_BYTES_MAX, Pulse, Remote, Wire, until};
use faults::Rules;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pipe::{End, Pipe, between};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use steadfast_kernel::Failure;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many packets wait at either end of a direction.
const QUEUE: usize = 4;

/// How many links wait to be accepted.
const BACKLOG: usize = 16;

/// A network in this process. Addresses are names. Equal seeds give equal faults where the time is paused and one thread runs all.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
}

struct Shared {
    seed: u64,
    packet_bytes_max: usize,
    rules: watch::Sender<Rules>,
    counts: Arc<Mutex<Counts>>,
    listeners: Mutex<BTreeMap<String, mpsc::Sender<Link>>>,
    links: Mutex<Vec<Known>>,
}

/// A link that may still be there.
struct Known {
    near: String,
    far: String,
    cut: Weak<CancellationToken>,
}

impl Memory {
    /// A network without faults, until they are set.
    pub fn new(seed: u64) -> Self {
        Memory::with_packets_up_to(seed, PACKET_BYTES_MAX)
    }

    /// The same with another longest packet, in bytes.
    pub fn with_packets_up_to(seed: u64, packet_bytes_max: usize) -> Self {
        let (rules, _) = watch::channel(Rules::default());
        let (counts, listeners, links) = Default::default();
        Memory { shared: Arc::new(Shared { seed, packet_bytes_max, rules, counts, listeners, links }) }
    }

    /// The seed that all faults follow from.
    pub fn seed(&self) -> u64 {
        self.shared.seed
    }

    /// Listens on a name. Whoever listened on it before gets no more links.
    pub fn listen(&self, name: &str) -> Listener {
        let (sender, links) = mpsc::channel(BACKLOG);
        self.shared.listeners.lock().insert(name.to_owned(), sender);
        Listener { links }
    }

    /// A wire of somebody without a name: its faults are those that hold for the name "".
    pub fn wire(&self) -> MemoryWire {
        self.wire_of("")
    }

    /// A wire of somebody with a name, by which faults of its links can be set.
    pub fn wire_of(&self, name: &str) -> MemoryWire {
        MemoryWire { network: self.clone(), name: name.to_owned() }
    }

    /// Sets what happens to all that travels from one to the other, on links that are there and links to come.
    pub fn set(&self, from: &str, to: &str, faults: Faults) {
        self.shared.rules.send_modify(|rules| rules.set(from, to, faults));
    }

    /// Sets what happens to all that travels between two, in either direction.
    pub fn set_both(&self, one: &str, other: &str, faults: Faults) {
        self.shared.rules.send_modify(|rules| {
            rules.set(one, other, faults.clone());
            rules.set(other, one, faults);
        });
    }

    /// Sets what happens to everything; rules by name are forgotten.
    pub fn set_everywhere(&self, faults: Faults) {
        self.shared.rules.send_modify(|rules| rules.set_everywhere(faults));
    }

    /// No faults from now on. What was lost stays lost.
    pub fn heal(&self) {
        self.set_everywhere(Faults::default());
    }

    /// Cuts the links between two, whoever connected to whom.
    pub fn cut(&self, one: &str, other: &str) {
        self.shared
            .cut(|link| link.near == one && link.far == other || link.near == other && link.far == one);
    }

    /// Cuts every link of that name, as if its process had ended.
    pub fn cut_off(&self, name: &str) {
        self.shared.cut(|link| link.near == name || link.far == name);
    }

    /// Cuts every link.
    pub fn cut_all(&self) {
        self.shared.cut(|_| true);
    }

    /// How many links are there.
    pub fn links(&self) -> usize {
        let mut links = self.shared.links.lock();
        links.retain(|link| link.cut.strong_count() > 0);
        links.len()
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        *self.shared.counts.lock()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("seed", &self.shared.seed).finish_non_exhaustive()
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "network in memory with seed {}", self.shared.seed)
    }
}

impl Shared {
    fn cut(&self, which: impl Fn(&Known) -> bool) {
        for link in self.links.lock().extract_if(.., |link| which(link)) {
            if let Some(cut) = link.cut.upgrade().filter(|cut| !cut.is_cancelled()) {
                self.counts.lock().cut += 1;
                cut.cancel();
            }
        }
    }

    /// A source of chance of its own for every direction of every link, so that what happens on one changes nothing on another.
    fn random(&self, link: u64, direction: u8) -> ChaCha8Rng {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&link.to_le_bytes());
        seed[16] = direction;
        ChaCha8Rng::from_seed(seed)
    }

    /// Waits as a connection takes, or for ever as long as either direction swallows.
    async fn reach(&self, from: &str, to: &str, link: u64) -> Result<(), Failure> {
        let mut rules = self.rules.subscribe();
        let swallows = |rules: &Rules| rules.of(from, to).swallow || rules.of(to, from).swallow;
        let (there, back) = match rules.wait_for(|rules| !swallows(rules)).await {
            Ok(rules) => (rules.of(from, to), rules.of(to, from)),
            Err(_) => return Err(refused(to)),
        };
        let mut random = self.random(link, 2);
        let at = [there.delay, back.delay]
            .iter()
            .flatten()
            .fold(Instant::now(), |at, delay| at + between(&mut random, delay));
        until(Some(at)).await;
        if there.refuse { Err(refused(to)) } else { Ok(()) }
    }

    fn link(&self, from: &str, to: &str, number: u64) -> (Link, Link) {
        let cut = Arc::new(CancellationToken::new());
        let (near, far) = (Arc::new(End::default()), Arc::new(End::default()));
        let mut links = self.links.lock();
        links.retain(|link| link.cut.strong_count() > 0);
        links.push(Known { near: from.to_owned(), far: to.to_owned(), cut: Arc::downgrade(&cut) });
        let pipe = |direction, way: (&str, &str), near: &Arc<End>, far: &Arc<End>| {
            let (outgoing, from) = mpsc::channel(QUEUE);
            let (to, incoming) = mpsc::channel(QUEUE);
            let pipe = Pipe {
                way: (way.0.to_owned(), way.1.to_owned()),
                from,
                to: Some(to),
                near: Arc::clone(near),
                far: Arc::clone(far),
                cut: Arc::clone(&cut),
                rules: self.rules.subscribe(),
                random: self.random(number, direction),
                counts: Arc::clone(&self.counts),
                packet_bytes_max: self.packet_bytes_max,
            };
            drop(tokio::spawn(pipe.run()));
            (outgoing, incoming)
        };
        let (near_out, far_in) = pipe(0, (from, to), &near, &far);
        let (far_out, near_in) = pipe(1, (to, from), &far, &near);
        let end = |outgoing, incoming, name: &str| {
            let remote = Remote { address: name.to_owned(), ..Remote::default() };
            Link { outgoing, incoming, remote, pulse: Pulse::default(), gone: Gone::default() }
        };
        (end(near_out, near_in, to), end(far_out, far_in, from))
    }
}

/// Takes the links that others make to a name, until it is dropped.
#[derive(Debug)]
pub struct Listener {
    links: mpsc::Receiver<Link>,
}

impl Listener {
    /// The next link; nothing once somebody else listens on that name.
    pub async fn accept(&mut self) -> Option<Link> {
        self.links.recv().await
    }
}

/// Connects to the names of a network in memory.
#[derive(Clone, Debug)]
pub struct MemoryWire {
    network: Memory,
    name: String,
}

impl Wire for MemoryWire {
    fn connect(&self, address: &str) -> BoxFuture<'static, Result<Link, Failure>> {
        let (shared, from, to) = (Arc::clone(&self.network.shared), self.name.clone(), address.to_owned());
        let number = {
            let mut counts = shared.counts.lock();
            counts.links += 1;
            counts.links
        };
        Box::pin(async move {
            let reached = shared.reach(&from, &to, number).await;
            let listener = shared.listeners.lock().get(&to).cloned();
            let place = async { listener?.reserve_owned().await.ok() };
            let (Ok(()), Some(place)) = (reached, place.await) else {
                shared.counts.lock().refused += 1;
                return Err(refused(&to));
            };
            let (near, far) = shared.link(&from, &to, number);
            place.send(far);
            Ok(near)
        })
    }
}

fn refused(address: &str) -> Failure {
    Failure::transient(format!("cannot connect to {address}: nobody listens there"))
}
