//! The proxy before a server that says back what it is told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use steadfast_test_servers::{Losses, Proxy};

/// Says back what it is told; gives its port, and what it was told.
fn echo() -> (u16, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (port, (told, hears)) = (listener.local_addr().unwrap().port(), mpsc::channel());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let told = told.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 1024];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    let _nobody_asks = told.send(bytes[..length].to_vec());
                    if stream.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
                let _nobody_asks = told.send(Vec::new());
            });
        }
    });
    (port, hears)
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

/// Says something, and gives whether it comes back.
fn says(stream: &mut TcpStream, within: Duration) -> bool {
    let mut bytes = [0; 3];
    stream.set_read_timeout(Some(within)).unwrap();
    stream.write_all(b"hey").is_ok() && stream.read_exact(&mut bytes).is_ok()
}

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(100);

#[test]
fn answers_vanish_while_the_server_is_told_everything() {
    let (port, hears) = echo();
    let proxy = Proxy::before(port);
    let mut stream = connect(&proxy);
    assert!(says(&mut stream, LONG));
    assert_eq!(hears.recv_timeout(LONG).unwrap(), b"hey");
    proxy.swallow_answers();
    assert!(!says(&mut stream, SHORT));
    assert_eq!(hears.recv_timeout(LONG).unwrap(), b"hey");
    proxy.let_go();
    assert!(!says(&mut stream, SHORT), "what comes after something that vanished would not fit");
    assert!(says(&mut connect(&proxy), LONG), "new connections are whole");
    proxy.cut();
    stream.set_read_timeout(Some(LONG)).unwrap();
    assert_eq!(stream.read(&mut [0; 3]).unwrap_or(0), 0);
}

#[test]
fn half_open_connections_tell_nobody_that_an_end_has_gone() {
    let (port, hears) = echo();
    let proxy = Proxy::before(port);
    let mut stream = connect(&proxy);
    assert!(says(&mut stream, LONG));
    hears.recv_timeout(LONG).unwrap();
    proxy.swallow();
    assert!(!says(&mut stream, SHORT));
    drop(stream);
    hears.recv_timeout(SHORT).unwrap_err();
    proxy.cut();
    assert_eq!(hears.recv_timeout(LONG).unwrap(), b"", "a cut is the end of it");
}

/// Speaks to a server through a lossy proxy until the connection is cut; gives how often it was
/// answered, its life, and the longest wait for an answer.
#[expect(clippy::disallowed_methods, reason = "real sockets live by the real clock")]
fn life(proxy: &Proxy) -> (usize, Duration, Duration) {
    let mut stream = connect(proxy);
    let (began, mut answered, mut longest) = (Instant::now(), 0, Duration::ZERO);
    loop {
        let asked = Instant::now();
        if !says(&mut stream, LONG) {
            return (answered, began.elapsed(), longest);
        }
        (answered, longest) = (answered + 1, longest.max(asked.elapsed()));
    }
}

#[test]
fn lossy_connections_stall_and_are_cut_on_time() {
    let (port, _hears) = echo();
    let proxy = Proxy::before(port);
    let millis = Duration::from_millis;
    proxy.lose(Some(Losses { cut_after: millis(300)..=millis(400), stall: millis(60), swallow: 0.0, ..Losses::new(7) }));
    let lives: Vec<_> = (0..4).map(|_| life(&proxy)).collect();
    for (answered, lived, _) in &lives {
        assert!(*answered > 0 && (millis(290)..LONG).contains(lived), "{lives:?}");
    }
    assert!(lives.iter().any(|(_, _, longest)| *longest >= millis(55)), "{lives:?}");
    proxy.lose(None);
    assert!(says(&mut connect(&proxy), LONG));
    assert_eq!(proxy.connections(), 5);
}

#[test]
fn lossy_connections_lose_answers_before_they_are_cut() {
    let (port, hears) = echo();
    let proxy = Proxy::before(port);
    let millis = Duration::from_millis;
    proxy.lose(Some(Losses { cut_after: millis(200)..=millis(200), stall: millis(0), swallow: 1.0, ..Losses::new(7) }));
    let (answered, lived, _) = life(&proxy);
    let heard = std::iter::from_fn(|| hears.recv_timeout(LONG).ok()).take_while(|told| !told.is_empty()).count();
    assert!((millis(190)..LONG).contains(&lived), "{lived:?}");
    assert_eq!(heard, answered + 1, "the server was told what was not answered");
}
