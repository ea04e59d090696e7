//! A server that is told to stop gives its work away in good order: nobody is interrupted, and nothing is done again.
//!
//! Subject: `crates/runtime/src/cluster/keeper/leaving.rs`.

use super::database::Database;
use super::{Pair, SHARDS, join, now};
use crate::planned::{PAIR, define as write, log, touch};
use crate::served::define;
use crate::steadfast::until;
use rustix::process::Signal;
use std::path::Path;
use steadfast_test_servers::PostgresServer;

/// A run that a person has to decide on if its process dies. It writes down what it does, and is lifted until there is a file `go`.
const CARRY: &str = r#"
workflow: carry
recovery: manual
steps:
  - name: lift
    run: { cwd: .., command: [sh, -c, "echo lift >> $0.log; until [ -f go ] || [ ! -d definitions ]; do sleep 0.02; done", "{{ run.id }}"] }
  - { name: lower, run: { cwd: .., command: [sh, -c, "echo lower >> $0.log", "{{ run.id }}"] } }
"#;

fn all(dir: &Path) {
    define(dir);
    write(dir, "carry", CARRY);
    write(dir, "pair", PAIR);
}

#[test]
fn a_server_that_stops_hands_over_at_once_and_interrupts_nothing() {
    let mut pair = Pair::start(all, &["--set", "engine.shutdown_grace=2m"]);
    let dir = pair.dir.path().to_owned();
    let (carried, _) = pair.spread(str::to_owned, |id| drop(pair.b.call(&["run", "start", "carry", "--id", id]).ends_with(0)));
    let (waiting, _) =
        pair.spread(|id| format!("ask-{id}"), |id| drop(pair.b.call(&["run", "start", "ask", "--id", &format!("ask-{id}")]).ends_with(0)));
    let tenants = ["t0", "t1", "t2", "t3", "t4", "t5"];
    let named: Vec<_> = tenants.iter().flat_map(|tenant| ["--tenant", tenant]).collect();
    let apply = [&["plan", "apply", "pair", "--id", "night", "--var", "to=b", "--max-concurrency", "6", "--start"], &named[..]].concat();
    pair.b.call(&apply).ends_with(0);
    tenants.iter().for_each(|tenant| pair.b.until_task(tenant, "RUNNING"));
    until("all are under way", || carried.iter().all(|id| log(&dir, id).len() == 1).then_some(()));
    waiting.iter().for_each(|id| pair.b.until_status(&format!("ask-{id}"), "WAITING"));

    let under_way = "SELECT count(DISTINCT s.shard) FROM steadfast.workflow_state s JOIN steadfast.leases l ON l.shard = s.shard
        JOIN steadfast.instances i ON i.id = l.holder";
    let kept = format!("{under_way} WHERE s.status = 'RUNNING' AND i.address = '{}'", pair.a.url);
    let kept: usize = pair.database.value(&kept).parse().unwrap();
    assert!(kept > 0, "something is under way at the one that stops");
    let begun = now();
    pair.a.tell(Signal::TERM);
    until("it keeps what is under way, and nothing else", || {
        (pair.database.holders().get(&pair.b.url) == Some(&(SHARDS - kept))).then_some(())
    });
    println!("{} shards were handed over within {:?}", SHARDS / 2 - kept, begun.elapsed());
    for id in &waiting {
        let id = format!("ask-{id}");
        pair.b.call(&["run", "signal", &id, "ok", "--payload", r#"{"approved":true}"#]).ends_with(0);
        pair.b.until_status(&id, "COMPLETED");
    }
    touch(&dir, "go");
    tenants.iter().for_each(|tenant| touch(&dir, &format!("{tenant}.go")));
    assert_eq!(pair.a.ended().code(), Some(0), "{}", pair.a.log());
    assert_eq!(
        pair.database
            .value(&format!("SELECT count(*) FROM steadfast.instances WHERE address = '{}'", pair.a.url)),
        "0"
    );
    for id in &carried {
        pair.b.until_status(id, "COMPLETED");
        assert_eq!(log(&dir, id), ["lift", "lower"], "{id}: each step once");
    }
    pair.b.until_plan("night", "COMPLETED");
    for tenant in tenants {
        assert_eq!(log(&dir, tenant), ["open b", "fill"], "{tenant}: each stage once");
    }
    assert_eq!((pair.database.count("RUN_INTERRUPTED"), pair.database.count("PLAN_PAUSED")), (0, 0));
    until("the other one has all", || (pair.database.holders().get(&pair.b.url) == Some(&SHARDS)).then_some(()));
}

/// Whoever replaces a server at its address does so while that one is still at work, since it lets go of the address first: nothing is cut off by it.
#[test]
fn a_server_that_is_started_at_the_address_of_one_that_stops_waits_for_it() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::new(PostgresServer::shared()));
    let dir = dir.path();
    all(dir);
    let more = ["--set", "engine.shutdown_grace=2m"];
    let mut former = join(dir, &database.url(), "former", &[&["--listen", "127.0.0.1:0"], &more[..]].concat());
    former.call(&["run", "start", "carry", "--id", "load"]).ends_with(0);
    until("it is under way", || (log(dir, "load").len() == 1).then_some(()));
    former.tell(Signal::TERM);
    let address = former.url.strip_prefix("http://").unwrap().to_owned();
    until("its address is free", || std::net::TcpListener::bind(&address).ok());
    let next = join(dir, &database.url(), "next", &[&["--listen", &*address], &more[..]].concat());
    let taken = "SELECT count(*) FROM steadfast.leases l JOIN steadfast.instances i ON i.id = l.holder WHERE NOT i.draining AND l.until > clock_timestamp()";
    until("the next one has all that is at rest", || (database.value(taken) == (SHARDS - 1).to_string()).then_some(()));
    touch(dir, "go");
    assert_eq!(former.ended().code(), Some(0), "{}", former.log());
    next.until_status("load", "COMPLETED");
    assert_eq!(log(dir, "load"), ["lift", "lower"], "each step once");
    assert_eq!(database.count("RUN_INTERRUPTED"), 0);
}
