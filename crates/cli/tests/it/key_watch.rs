//! `key watch`: what happens to keys, as it happens.

use crate::keys::put;
use crate::served::Served;
use crate::steadfast::until;
use crate::world::World;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

/// A watch under way, ended when it is dropped.
struct Watching {
    child: Child,
    out: Arc<Mutex<Vec<String>>>,
    err: Arc<Mutex<Vec<String>>>,
}

impl Watching {
    fn new(served: &Served, args: &[&str]) -> Self {
        let mut command = served.client(&[&["key", "watch"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        let watching = Watching { child, out, err };
        watching.says("watching");
        watching
    }

    fn says(&self, part: &str) {
        until(part, || self.err.lock().unwrap().iter().any(|line| line.contains(part)).then_some(()));
    }

    /// What it has printed, once a line has that in it.
    fn until(&self, part: &str) -> Vec<String> {
        until(part, || Some(self.out.lock().unwrap().clone()).filter(|lines| lines.iter().any(|line| line.contains(part))))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _it_has_ended = self.child.kill();
        let _it_has_ended = self.child.wait();
    }
}

fn lines(from: impl Read + Send + 'static) -> Arc<Mutex<Vec<String>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    std::thread::spawn(move || BufReader::new(from).lines().map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line)));
    lines
}

#[test]
fn a_watch_tells_every_change_of_the_keys_that_it_watches() {
    let served = Served::new();
    let watching = Watching::new(&served, &["a/"]);
    watching.says("keys that begin with a/");
    put(&served, "b/1", &["1", "--ttl", "1h"]);
    let revision = put(&served, "a/1", &["1", "--ttl", "1h", "--owner", "me"]);
    served.call(&["key", "renew", "a/1", "--ttl", "100ms", "--owner", "me"]).ends_with(0);
    watching.until("KEY_EXPIRED");
    put(&served, "a/2", &["1", "--ttl", "1h", "--start", "greet", "--input", r#"{"name":"x"}"#]);
    served.call(&["key", "delete", "a/2"]).ends_with(0);
    let lines = watching.until("KEY_DELETED");
    let kinds: Vec<&str> = lines.iter().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(kinds, ["KEY_PUT", "KEY_RENEWED", "KEY_EXPIRED", "KEY_PUT", "KEY_DELETED"], "{lines:#?}");
    assert!(lines[0].contains("a/1 ") && lines[0].contains(&format!("revision {revision}, 60 min left, owner me")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("b/1")), "{lines:#?}");
}

#[test]
fn a_watch_outlasts_a_restart_and_misses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--listen", "127.0.0.1:0"]);
    let listen = served.url.strip_prefix("http://").unwrap().to_owned();
    let watching = Watching::new(&served, &["--json"]);
    put(&served, "a", &["1", "--ttl", "1h"]);
    watching.until("KEY_PUT");
    drop(served); // it is killed
    watching.says("the server does not answer");
    let served = Served::start(dir.path(), &["--listen", &listen]);
    put(&served, "b", &["1", "--ttl", "100ms"]);
    let lines = watching.until("KEY_EXPIRED");
    let told: Vec<(String, String)> = lines
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|change| (change["id"].as_str().unwrap().into(), change["event"]["eventType"].as_str().unwrap().into()))
        .collect();
    let expected = [("a", "KEY_PUT"), ("b", "KEY_PUT"), ("b", "KEY_EXPIRED")];
    assert_eq!(told, expected.map(|(key, event)| (key.to_owned(), event.to_owned())));
}

#[test]
fn a_watch_that_breaks_off_before_the_first_change_misses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--listen", "127.0.0.1:0"]);
    let listen = served.url.strip_prefix("http://").unwrap().to_owned();
    let watching = Watching::new(&served, &[]);
    drop(served); // it is killed
    watching.says("the server does not answer");
    // The change is made where the watch does not see it.
    let elsewhere = Served::start(dir.path(), &["--listen", "127.0.0.1:0"]);
    put(&elsewhere, "a", &["1", "--ttl", "1h"]);
    drop(elsewhere);
    let _served = Served::start(dir.path(), &["--listen", &listen]);
    let lines = watching.until("KEY_PUT");
    assert_eq!(lines.len(), 1, "{lines:#?}");
}

#[test]
fn a_watch_tells_of_dead_letters() {
    let (served, world) = (Served::new(), World::open());
    let watching = Watching::new(&served, &["carts/"]);
    put(&served, "carts/7", &["1", "--ttl", "100ms", "--call", &format!("{}/gone", world.url)]);
    let lines = watching.until("LETTER_ADDED");
    assert!(lines.last().unwrap().contains("key:carts/7.") && lines.last().unwrap().contains("410"), "{lines:#?}");
}

#[test]
fn who_cannot_watch_is_told_why() {
    let mut served = Served::new();
    served.tell(rustix::process::Signal::KILL);
    served.ended();
    served.call(&["key", "watch"]).ends_with(3).says(&[&served.url]);
}
