//! Something between a client and a server that holds back answers and cuts connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

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
    /// Every connection is cut at once.
    refusing: bool,
    ended: bool,
    /// How many connections there were.
    connections: u64,
    open: Vec<TcpStream>,
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

    /// From now on nothing of what the server answers is passed on: what it gets, was sent without waiting for an answer.
    pub fn hold_answers(&self) {
        self.shared.lock().holding = true;
    }

    /// Passes on what was held, and all that comes.
    pub fn let_go(&self) {
        self.shared.lock().holding = false;
        self.shared.changed.notify_all();
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

    fn join(self: Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.server))?;
        let (to_server, to_client) = ((client.try_clone()?, server.try_clone()?), (server.try_clone()?, client.try_clone()?));
        self.lock().open.extend([client, server]);
        let answers = self.clone();
        std::thread::spawn(move || self.pass_on(to_server.0, to_server.1, false));
        std::thread::spawn(move || answers.pass_on(to_client.0, to_client.1, true));
        Ok(())
    }

    fn pass_on(&self, mut from: TcpStream, mut to: TcpStream, answers: bool) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            if answers {
                let held = |state: &mut State| state.holding && !state.ended;
                drop(self.changed.wait_while(self.lock(), held));
            }
            if to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _it_is_cut_already = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}
