//! How packets come from one node to another. A wire knows nothing of what is in them.

#[cfg(feature = "http2")]
pub mod http2;
pub mod memory;
mod queue;
#[cfg(feature = "http2")]
pub mod tls;

pub(crate) use queue::{Closed, Queue};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use steadfast_kernel::{Class, Code, Failure};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The longest packet that wires take unless they are told otherwise, in bytes.
pub const PACKET_BYTES_MAX: usize = 8 << 20;

/// Connects to addresses. The other end is a [`Link`], too, which whoever listens hands to [`Node::accept`](crate::Node::accept).
pub trait Wire: Send + Sync + 'static {
    /// Connects once. Whoever asks keeps an eye on the time, and drops the future when it has waited long enough.
    ///
    /// # Errors
    /// Transient if it may work later; permanent if that address can never be reached this way.
    fn connect(&self, address: &str) -> BoxFuture<'static, Result<Link, Failure>>;
}

/// A connection: packets go in and come out in order, whole, until it is cut.
///
/// Dropping either half cuts it: the other half ends at once, and so does the other end, once it has got what was sent before.
#[derive(Debug)]
pub struct Link {
    /// Takes packets; closed once the link is cut. A wire keeps few packets waiting, so that what is slow is felt; a node keeps few bytes waiting there.
    pub outgoing: mpsc::Sender<Bytes>,
    /// Gives packets; ends when the link is cut, with the reason in front if there is one.
    pub incoming: mpsc::Receiver<Result<Bytes, Failure>>,
    /// Who is at the other end, as far as the wire knows.
    pub remote: Remote,
    /// What moves there, packet or not.
    pub pulse: Pulse,
    /// When nothing of it is left here.
    pub gone: Gone,
}

/// Tells when nothing of a link is left here, a moment after it was cut: what was put into it is sent by then, or given up. Whoever ends a process waits for that. By default a wire does not
/// tell, and nobody waits.
#[derive(Clone, Debug, Default)]
pub struct Gone(Option<CancellationToken>);

/// What there is of a link, in the hands of those who serve it. It is gone with the last clone of this.
#[derive(Clone, Debug)]
pub struct Serving {
    _gone: Arc<DropGuard>,
}

impl Gone {
    /// For a link that is gone when nobody serves it any more.
    pub fn when_unserved() -> (Self, Serving) {
        let gone = CancellationToken::new();
        (Gone(Some(gone.clone())), Serving { _gone: Arc::new(gone.drop_guard()) })
    }

    /// Waits for that.
    pub(crate) async fn wait(&self) {
        if let Some(gone) = &self.0 {
            gone.cancelled().await;
        }
    }
}

/// What moves on a link though no packet is whole yet, as far as its wire tells: a long packet on a slow line is no silence.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Moved>);

#[derive(Debug, Default)]
struct Moved {
    came: AtomicU64,
    went: AtomicU64,
}

impl Pulse {
    /// A part of a packet has come.
    pub fn came(&self) {
        self.0.came.fetch_add(1, Ordering::Relaxed);
    }

    /// A part of a packet, not its first, was taken by what sends it: there is room behind the parts before it, in the buffers of this machine or beyond them. While little is on its way, that
    /// says nothing of the other end; once all buffers are full, one goes in where the other end has taken one out, or many at a time with long pauses on a slow line.
    pub fn went(&self) {
        self.0.went.fetch_add(1, Ordering::Relaxed);
    }

    /// How many parts have come.
    pub(crate) fn come(&self) -> u64 {
        self.0.came.load(Ordering::Relaxed)
    }

    /// How many parts have gone out.
    pub(crate) fn gone(&self) -> u64 {
        self.0.went.load(Ordering::Relaxed)
    }
}

/// Who is at the other end of a link, as far as the wire knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Where it is, for people.
    pub address: String,
    /// The certificate that it has shown, if it has one.
    pub fingerprint: Option<Fingerprint>,
    /// The name that an authority vouches for by that certificate, which stays when it is renewed; nothing where certificates are pinned.
    pub vouched: Option<Arc<str>>,
    /// Who it is by its token, if the listener asked for one.
    pub principal: Option<Arc<str>>,
}

impl Remote {
    /// What it has proved, as a part of its scope: the name that an authority vouches for, else its certificate, else who it is by its token.
    pub(crate) fn proof(&self) -> Option<String> {
        match (&self.vouched, &self.fingerprint, &self.principal) {
            (Some(name), _, _) => Some(name.to_string()),
            (None, Some(fingerprint), _) => Some(format!("{CERTIFICATE}{fingerprint}")),
            (None, None, Some(principal)) => Some(format!("{TOKEN}{principal}")),
            (None, None, None) => None,
        }
    }

    /// Who has proved that; nothing is known of where it is.
    pub(crate) fn of_proof(proof: &str) -> Self {
        if let Some(fingerprint) = proof.strip_prefix(CERTIFICATE).and_then(Fingerprint::parse) {
            return Remote { fingerprint: Some(fingerprint), ..Remote::default() };
        }
        match proof.strip_prefix(TOKEN) {
            Some(principal) => Remote { principal: Some(principal.into()), ..Remote::default() },
            None => Remote { vouched: Some(proof.into()), ..Remote::default() },
        }
    }
}

/// What proofs begin with, so that none can be taken for one of another kind.
const CERTIFICATE: &str = "cert:";
const TOKEN: &str = "token:";

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Reads what it is shown as.
    fn parse(text: &str) -> Option<Self> {
        let (mut bytes, digits) = ([0; 32], text.as_bytes());
        for (n, byte) in bytes.iter_mut().enumerate() {
            let pair = std::str::from_utf8(digits.get(2 * n..2 * n + 2)?).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        (digits.len() == 64).then_some(Fingerprint(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a link has ended on which somebody sent a packet that is too long: it would be no shorter the next time.
pub(crate) fn too_long(length: usize, max: usize) -> Failure {
    Failure::new(Code::ResourceExhausted, format!("a packet of {length} bytes is longer than the {max} that are taken"))
        .class(Class::Permanent)
}

/// Waits until then, if there is a then.
pub(crate) async fn until(at: Option<Instant>) {
    if let Some(at) = at {
        let _it_is_time = tokio::time::timeout_at(at, std::future::pending::<()>()).await;
    }
}
