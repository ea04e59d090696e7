//! Another life of a run, from any kind of step, as people ask for it.

use crate::served::Served;
use crate::steadfast::until;
use crate::world::World;
use std::path::Path;

fn define(dir: &Path, name: &str, steps: &str) {
    std::fs::create_dir_all(dir.join("definitions")).unwrap();
    std::fs::write(dir.join(format!("definitions/{name}.yaml")), format!("workflow: {name}\n{steps}")).unwrap();
}

fn serve(dir: &Path, world: &World) -> Served {
    Served::start(dir, &["--listen", "127.0.0.1:0", "--var", &format!("world={}", world.url)])
}

const GUARDED: &str = "steps:
  - { name: charge, http: { method: POST, url: \"{{ vars.world }}/charge\" } }
  - { name: ok, approve: { within: 1500ms } }
  - { name: rest, wait: 10ms }
  - { name: each, foreach: [1, 2], http: { method: POST, url: \"{{ vars.world }}/each\" } }
  - { name: kid, start: { workflow: kid } }
output: done
";

/// What was done before it is kept: the person is asked once more, and nobody is charged twice.
#[test]
fn an_approval_that_came_too_late_is_asked_for_again() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(dir.path(), "guarded", GUARDED);
    define(dir.path(), "kid", "steps:\n  - { name: one, set: 1 }\n");
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "guarded", "--id", "g"]).ends_with(0);
    served.until_status("g", "FAILED");
    served.call(&["run", "retry", "g", "--reason", "they were asleep"]).ends_with(0);
    served.call(&["run", "signal", "g", "ok", "--payload", "{\"approved\":true}"]).ends_with(0);
    served.until_status("g", "COMPLETED");
    assert_eq!(world.calls("/charge"), ["g/charge#1/1"]);
}

/// A step of a definition is retried by its name, whatever it does.
#[test]
fn every_kind_of_step_can_be_retried_by_its_name() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(dir.path(), "guarded", &GUARDED.replace("1500ms", "1h"));
    define(dir.path(), "kid", "steps:\n  - { name: one, set: 1 }\n");
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "guarded", "--id", "g"]).ends_with(0);
    let approve = || served.call(&["run", "signal", "g", "ok", "--payload", "{}"]).ends_with(0);
    approve();
    served.until_status("g", "COMPLETED");
    let kids = || {
        served.call(&["run", "list", "--workflow", "kid", "--json"]).json()["items"]
            .as_array()
            .unwrap()
            .len()
    };
    for (step, each, children) in [("kid", 2, 2), ("each", 4, 3), ("rest", 6, 4), ("ok", 8, 5)] {
        served.call(&["run", "retry", "g", "--from", step, "--reason", "once more"]).ends_with(0);
        if step == "ok" {
            approve();
        }
        served.until_status("g", "COMPLETED");
        assert_eq!((world.calls("/each").len(), kids()), (each, children), "after {step}");
    }
    assert_eq!(world.calls("/charge").len(), 1, "what comes before is kept");
    served.call(&["run", "retry", "g", "--from", "nothing"]).ends_with(1).says(&["SF0114"]);
}

/// A run that only waits goes on waiting, and is found by what it waits for.
#[test]
fn a_waiting_run_that_is_retried_waits() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(dir.path(), "ask", "steps:\n  - { name: ok, approve: {} }\n");
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "ask", "--id", "a"]).ends_with(0);
    served.until_status("a", "WAITING");
    for _ in 0..2 {
        served.call(&["run", "retry", "a"]).ends_with(0);
        served.until_status("a", "WAITING");
    }
    let listed = served.call(&["run", "list", "--wait", "APPROVAL", "--json"]).ends_with(0).json();
    assert_eq!(listed["items"][0]["id"], "a");
}

#[test]
fn an_output_is_supplied_to_a_step_that_is_there_and_is_attempted() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(
        dir.path(),
        "pay",
        "retry: { max_attempts: 1 }\nsteps:\n  - { name: charge, http: { url: \"{{ vars.world }}/fail-twice\" } }\n  - { name: ok, approve: {} }\noutput: \"{{ steps.charge.output.by }}\"\n",
    );
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "pay", "--id", "p"]).ends_with(0);
    served.until_status("p", "FAILED");
    served
        .call(&["run", "retry", "p", "--output", "chrage={}"])
        .ends_with(1)
        .says(&["SF0114", "no such step"]);
    served.call(&["run", "retry", "p", "--output", "ok={}"]).ends_with(1).says(&["SF0114", "signal"]);
    served.call(&["run", "retry", "p", "--output", "charge={\"by\":\"hand\"}"]).ends_with(0);
    served.call(&["run", "signal", "p", "ok", "--payload", "{}"]).ends_with(0);
    served.until_status("p", "COMPLETED");
    assert_eq!(served.run("p")["result"], "hand");
    assert_eq!(world.calls("/fail-twice").len(), 1);
}

