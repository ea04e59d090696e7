//! The server is killed in the middle of each kind of step and started again: what was recorded stays, the rest goes on.
//!
//! Subject: `crates/definitions/src/kinds/mod.rs`.

use crate::served::Served;
use crate::steadfast::until;
use crate::world::World;
use rustix::process::Signal;
use std::path::Path;

fn define(dir: &Path, name: &str, steps: &str) {
    std::fs::create_dir_all(dir.join("definitions")).unwrap();
    std::fs::write(dir.join(format!("definitions/{name}.yaml")), format!("workflow: {name}\n{steps}")).unwrap();
}

fn serve(dir: &Path, world: &World) -> Served {
    Served::start(dir, &["--listen", "127.0.0.1:0", "--var", &format!("world={}", world.url)])
}

/// Kills it as the machine would, and starts another one on the same folder.
fn killed(mut served: Served, dir: &Path, world: &World) -> Served {
    served.tell(Signal::KILL);
    served.ended();
    serve(dir, world)
}

/// The run has completed, its journal has no gap and replays, and each of these events stands in it so often.
#[track_caller]
fn completed(served: &Served, id: &str, counts: &[(&str, usize)]) {
    served.until_status(id, "COMPLETED");
    let events = served.call(&["run", "events", id, "--json"]).ends_with(0).json();
    let events = events.as_array().unwrap();
    let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=events.len() as u64).collect::<Vec<_>>());
    for (kind, count) in counts {
        let found = events.iter().filter(|event| event["eventType"] == *kind).count();
        assert_eq!(found, *count, "{kind}: {events:#?}");
    }
    served.call(&["run", "replay", id]).ends_with(0);
}

#[test]
fn a_request_in_flight_is_made_again_with_its_key() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(
        dir.path(),
        "call",
        "steps:\n  - { name: call, http: { method: POST, url: \"{{ vars.world }}/hang-once\", body: { a: 1 } } }\noutput: \"{{ steps.call.output.body }}\"\n",
    );
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "call", "--id", "c"]).ends_with(0);
    until("it is called", || (world.calls("/hang-once").len() == 1).then_some(()));
    let served = killed(served, dir.path(), &world);
    completed(&served, "c", &[("STEP_COMPLETED", 1), ("STEP_FAILED", 0), ("RETRY_SCHEDULED", 0)]);
    assert_eq!(world.calls("/hang-once"), ["c/call#1/1", "c/call#1/1"], "one execution, one key");
}

#[test]
fn a_backoff_goes_on_where_it_was() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(
        dir.path(),
        "back",
        "steps:\n  - name: call\n    http: { url: \"{{ vars.world }}/fail-twice\" }\n    retry: { max_attempts: 3, backoff: constant, base: 1s, jitter: none }\n",
    );
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "back", "--id", "b"]).ends_with(0);
    until("it is in backoff", || (served.run("b")["wait"]["reason"] == "BACKOFF").then_some(()));
    let served = killed(served, dir.path(), &world);
    completed(&served, "b", &[("RETRY_SCHEDULED", 2), ("STEP_COMPLETED", 1)]);
    assert_eq!(world.calls("/fail-twice").len(), 3, "as many as the policy allows, and not one more");
}

#[test]
fn a_command_in_flight_is_started_again() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let script = "if [ -f begun ]; then echo '{\\\"done\\\":true}'; else touch begun; sleep 15; fi";
    define(
        dir.path(),
        "work",
        &format!(
            "steps:\n  - {{ name: work, run: {{ command: [sh, -c, \"{script}\"] }} }}\noutput: \"{{{{ steps.work.output.json.done }}}}\"\n"
        ),
    );
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "work", "--id", "w"]).ends_with(0);
    until("it has begun", || dir.path().join("definitions/begun").exists().then_some(()));
    let served = killed(served, dir.path(), &world);
    completed(&served, "w", &[("STEP_COMPLETED", 1), ("STEP_FAILED", 0)]);
    assert_eq!(served.run("w")["result"], true);
}

#[test]
fn a_wait_outlasts_the_process_and_what_was_set_before_it_stays() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(
        dir.path(),
        "rest",
        "steps:\n  - { name: note, set: { n: 7 } }\n  - { name: rest, wait: 2s }\noutput: \"{{ steps.note.output.n }}\"\n",
    );
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "rest", "--id", "r"]).ends_with(0);
    until("it waits", || (served.run("r")["wait"]["reason"] == "TIMER").then_some(()));
    let due = served.run("r")["wait"]["dueAt"].clone();
    let served = killed(served, dir.path(), &world);
    if served.run("r")["status"] == "WAITING" {
        assert_eq!(served.run("r")["wait"]["dueAt"], due, "not a moment later than before");
    }
    completed(&served, "r", &[("TIMER_SET", 1), ("TIMER_FIRED", 1), ("STEP_COMPLETED", 1)]);
    assert_eq!(served.run("r")["result"], 7);
}

