//! Something between a client and a server that holds back or loses what they say, and cuts
//! connections.

use crate::losses::{Fate, Losses};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Passes on what comes; ends with this value.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Answers wait.
    holding: bool,
    /// What is asked over the connections up to that one waits.
    holding_requests_of: u64,
    /// Answers vanish.
    swallowing_answers: bool,
    /// What is asked vanishes.
    swallowing_requests: bool,
    /// Every connection is cut at once.
    refusing: bool,
    ended: bool,
    losses: Option<Losses>,
    /// How often all connections were cut.
    cuts: u64,
    /// How many connections there were.
    connections: u64,
    open: Vec<TcpStream>,
}

/// A connection that is passed on.
#[derive(Debug)]
struct Connection {
    began: Instant,
    /// Which one it is, counted from 1.
    number: u64,
    fate: Fate,
    /// How often all connections had been cut when it began.
    cuts: u64,
    /// Something of it has vanished: nothing more is passed on in that direction, as what comes
    /// later would not fit.
    lost_requests: AtomicBool,
    lost_answers: AtomicBool,
}

impl Proxy {
    /// Stands before a server on the loopback.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn before(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap_or_else(|error| panic!("there is no free port: {error}"));
        let port = listener.local_addr().unwrap_or_else(|error| panic!("there is no free port: {error}")).port();
        let shared = Arc::new(Shared { server, state: Mutex::default(), changed: Condvar::new() });
        let accepting = shared.clone();
        std::thread::spawn(move || accepting.accept(&listener));
        Proxy { port, shared }
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections there were.
    pub fn connections(&self) -> u64 {
        self.shared.lock().connections
    }

    /// From now on nothing of what the server answers is passed on: what it gets, was sent without
    /// waiting for an answer.
    pub fn hold_answers(&self) {
        self.shared.lock().holding = true;
    }

    /// From now on nothing of what is asked over the connections that are open is passed on, also
    /// when who asked is gone; new connections are not concerned.
    pub fn hold_requests(&self) {
        let mut state = self.shared.lock();
        state.holding_requests_of = state.connections;
    }

    /// From now on what the server answers vanishes, while connections stay open and the server
    /// gets all that it is asked.
    pub fn swallow_answers(&self) {
        self.shared.lock().swallowing_answers = true;
    }

    /// From now on everything vanishes, in both directions, that an end has gone included:
    /// connections are half-open.
    pub fn swallow(&self) {
        let mut state = self.shared.lock();
        (state.swallowing_answers, state.swallowing_requests) = (true, true);
    }

    /// Passes on what was held, and all that comes. Connections of which something has vanished
    /// stay as they are until they are cut.
    pub fn let_go(&self) {
        let mut state = self.shared.lock();
        (state.holding, state.swallowing_answers, state.swallowing_requests) = (false, false, false);
        state.holding_requests_of = 0;
        self.shared.changed.notify_all();
    }

    /// From now on this becomes of every new connection.
    pub fn lose(&self, losses: Option<Losses>) {
        self.shared.lock().losses = losses;
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.shared.cut(&mut self.shared.lock());
    }

    /// Cuts all connections, and each that comes, until told otherwise.
    pub fn refuse(&self, refuse: bool) {
        let mut state = self.shared.lock();
        state.refusing = refuse;
        if refuse {
            self.shared.cut(&mut state);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.ended = true;
        self.shared.cut(&mut state);
        drop(state);
        // The thread that accepts is woken up, sees that this has ended, and ends.
        let _nobody_is_there = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self, state: &mut State) {
        for stream in state.open.drain(..) {
            let _it_is_cut_already = stream.shutdown(Shutdown::Both);
        }
        state.cuts += 1;
        self.changed.notify_all();
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming().map_while(Result::ok) {
            let mut state = self.lock();
            if state.ended {
                return;
            }
            state.connections += 1;
            if state.refusing {
                continue;
            }
            drop(state);
            let _nobody_is_there = self.clone().join(client);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "real sockets live by the real clock")]
    fn join(self: Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.server))?;
        let _they_are_slower_without = (client.set_nodelay(true), server.set_nodelay(true));
        let ends = || Ok::<_, std::io::Error>((client.try_clone()?, server.try_clone()?));
        let (requests, answers, both) = (ends()?, ends()?, ends()?);
        let mut state = self.lock();
        let fate = state.losses.as_ref().map(|losses| losses.fate(state.connections)).unwrap_or_default();
        let lost = || AtomicBool::new(false);
        let connection = Arc::new(Connection {
            began: Instant::now(),
            number: state.connections,
            fate,
            cuts: state.cuts,
            lost_requests: lost(),
            lost_answers: lost(),
        });
        state.open.extend([client, server]);
        drop(state);
        if let Some(life) = connection.fate.cut {
            let (shared, connection) = (Arc::clone(&self), Arc::clone(&connection));
            std::thread::spawn(move || {
                shared.wait(&connection, life);
                let _it_is_cut_already = (both.0.shutdown(Shutdown::Both), both.1.shutdown(Shutdown::Both));
            });
        }
        let (shared, same) = (Arc::clone(&self), Arc::clone(&connection));
        std::thread::spawn(move || shared.pass_on(requests.0, requests.1, &same, false));
        std::thread::spawn(move || self.pass_on(answers.1, answers.0, &connection, true));
        Ok(())
    }

    fn pass_on(&self, mut from: TcpStream, mut to: TcpStream, connection: &Connection, answers: bool) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            let passes = self.passes(connection, answers);
            if passes && to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        // That an end has gone is not passed on either where everything vanishes.
        let _is_this_lost = self.passes(connection, answers);
        if connection.lost_requests.load(Ordering::Acquire) || connection.lost_answers.load(Ordering::Acquire) {
            self.wait(connection, connection.fate.cut.unwrap_or(Duration::MAX));
        }
        let _it_is_cut_already = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    /// Waits until this may go on; says whether it is passed on or vanishes.
    fn passes(&self, connection: &Connection, answers: bool) -> bool {
        if let Some(stall) = connection.fate.stall.as_ref().filter(|stall| stall.contains(&connection.began.elapsed())) {
            self.wait(connection, *stall.end());
        }
        let lost = if answers { &connection.lost_answers } else { &connection.lost_requests };
        let held = |state: &mut State| {
            let holds = if answers { state.holding } else { connection.number <= state.holding_requests_of };
            holds && !state.ended
        };
        let state = self.changed.wait_while(self.lock(), held).unwrap_or_else(PoisonError::into_inner);
        let swallows = if answers { state.swallowing_answers } else { state.swallowing_requests };
        let fated = answers && connection.fate.swallow.is_some_and(|from| connection.began.elapsed() >= from);
        lost.fetch_or(swallows || fated, Ordering::AcqRel);
        !lost.load(Ordering::Acquire)
    }

    /// Waits until a connection has that age, or is cut.
    fn wait(&self, connection: &Connection, age: Duration) {
        let lives = |state: &mut State| !state.ended && state.cuts == connection.cuts;
        let rest = age.saturating_sub(connection.began.elapsed());
        // A year is for ever.
        let rest = rest.min(Duration::from_secs(365 * 86_400));
        drop(self.changed.wait_timeout_while(self.lock(), rest, lives));
    }
}
