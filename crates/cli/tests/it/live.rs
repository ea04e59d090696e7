//! Following a run: what is told meanwhile, and what happens when the server or the person goes away.

use crate::served::{Served, define};
use crate::steadfast::{Called, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, Stdio};

/// What a child has printed to stderr so far.
struct Told(std::sync::Arc<std::sync::Mutex<String>>);

impl Told {
    fn of(child: &mut Child) -> Self {
        let (mut err, told) = (child.stderr.take().unwrap(), std::sync::Arc::new(std::sync::Mutex::new(String::new())));
        let kept = std::sync::Arc::clone(&told);
        std::thread::spawn(move || {
            let mut byte = [0];
            while err.read(&mut byte).is_ok_and(|count| count == 1) {
                kept.lock().unwrap().push(char::from(byte[0]));
            }
        });
        Told(told)
    }

    fn until(&self, part: &str) {
        until(&format!("it says {part:?}"), || self.0.lock().unwrap().contains(part).then_some(()));
    }
}

/// Takes that many connections and closes each.
fn hung_up_on(listen: &str, connections: usize) {
    let listener = until("the address is free", || std::net::TcpListener::bind(listen).ok());
    listener.incoming().take(connections).for_each(drop);
}

fn waiting(served: &Served, args: &[&str]) -> Child {
    served.client(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn who_is_interrupted_while_waiting_leaves_the_run_going() {
    let served = Served::new();
    let mut child = waiting(&served, &["run", "start", "ask", "--id", "q", "--wait"]);
    let told = Told::of(&mut child);
    told.until("it waits for operator to approve ok");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    told.until("the run goes on without you");
    assert_eq!(until("it ends", || child.try_wait().unwrap()).code(), Some(130));
    assert_eq!(served.run("q")["status"], "WAITING");
}

#[test]
fn a_wait_has_an_end_if_one_is_asked_for() {
    let served = Served::new();
    served
        .call(&["run", "start", "ask", "--id", "q", "--wait=200ms"])
        .ends_with(1)
        .says(&["q has not ended in that time"]);
}

#[test]
fn a_wait_outlasts_a_restart_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    define(dir.path());
    let served = Served::start(dir.path(), &["--listen", "127.0.0.1:0"]);
    let listen = served.url.strip_prefix("http://").unwrap().to_owned();
    let mut child = waiting(&served, &["run", "start", "ask", "--id", "q", "--wait"]);
    let told = Told::of(&mut child);
    told.until("it waits for operator");
    drop(served); // it is killed
    told.until("the server does not answer; trying again");
    hung_up_on(&listen, 20); // for longer than one look takes
    let served = Served::start(dir.path(), &["--listen", &listen]);
    served.call(&["run", "signal", "q", "ok", "--payload", r#"{"approved":true}"#]).ends_with(0);
    let output = child.wait_with_output().unwrap();
    let called = Called::of(&output).ends_with(0);
    assert_eq!(called.out, "{\"approved\":true}\n");
}

#[test]
fn a_journal_is_followed_until_the_run_has_ended() {
    let served = Served::new();
    served.call(&["run", "start", "ask", "--id", "q"]).ends_with(0);
    served.until_status("q", "WAITING");
    let child = waiting(&served, &["run", "events", "q", "--follow", "--json"]);
    served.call(&["run", "signal", "q", "ok", "--payload", r#"{"approved":true}"#]).ends_with(0);
    let called = Called::of(&child.wait_with_output().unwrap()).ends_with(0);
    let events: Vec<serde_json::Value> = called.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>(), "each of them once, in order");
    assert_eq!(events.last().unwrap()["eventType"], "RUN_COMPLETED");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let served = Served::new();
    let mut child = waiting(&served, &["config"]);
    drop(child.stdout.take());
    let err = &mut String::new();
    child.stderr.take().unwrap().read_to_string(err).unwrap();
    assert_eq!((until("it ends", || child.try_wait().unwrap()).code(), err.as_str()), (Some(0), ""));
}
