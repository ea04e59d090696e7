//! A server that is killed: what goes on by itself does so at another one, and what does not waits there for a person.
//!
//! Subject: `crates/runtime/src/cluster/keeper/mod.rs`.

use super::Pair;
use crate::callbacks::is_over;
use crate::keys::{put, until_all_is_told};
use crate::planned::{define, log, ten, touch};
use crate::served::Served;
use crate::steadfast::until;
use crate::world::World;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::Path;

/// Others take over soon.
const SOON: [&str; 2] = ["--set", "cluster.lease=3s"];

/// A key may end long before others take over.
const LATE: [&str; 2] = ["--set", "cluster.lease=12s"];

/// Two steps that write down what they do; the first is under way until there is a file `go`.
const CARRY: &str = r#"
steps:
  - name: lift
    run: { cwd: .., command: [sh, -c, "echo lift >> $0.log; until [ -f go ] || [ ! -d definitions ]; do sleep 0.02; done", "{{ run.id }}"] }
  - { name: lower, run: { cwd: .., command: [sh, -c, "echo lower >> $0.log", "{{ run.id }}"] } }
"#;

fn kill(served: &mut Served) {
    served.tell(Signal::KILL);
    served.ended();
}

/// The holders of all locks.
fn locked(served: &Served) -> BTreeSet<String> {
    let json = served.call(&["lock", "list", "--json"]).ends_with(0).json();
    let holders = json["items"].as_array().unwrap().iter();
    holders.map(|lock| lock["holder"].as_str().unwrap().to_owned()).collect()
}

/// Waits until something has written down that many lines.
fn until_lines(dir: &Path, names: &[String], lines: usize) {
    until("all are under way", || names.iter().all(|name| log(dir, name).len() == lines).then_some(()));
}

/// Each plan has one tenant, of its own name. Plans, tasks and locks are at either server, and each of them in a place of its own.
#[test]
fn tasks_of_a_killed_server_wait_for_a_person_and_are_retried_at_another() {
    let mut pair = Pair::start(|dir| define(dir, "ten", &ten()), &SOON);
    let dir = pair.dir.path().to_owned();
    let all: Vec<_> = (0..10).map(|number| format!("t{number}")).collect();
    for id in &all {
        pair.b.call(&["plan", "apply", "ten", "--id", id, "--tenant", id, "--start"]).ends_with(0);
    }
    until_lines(&dir, &all, 5);
    let is_at_b = |id: &&String| pair.database.place(&format!("{id}/{id}")) == pair.b.url;
    let lost: Vec<_> = all.iter().filter(is_at_b).cloned().collect();
    assert!((1..all.len()).contains(&lost.len()), "all of them are at one server: {lost:?}");
    let holders: BTreeSet<_> = all.iter().map(|id| format!("{id}:{id}/{id}")).collect();

    kill(&mut pair.b);
    for id in &lost {
        pair.a.until_task(id, "INTERRUPTED");
        pair.a.until_plan(id, "PAUSED");
        let (stage, stages) = (format!("{id}  INTERRUPTED  stage 5 of 10, s5\n"), "stages      4 of 10 done\n");
        let checkpoint = "checkpoint  after stage 4, s4 (index 3), saved ";
        pair.a.call(&["tenant", "show", id]).ends_with(0).prints(&[&stage, stages, checkpoint]);
        let another = ["plan", "apply", "ten", "--id", "later", "--tenant", id];
        pair.a.call(&another).ends_with(1).says(&["SF0126", id]);
    }
    assert_eq!(locked(&pair.a), holders, "every lock is kept");
    assert_eq!(pair.database.count("RUN_INTERRUPTED"), lost.len(), "those of the other server go on");

    touch(&dir, "go");
    let stages = |again: &[&str]| {
        let numbered = |from: usize, to: usize| (from..=to).map(|stage| format!("s{stage}"));
        numbered(1, 5)
            .chain(again.iter().map(|stage| (*stage).to_owned()))
            .chain(numbered(6, 10))
            .collect::<Vec<_>>()
    };
    for id in all.iter().filter(|id| !lost.contains(id)) {
        pair.a.until_task(id, "COMPLETED");
        assert_eq!(log(&dir, id), stages(&[]), "{id}: each stage once");
    }
    for id in &lost {
        assert_eq!(pair.a.task(id)["status"], "INTERRUPTED", "nothing of {id} goes on by itself");
        pair.a.call(&["tenant", "retry", id, "--reason", "its server is gone"]).ends_with(0);
        pair.a.until_task(id, "COMPLETED");
        assert_eq!(log(&dir, id), stages(&["s5"]), "{id}: what was done is not done again");
    }
    all.iter().for_each(|id| pair.a.until_plan(id, "COMPLETED"));
    until("no lock is left", || locked(&pair.a).is_empty().then_some(()));
}

