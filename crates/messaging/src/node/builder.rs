//! Puts a node together.

use super::outgoing::PACKET_BYTES;
use super::{Inner, Node};
use crate::inbox;
use crate::letters::Letters;
use crate::limits::{FRAME_OVERHEAD, Limits};
use crate::names;
use crate::posting::Postings;
use crate::receiving::{KnownRequests, Load};
use crate::wire::{PACKET_BYTES_MAX, Wire};
use hashbrown::DefaultHashBuilder;
use parking_lot::{Mutex, RwLock};
use rand::rngs::{ChaCha8Rng, SysRng};
use rand::{Rng, SeedableRng, TryRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use steadfast_kernel::{Code, Failure};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The longest payload that fits into a packet with all that comes with it.
const PAYLOAD_BYTES_MAX: usize = PACKET_BYTES_MAX - PACKET_BYTES - FRAME_OVERHEAD;

/// Puts a node together.
#[must_use]
pub struct Builder {
    pub(super) name: Option<String>,
    pub(super) limits: Limits,
    pub(super) inbox: inbox::Settings,
    pub(super) letters: Arc<dyn Letters>,
    pub(super) wire: Option<Arc<dyn Wire>>,
    pub(super) seed: Option<u64>,
    pub(super) answers_whom_it_calls: bool,
}

impl Builder {
    /// What the node is called. Whoever wants its requests to be known again after a restart gives it a name; it is drawn if not.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How much of everything it takes.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The bounds of its inbox.
    pub fn inbox(mut self, settings: inbox::Settings) -> Self {
        self.inbox = settings;
        self
    }

    /// Who keeps dead letters; a box in memory if nobody is named.
    pub fn letters(mut self, letters: Arc<dyn Letters>) -> Self {
        self.letters = letters;
        self
    }

    /// Whether it can connect to addresses.
    pub fn has_wire(&self) -> bool {
        self.wire.is_some()
    }

    /// How it connects to addresses; without one it only answers those who connect to it.
    pub fn wire(mut self, wire: Arc<dyn Wire>) -> Self {
        self.wire = Some(wire);
        self
    }

    /// It takes requests, streams and samples only over connections that others have made to it. Either side of a connection may call the other; but whoever connects may have had to prove
    /// something for that, with a token for instance, and whom this node connects to has not.
    pub fn only_for_those_who_connect(mut self) -> Self {
        self.answers_whom_it_calls = false;
        self
    }

    /// Where its chance comes from, so that delays are the same each time; for tests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The node.
    ///
    /// # Errors
    /// If the name cannot be one, or the system gives no random numbers.
    pub fn build(self) -> Result<Node, Failure> {
        let mut chance = match self.seed {
            Some(seed) => ChaCha8Rng::seed_from_u64(seed),
            None => {
                let mut seed = [0; 32];
                SysRng
                    .try_fill_bytes(&mut seed)
                    .map_err(|error| Failure::new(Code::Internal, format!("no random numbers: {error}")))?;
                ChaCha8Rng::from_seed(seed)
            }
        };
        let name = self.name.unwrap_or_else(|| format!("node-{:016x}", chance.next_u64()));
        names::check_node(&name)?;
        if self.limits.payload_bytes_max > PAYLOAD_BYTES_MAX {
            let message =
                format!("payload_bytes_max is {}, and no wire takes more than {PAYLOAD_BYTES_MAX}", self.limits.payload_bytes_max);
            return Err(Failure::new(Code::InvalidArgument, message));
        }
        let inner = Inner {
            name: name.into(),
            seats: super::Seats::new(self.limits.connections_max),
            limits: self.limits,
            letters: self.letters,
            routes: RwLock::default(),
            known: Mutex::new(KnownRequests::new(self.inbox)),
            hasher: DefaultHashBuilder::default(),
            load: Load::default(),
            idle: Notify::new(),
            connections: Mutex::default(),
            peers: Mutex::default(),
            postings: Postings::default(),
            sweeping: AtomicBool::new(false),
            wire: self.wire,
            answers_whom_it_calls: self.answers_whom_it_calls,
            prefix: format!("{:016x}-", chance.next_u64()),
            chance: Mutex::new(chance),
            ids: AtomicU64::new(1),
            tally: super::Tally::default(),
            closing: AtomicBool::new(false),
            lanes: Mutex::default(),
            taken: AtomicUsize::new(0),
            gives_up: CancellationToken::new(),
            #[cfg(feature = "http2")]
            listening: Mutex::default(),
            closed: CancellationToken::new(),
        };
        Ok(Node { inner: Arc::new(inner) })
    }
}