#[test]
fn an_approval_is_still_waited_for() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(dir.path(), "ask", "steps:\n  - { name: ok, approve: { roles: [operator] } }\noutput: \"{{ steps.ok.output.approved }}\"\n");
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "ask", "--id", "a"]).ends_with(0);
    until("it waits", || (served.run("a")["wait"]["reason"] == "APPROVAL").then_some(()));
    let served = killed(served, dir.path(), &world);
    assert_eq!(served.run("a")["wait"]["roles"][0], "operator");
    served.call(&["run", "signal", "a", "ok", "--payload", "{\"approved\":true}"]).ends_with(0);
    completed(&served, "a", &[("SIGNAL_RECEIVED", 1)]);
    assert_eq!(served.run("a")["result"], true);
}

#[test]
fn a_run_that_was_started_is_waited_for_and_not_started_twice() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(
        dir.path(),
        "parent",
        "steps:\n  - { name: go, start: { workflow: child, input: { n: 3 } } }\noutput: \"{{ steps.go.output }}\"\n",
    );
    define(
        dir.path(),
        "child",
        "steps:\n  - { name: rest, wait: 1s }\n  - { name: say, set: \"{{ input.n }}\" }\noutput: \"{{ steps.say.output }}\"\n",
    );
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "parent", "--id", "p"]).ends_with(0);
    until("it waits for its child", || (served.run("p")["wait"]["reason"] == "CHILD").then_some(()));
    let served = killed(served, dir.path(), &world);
    completed(&served, "p", &[("CHILD_STARTED", 1), ("CHILD_ENDED", 1)]);
    assert_eq!(served.run("p")["result"], 3);
    let children = served.call(&["run", "list", "--workflow", "child", "--json"]).ends_with(0).json();
    assert_eq!(children["items"].as_array().unwrap().len(), 1, "{children}");
}

#[test]
fn items_that_are_done_are_not_done_again() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(
        dir.path(),
        "each",
        "steps:\n  - name: send\n    foreach: { items: \"{{ input }}\", concurrency: 1 }\n    http: { method: POST, url: \"{{ vars.world }}/hang-third\", body: \"{{ item }}\" }\noutput: \"{{ steps.send.output | length }}\"\n",
    );
    let served = serve(dir.path(), &world);
    served
        .call(&["run", "start", "each", "--id", "e", "--input", "[\"a\",\"b\",\"c\",\"d\"]"])
        .ends_with(0);
    until("the third is called", || (world.calls("/hang-third").len() == 3).then_some(()));
    let served = killed(served, dir.path(), &world);
    completed(&served, "e", &[("STEP_COMPLETED", 4)]);
    let calls = world.calls("/hang-third");
    let unique: std::collections::BTreeSet<_> = calls.iter().collect();
    assert_eq!((calls.len(), unique.len()), (5, 4), "only the one in flight was made again: {calls:?}");
}

#[test]
fn undoing_goes_on_after_a_restart() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let undo = |path: &str| format!("undo: {{ http: {{ method: POST, url: \"{{{{ vars.world }}}}{path}\" }} }}");
    let steps = format!(
        "steps:\n  - {{ name: one, set: 1, {} }}\n  - {{ name: two, set: 2, {} }}\n  - {{ name: end, fail: {{ message: no }} }}\n",
        undo("/undo-one"),
        undo("/hang-once")
    );
    define(dir.path(), "back", &steps);
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "back", "--id", "u"]).ends_with(0);
    until("it is being undone", || (world.calls("/hang-once").len() == 1).then_some(()));
    let served = killed(served, dir.path(), &world);
    served.until_status("u", "FAILED");
    assert_eq!(world.calls("/hang-once"), ["u/two#1/1/undo", "u/two#1/1/undo"]);
    assert_eq!(world.calls("/undo-one"), ["u/one#1/1/undo"]);
    served.call(&["run", "replay", "u"]).ends_with(0);
}

#[test]
fn a_run_goes_on_with_the_version_that_it_began_with() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(dir.path(), "v", "steps:\n  - { name: ok, approve: {} }\n  - { name: say, set: old }\noutput: \"{{ steps.say.output }}\"\n");
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "v", "--id", "old"]).ends_with(0);
    until("it waits", || (served.run("old")["wait"]["reason"] == "APPROVAL").then_some(()));
    std::fs::write(
        dir.path().join("definitions/v.yaml"),
        "workflow: v\nsteps:\n  - { name: say, set: new }\noutput: \"{{ steps.say.output }}\"\n",
    )
    .unwrap();
    let served = killed(served, dir.path(), &world);
    assert_eq!(served.call(&["run", "start", "v", "--id", "new", "--wait"]).ends_with(0).out, "\"new\"\n");
    std::fs::remove_file(dir.path().join("definitions/v.yaml")).unwrap();
    let served = killed(served, dir.path(), &world);
    served.call(&["run", "start", "v"]).ends_with(1).says(&["SF01"]);
    served.call(&["run", "signal", "old", "ok", "--payload", "{}"]).ends_with(0);
    completed(&served, "old", &[("STEP_COMPLETED", 1)]);
    assert_eq!(served.run("old")["result"], "old");
}