#[test]
fn runs_of_a_killed_server_go_on_by_themselves_or_wait_for_a_person() {
    let both = |dir: &Path| {
        define(dir, "haul", &format!("workflow: haul{CARRY}"));
        define(dir, "carry", &format!("workflow: carry\nrecovery: manual{CARRY}"));
    };
    let mut pair = Pair::start(both, &SOON);
    let dir = pair.dir.path().to_owned();
    let begun = |workflow: &str| {
        let id = |id: &str| format!("{workflow}-{id}");
        let named = |ids: Vec<String>| ids.iter().map(|name| id(name)).collect::<Vec<_>>();
        let (all, lost) = pair.spread(id, |name| drop(pair.a.call(&["run", "start", workflow, "--id", &id(name)]).ends_with(0)));
        (named(all), named(lost))
    };
    let ((hauled, hauled_at_b), (carried, carried_at_b)) = (begun("haul"), begun("carry"));
    until_lines(&dir, &hauled, 1);
    until_lines(&dir, &carried, 1);

    kill(&mut pair.b);
    carried_at_b.iter().for_each(|id| pair.a.until_status(id, "INTERRUPTED"));
    until_lines(&dir, &hauled_at_b, 2);
    assert_eq!(pair.database.count("RUN_INTERRUPTED"), carried_at_b.len());
    touch(&dir, "go");
    for id in hauled.iter().chain(&carried).filter(|id| !carried_at_b.contains(id)) {
        pair.a.until_status(id, "COMPLETED");
        let again = if hauled_at_b.contains(id) { &["lift"][..] } else { &[] };
        assert_eq!(log(&dir, id), [again, &["lift", "lower"]].concat(), "{id}");
    }
    for id in &carried_at_b {
        assert_eq!((pair.a.run(id)["status"].as_str(), log(&dir, id)), (Some("INTERRUPTED"), vec!["lift".to_owned()]), "{id}");
        pair.a.call(&["run", "retry", id, "--reason", "its server is gone"]).ends_with(0);
        pair.a.until_status(id, "COMPLETED");
        assert_eq!(log(&dir, id), ["lift", "lift", "lower"], "{id}");
    }
}

#[test]
fn a_key_that_ends_while_its_server_is_dead_is_told_once_by_another() {
    let (mut pair, world) = (Pair::start(crate::served::define, &LATE), World::open());
    let call = format!("{}/ended", world.url);
    let (all, lost) = pair.spread(
        |id| format!("key:{id}"),
        |id| {
            put(&pair.a, id, &["1", "--ttl", "1h", "--call", &call]);
        },
    );
    let renew = |id: &String| {
        let renewed = pair.a.call(&["key", "renew", id, "--ttl", "4s", "--json"]).ends_with(0).json();
        (format!("{id}/{}", renewed["revision"]), renewed["expiresAt"].as_str().unwrap().to_owned())
    };
    let renewed: Vec<_> = lost.iter().map(renew).collect();
    kill(&mut pair.b);
    assert_eq!(world.calls("/ended"), [""; 0], "their time was not over");
    until("their time is over", || renewed.iter().all(|(_, expires_at)| is_over(expires_at)).then_some(()));
    for id in &lost {
        assert_eq!(pair.database.place(&format!("key:{id}")), pair.b.url, "nobody has taken over what {id} is in");
    }
    assert_eq!(world.calls("/ended"), [""; 0], "nobody was there to tell it");

    until("all are told", || (world.calls("/ended").len() >= lost.len()).then_some(()));
    until_all_is_told(&pair.a);
    let told: Vec<(String, String)> = world
        .calls("/ended")
        .into_iter()
        .zip(world.bodies("/ended").iter().map(|body| expired_at(body)))
        .collect();
    let sorted = |mut told: Vec<(String, String)>| {
        told.sort();
        told
    };
    assert_eq!(sorted(told), sorted(renewed), "each once, as of its time");
    let left = all.len() - lost.len();
    assert_eq!(pair.a.call(&["key", "list", "--json"]).ends_with(0).json()["items"].as_array().unwrap().len(), left);
}

fn expired_at(body: &str) -> String {
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    body["expiredAt"].as_str().unwrap().to_owned()
}
