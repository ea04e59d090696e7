//! Routes: who deals with what comes, and how.

use crate::node::Peer;
use crate::streams::Stream;
use crate::wire::Fingerprint;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Code, Failure, Policy};
use tokio::time::Instant;

/// A request, as its handler sees it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Incoming {
    /// The route that it came by.
    pub route: Arc<str>,
    /// What tells it apart from all other requests of its caller; empty for streams and samples.
    pub id: Arc<str>,
    /// Who sent it.
    pub caller: Arc<Caller>,
    /// Its caller waits for the answer: it is a call, and no tell.
    pub wants_answer: bool,
    /// Which attempt of the caller's it is.
    pub attempt: u32,
    /// It comes out of the dead letters, so it may have been run before, in part or whole. What its caller sends again is not marked: the inbox answers it, or does not know it any more.
    pub redelivered: bool,
    /// When its time is over. The handler is dropped then.
    pub ends_at: Instant,
    /// The trace that it belongs to; empty if there is none.
    pub trace: String,
    /// The bytes.
    pub payload: Bytes,
}

impl Incoming {
    /// Reads the bytes as JSON.
    ///
    /// # Errors
    /// Poison, if they say something else: the message becomes a dead letter.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.payload).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Failure::poison(format!(
                "the payload of {} is not what it takes: {:?} error at line {line}, column {column}",
                self.route,
                error.classify()
            ))
        })
    }

    /// How much of its time is left.
    pub fn left(&self) -> Duration {
        self.ends_at.saturating_duration_since(Instant::now())
    }
}

/// Shows what it is about, never its bytes.
impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incoming({} {} of {}, attempt {}, {} bytes)", self.route, self.id, self.caller.name, self.attempt, self.payload.len())
    }
}

/// Who sent something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// What it calls itself.
    pub name: Arc<str>,
    /// What tells its requests from those of others: its name, and what it has proved.
    pub scope: Arc<str>,
    /// Its certificate, if it has shown one.
    pub fingerprint: Option<Fingerprint>,
    /// The name that an authority vouches for by that certificate, which stays when it is renewed: `dns:` and its first DNS name, or `subject:` and a digest of its subject. Nothing
    /// where certificates are pinned.
    pub vouched: Option<Arc<str>>,
    /// Who it is by its token, if the listener asked for one.
    pub principal: Option<Arc<str>>,
    /// How to call it back, over the same connection if that is still there.
    pub peer: Peer,
}

pub(crate) type Handler = Arc<dyn Fn(Incoming) -> BoxFuture<'static, Result<Bytes, Failure>> + Send + Sync>;
pub(crate) type StreamHandler = Arc<dyn Fn(Stream, Incoming) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>;
pub(crate) type SampleHandler = Arc<dyn Fn(Incoming) -> BoxFuture<'static, ()> + Send + Sync>;
type Guard = Arc<dyn Fn(&Caller) -> Result<(), Failure> + Send + Sync>;
type KeyOf = Arc<dyn Fn(&Incoming) -> Vec<u8> + Send + Sync>;

/// How many wait for their turn unless a route says otherwise.
const IN_LINE: usize = 8192;

/// Where handlers begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Where the request is read, while those of the route are short.
    AsSeen,
    /// Where the request is read.
    AtOnce,
    /// In tasks of their own.
    InTasks,
}

/// How the requests of one route are dealt with.
#[derive(Clone)]
#[must_use]
pub struct Route {
    pub(crate) handler: Handler,
    pub(crate) once: bool,
    pub(crate) taken_when_done: bool,
    pub(crate) begins: Begins,
    pub(crate) side_by_side: usize,
    pub(crate) in_line: usize,
    pub(crate) key: Option<KeyOf>,
    pub(crate) timeout: Duration,
    pub(crate) guard: Option<Guard>,
    pub(crate) policy: Policy,
}