/// Items that wait for each other's slots depend on each other: those after the one that is done again are done again too.
#[test]
fn a_list_that_is_worked_off_a_few_at_a_time_can_be_retried() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let steps = "retry: { max_attempts: 1 }
steps:
  - name: each
    foreach: { items: [a, b, c], concurrency: 1 }
    run: { command: [sh, -c, \"test $ITEM != a || test -f mended\"], env: { ITEM: \"{{ item }}\" } }
output: \"{{ steps.each.output | length }}\"
";
    define(dir.path(), "few", steps);
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "few", "--id", "f"]).ends_with(0);
    served.until_status("f", "FAILED");
    std::fs::write(dir.path().join("definitions/mended"), "").unwrap();
    served.call(&["run", "retry", "f"]).ends_with(0);
    served.until_status("f", "COMPLETED");
    assert_eq!(served.run("f")["result"], 3);
    served.call(&["run", "replay", "f"]).ends_with(0);
}

/// What a command said does not steer the terminal of who looks at it.
#[test]
fn words_from_outside_stay_words() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let script = "printf '\\\\033]0;PWNED\\\\007\\\\nsecond' >&2; exit 1";
    define(
        dir.path(),
        "loud",
        &format!("retry: {{ max_attempts: 1 }}\nsteps:\n  - {{ name: say, run: {{ command: [sh, -c, \"{script}\"] }} }}\n"),
    );
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "loud", "--id", "l"]).ends_with(0);
    served.until_status("l", "FAILED");
    let why = served.client(&["run", "why", "l"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    let why = String::from_utf8(why.stdout).unwrap();
    assert!(why.contains("PWNED") && !why.contains('\u{1b}') && !why.contains('\u{7}'), "{why:?}");
    assert_eq!(why.lines().count(), 1, "{why:?}");
}

#[test]
fn another_input_has_to_fit_as_well() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(dir.path(), "q", "input: { type: object, required: [q] }\nsteps:\n  - { name: one, set: \"{{ input.q }}\" }\n");
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "q", "--id", "q", "--input", "{\"q\":1}", "--wait"]).ends_with(0);
    served.call(&["run", "retry", "q", "--input", "{\"zz\":1}"]).ends_with(1).says(&["SF0116"]);
    assert_eq!(served.run("q")["status"], "COMPLETED");
}

/// JSON says the same however it is written, and a run that is there is found though its definition would no longer take it.
#[test]
fn the_same_start_again_finds_the_run() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    define(dir.path(), "one", "steps:\n  - { name: one, set: 1 }\n");
    let served = serve(dir.path(), &world);
    let start = |input: &str| served.call(&["run", "start", "one", "--id", "o", "--input", input]);
    start("{\"a\":1,\"b\":2}").ends_with(0);
    start("{ \"b\": 2, \"a\": 1 }").ends_with(0);
    start("{\"a\":1}").ends_with(1).says(&["SF0103"]);
    std::fs::remove_file(dir.path().join("definitions/one.yaml")).unwrap();
    until("it is gone", || served.call(&["run", "start", "one"]).err.contains("SF0116").then_some(()));
    start("{\"a\":1,\"b\":2}").ends_with(0);
}

/// A person is told the words, and others are refused.
#[test]
fn an_undo_that_failed_is_answered_in_words_that_are_told() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let steps = "retry: { max_attempts: 1 }\nsteps:\n  - { name: one, set: 1, undo: { run: { command: [\"false\"] }, retry: { max_attempts: 1 } } }\n  - { name: end, fail: { message: no } }\n";
    define(dir.path(), "u", steps);
    let served = serve(dir.path(), &world);
    served.call(&["run", "start", "u", "--id", "u"]).ends_with(0);
    until("it asks", || served.run("u")["wait"]["name"].as_str().is_some_and(|name| name.starts_with("undo:")).then_some(()));
    served
        .call(&["run", "why", "u"])
        .ends_with(0)
        .prints(&["could not be undone", "'\"retry\"'", "'\"skip\"'"]);
    served
        .call(&["run", "signal", "u", "undo:one#1", "--payload", "null"])
        .ends_with(1)
        .says(&["\"retry\" or \"skip\""]);
    served.call(&["run", "signal", "u", "undo:one#1", "--payload", "\"skip\""]).ends_with(0);
    served.until_status("u", "FAILED");
    let run = served.run("u");
    let one = run["steps"].as_array().unwrap().iter().find(|step| step["name"] == "one").unwrap();
    assert_eq!(one["status"], "COMPLETED", "{one}");
    assert!(one["failure"]["code"].is_string(), "{one}");
}
