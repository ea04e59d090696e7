//! A service that the steps of tests call: it remembers every call by its key, and some of its paths are not to be relied on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) struct World {
    pub(crate) url: String,
    calls: Calls,
}

/// The paths that were called, with the `Idempotency-Key` and the `traceparent` of each call.
type Calls = Arc<Mutex<Vec<Call>>>;

#[derive(Clone)]
struct Call {
    path: String,
    key: String,
    trace: String,
    body: String,
}

impl World {
    /// Opens it on a free port; it is there until the tests end.
    pub(crate) fn open() -> Self {
        World::on(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// Opens it at an address that [`nobody`] has answered at so far.
    pub(crate) fn open_at(url: &str) -> Self {
        World::on(TcpListener::bind(url.strip_prefix("http://").unwrap()).unwrap())
    }

    fn on(listener: TcpListener) -> Self {
        let (url, calls) = (format!("http://{}", listener.local_addr().unwrap()), Calls::default());
        let heard = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let calls = Arc::clone(&heard);
                std::thread::spawn(move || answer(stream, &calls));
            }
        });
        World { url, calls }
    }

    /// The keys of the calls of a path, in their order.
    pub(crate) fn calls(&self, path: &str) -> Vec<String> {
        self.of(path, |call| call.key.clone())
    }

    /// The traces of the calls of a path.
    pub(crate) fn traces(&self, path: &str) -> Vec<String> {
        self.of(path, |call| call.trace.clone())
    }

    /// What was sent to a path.
    pub(crate) fn bodies(&self, path: &str) -> Vec<String> {
        self.of(path, |call| call.body.clone())
    }

    fn of(&self, path: &str, what: impl Fn(&Call) -> String) -> Vec<String> {
        self.calls.lock().unwrap().iter().filter(|call| call.path == path).map(what).collect()
    }
}

/// An address at which nobody answers, and which nobody else gets: it is on an address of this machine that only this process uses.
pub(crate) fn nobody() -> String {
    let process = std::process::id();
    let address = format!("127.{}.{}.1:0", 1 + process / 256 % 250, process % 256);
    format!("http://{}", TcpListener::bind(address).unwrap().local_addr().unwrap())
}

/// Answers one request, or does not.
fn answer(stream: TcpStream, calls: &Calls) {
    let mut reader = BufReader::new(&stream);
    let mut line = String::new();
    let Ok(1..) = reader.read_line(&mut line) else { return };
    let path = line.split(' ').nth(1).unwrap_or_default().to_string();
    let (mut key, mut trace, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut header = String::new();
        let Ok(1..) = reader.read_line(&mut header) else { return };
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "idempotency-key" => key = value.into(),
            "traceparent" => trace = value.into(),
            "content-length" => length = value.parse().unwrap_or_default(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    let Ok(()) = reader.read_exact(&mut body) else { return };
    let call = Call { path: path.clone(), key, trace, body: String::from_utf8_lossy(&body).into_owned() };
    let count = {
        let mut calls = calls.lock().unwrap();
        calls.push(call);
        calls.iter().filter(|call| call.path == path).count()
    };
    match (path.as_str(), count) {
        ("/hang-once", 1) | ("/hang-third", 3) => until_gone(&stream),
        ("/gone", _) => say(&stream, "410 Gone", "{}"),
        ("/fail-twice", ..=2) => say(&stream, "503 Service Unavailable", "{}"),
        _ => say(&stream, "200 OK", &format!("{{\"calls\":{count}}}")),
    }
}

/// Says nothing until whoever asked is gone.
fn until_gone(mut stream: &TcpStream) {
    let mut nothing = [0; 1];
    let _it_is_gone = stream.read(&mut nothing);
}

fn say(mut stream: &TcpStream, status: &str, body: &str) {
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    let _nobody_listens = stream.write_all(head.as_bytes());
}