impl Route {
    /// Requests are given to that handler: each once, up to 256 side by side, and for a minute at the most.
    pub fn new<F, Fut, Answer>(handler: F) -> Self
    where
        F: Fn(Incoming) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Answer, Failure>> + Send + 'static,
        Answer: Into<Bytes>,
    {
        let handler: Handler = Arc::new(move |incoming| {
            let answer = handler(incoming);
            Box::pin(async move { answer.await.map(Into::into) })
        });
        let (timeout, policy) = (Duration::from_secs(60), Policy::transient());
        let (side_by_side, in_line) = (256, IN_LINE);
        Route {
            handler,
            once: true,
            taken_when_done: false,
            begins: Begins::AsSeen,
            side_by_side,
            in_line,
            key: None,
            timeout,
            guard: None,
            policy,
        }
    }

    /// Runs a request as often as it is delivered: for handlers that do not mind, such as those that only read. A call that its caller sends again over the same connection, because its
    /// answer is late, is not delivered again while it runs.
    pub fn every_time(mut self) -> Self {
        self.once = false;
        self
    }

    /// A tell is taken only when its handler has succeeded, and fails for its sender if that fails: for handlers that make it durable. They see
    /// a request as often as it is delivered, and nothing is tried again here.
    pub fn taken_when_done(mut self) -> Self {
        (self.taken_when_done, self.once) = (true, false);
        self
    }

    /// Every handler begins where its request is read, without a task of its own, and gets one only when it has to wait for something. Routes do that by themselves when
    /// their handlers have shown to be short; this is for those that are known to be. What takes long before it first waits holds up all other requests of its connection.
    pub fn at_once(mut self) -> Self {
        self.begins = Begins::AtOnce;
        self
    }

    /// Every handler has a task of its own from its beginning, however short it is: for handlers that are short nearly always, and may block their thread now and then.
    pub fn in_tasks(mut self) -> Self {
        self.begins = Begins::InTasks;
        self
    }

    /// How many run side by side at the most.
    pub fn side_by_side(mut self, count: usize) -> Self {
        self.side_by_side = count.max(1);
        self
    }

    /// How many wait for their turn at the most: 8,192 unless said otherwise, half of what a node takes by default; those of one connection leave a
    /// fifth of them to others. What comes beyond that is refused, with the time to come again.
    pub fn in_line(mut self, count: usize) -> Self {
        self.in_line = count;
        self
    }

    /// Requests of one key run one after the other, in the order in which they came.
    pub fn serial_by<K: AsRef<[u8]>>(mut self, key: impl Fn(&Incoming) -> K + Send + Sync + 'static) -> Self {
        self.key = Some(Arc::new(move |incoming| key(incoming).as_ref().to_vec()));
        self
    }

    /// How long a request may run, also if its caller would wait for longer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Who may send requests here. What is refused leaves no trace.
    ///
    /// It is asked again when a dead letter is redriven, with what the letter keeps of its caller: the name, on whose behalf it was sent if that was another one, and what was proved. Where an
    /// authority vouched for a name, that is the name and not the fingerprint.
    pub fn allow(mut self, guard: impl Fn(&Caller) -> Result<(), Failure> + Send + Sync + 'static) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// What follows a failure of a tell that was taken: its sender does not hear of it any more. [`Policy::transient`] unless said otherwise. While it waits for its next attempt, it is not
    /// among those that run side by side, unless it has a [key](Self::serial_by).
    pub fn tell_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }
}

impl Route {
    /// Whether that caller may send requests here.
    pub(crate) fn allows(&self, caller: &Caller) -> Result<(), Failure> {
        let Some(guard) = &self.guard else { return Ok(()) };
        catch_unwind(AssertUnwindSafe(|| guard(caller))).unwrap_or_else(|_| Err(panicked("what says who may send requests here")))
    }

    /// The key of a request, if they have one here.
    pub(crate) fn key_of(&self, incoming: &Incoming) -> Result<Option<Vec<u8>>, Failure> {
        let Some(key) = &self.key else { return Ok(None) };
        catch_unwind(AssertUnwindSafe(|| key(incoming)))
            .map(Some)
            .map_err(|_| panicked("what says the key of a request"))
    }
}

fn panicked(what: &str) -> Failure {
    Failure::new(Code::Internal, format!("{what} panicked"))
}

/// What a name leads to.
#[derive(Clone)]
pub(crate) enum Routed {
    Requests(Arc<super::lane::Lane>),
    Streams(StreamHandler),
    Samples(Arc<super::samples::Samples>),
}
