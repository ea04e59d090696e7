//! `steadfast plan`: a roll-out from the terminal.

use crate::planned::{PAIR, define, log, serve, touch};
use crate::served::Served;
use crate::steadfast::Called;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

fn served(dir: &Path) -> Served {
    define(dir, "pair", PAIR);
    serve(dir)
}

/// Calls it with something on stdin.
fn fed(served: &Served, args: &[&str], text: &str) -> Called {
    let mut command = served.client(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Called::of(&child.wait_with_output().unwrap())
}

#[test]
fn a_plan_is_applied_started_paused_resumed_and_rolled_back() {
    let dir = tempfile::tempdir().unwrap();
    let served = served(dir.path());
    served.call(&["plan", "list"]).ends_with(0).says(&["no plans"]);
    std::fs::write(dir.path().join("tenants.txt"), "# the first wave\nacme\n\n  blue # they asked\n").unwrap();
    let applied = served
        .call(&["plan", "apply", "pair", "--tenants-file", "tenants.txt", "--tenant", "cato", "--id", "night", "--var", "to=b"])
        .ends_with(0);
    assert_eq!(applied.out, "night\n");
    served.until_plan("night", "READY");
    served.call(&["plan", "list"]).ends_with(0).prints(&["night", "pair", "READY", "0 of 3"]);
    served.call(&["plan", "show", "night"]).ends_with(0).prints(&[
        "night  pair  READY\n",
        "0 of 3 completed, 3 pending\n",
        "steadfast plan start night\n",
        "TENANT  open  fill  STATUS",
        "\nacme    ·     ·     PENDING",
    ]);
    served
        .call(&["plan", "start", "night", "--reason", "it is night"])
        .ends_with(0)
        .prints(&["night  RUNNING  "]);
    served.until_task("acme", "RUNNING");
    served
        .call(&["plan", "pause", "night", "--reason", "slow"])
        .ends_with(0)
        .prints(&["night  PAUSED  "]);
    served
        .call(&["plan", "show", "night"])
        .ends_with(0)
        .prints(&[": slow; go on with: steadfast plan resume night"]);
    for tenant in ["acme", "blue", "cato"] {
        touch(dir.path(), &format!("{tenant}.go"));
    }
    served.until_task("acme", "PAUSED");
    served
        .call(&["plan", "show", "night"])
        .ends_with(0)
        .prints(&["acme    ✓     ‖     PAUSED", "blue    ·     ·     PENDING"]);
    assert_eq!(log(dir.path(), "blue").len(), 0, "no other task begins");
    served.call(&["plan", "resume", "night"]).ends_with(0).prints(&["night  "]);
    served.until_plan("night", "COMPLETED");
    served
        .call(&["plan", "show", "night"])
        .ends_with(0)
        .prints(&["100 %  3 of 3 completed", "acme    ✓     ✓     COMPLETED"]);
    served.call(&["plan", "rollback", "night", "--reason", "the old one was better"]).ends_with(0);
    served.until_plan("night", "CANCELLED");
    served
        .call(&["plan", "show", "night"])
        .ends_with(0)
        .prints(&["3 rolled back", "acme    ·     ·     ROLLED_BACK"]);
    assert_eq!(log(dir.path(), "acme"), ["open b", "fill", "empty", "close"]);
}

#[test]
fn a_plan_is_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let served = served(dir.path());
    let id = fed(&served, &["plan", "apply", "pair", "--tenants-file", "-", "--var", "to=b", "--start"], "acme\nblue\ncato\n")
        .ends_with(0)
        .out;
    let id = id.trim();
    served.until_task("acme", "RUNNING");
    served.call(&["plan", "cancel", id, "--reason", "not tonight"]).ends_with(0);
    served.until_plan(id, "CANCELLED");
    let watched = served.call(&["plan", "show", id, "--watch"]).ends_with(1);
    watched.prints(&["3 cancelled", "acme    –"]).says(&["was cancelled"]);
    served.call(&["lock", "list"]).ends_with(0).says(&["no locks"]);
}

#[test]
fn the_same_plan_again_is_the_same_and_another_of_its_id_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let served = served(dir.path());
    let apply = |more: &[&str]| {
        let mut args = vec!["plan", "apply", "pair", "--id", "p", "--tenant", "acme", "--var", "to=b"];
        args.extend(more);
        served.call(&args)
    };
    touch(dir.path(), "acme.go");
    for more in [&[][..], &["--start"], &["--start", "--watch"], &["--start"]] {
        assert_eq!(apply(more).ends_with(0).out, "p\n");
    }
    assert_eq!(log(dir.path(), "acme"), ["open b", "fill"], "once");
    apply(&["--tenant", "blue"]).ends_with(1).says(&["SF0123"]);
    served.call(&["plan", "apply", "pear", "--tenant", "acme"]).ends_with(1).says(&["SF0131"]);
    served.call(&["plan", "show", "q"]).ends_with(1).says(&["SF0"]);
}

#[test]
fn who_follows_a_plan_is_told_of_every_change_until_it_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let served = served(dir.path());
    for file in ["acme.go", "blue.go", "cato.go", "blue.bad"] {
        touch(dir.path(), file);
    }
    let good = ["plan", "apply", "pair", "--id", "good", "--tenant", "acme", "--var", "to=b", "--start", "--watch"];
    let called = served.call(&good).ends_with(0).says(&["good: ", "acme: completed", "good: 1 of 1 completed"]);
    assert_eq!(called.out, "good\n");
    assert_eq!(called.err.matches("acme: completed").count(), 1, "{called:#?}");
    let bad = ["plan", "apply", "pair", "--id", "bad", "--tenant", "blue", "--tenant", "cato", "--var", "to=b"];
    served.call(&bad).ends_with(0);
    served
        .call(&["plan", "start", "bad", "--watch"])
        .ends_with(1)
        .prints(&["bad  pair  FAILED", "blue    ✓     ✗     FAILED", "cato    ✓     ✓     COMPLETED"])
        .says(&["blue: failed at fill (2 of 2)", "bad failed: 1 of 2 completed, 1 failed"]);
    let json = served.call(&["plan", "show", "bad", "--watch", "--json"]).ends_with(1).json();
    assert_eq!(json["status"], "FAILED");
}

#[test]
fn json_is_what_the_server_answered() {
    let dir = tempfile::tempdir().unwrap();
    let served = served(dir.path());
    std::fs::write(dir.path().join("vars.json"), r#"{"to":"file","size":1.50}"#).unwrap();
    let args = ["plan", "apply", "pair", "--id", "p", "--tenant", "acme", "--vars-file", "vars.json", "--var", "to=flag"];
    let more = ["--max-concurrency", "7", "--reason", "tonight", "--json"];
    let applied = served.call(&[&args[..], &more].concat()).ends_with(0);
    assert!(applied.out.contains(r#""vars":{"size":1.50,"to":"flag"}"#), "{applied:#?}");
    assert_eq!((&applied.json()["id"], &applied.json()["maxConcurrency"]), (&"p".into(), &7.into()));
    served.until_plan("p", "READY");
    let page = served
        .call(&["plan", "list", "--status", "ready", "--definition", "pair", "--json"])
        .ends_with(0)
        .json();
    assert_eq!(page["items"][0]["id"], "p");
    for verb in ["start", "pause", "resume", "cancel"] {
        assert_eq!(served.call(&["plan", verb, "p", "--json"]).ends_with(0).json()["id"], "p", "{verb}");
    }
    assert_eq!(served.call(&["tenant", "show", "acme", "--json"]).ends_with(0).json()["taskId"], "p/acme");
}

#[test]
fn a_plan_cannot_be_for_nobody() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad.txt"), "acme\nbig blue\n").unwrap();
    std::fs::write(dir.path().join("none.txt"), "# nobody\n").unwrap();
    for (args, said) in [
        (vec![], "--tenant"),
        (vec!["--tenant", "big blue"], "is not allowed"),
        (vec!["--tenants-file", "nowhere.txt"], "cannot read nowhere.txt"),
        (vec!["--tenants-file", "bad.txt"], "line 2 of bad.txt"),
        (vec!["--tenants-file", "none.txt"], "there is no tenant in it"),
        (vec!["--tenant", "a", "--var", "gateway"], "NAME=VALUE"),
        (vec!["--tenant", "a", "--vars-file", "none.txt"], "no JSON object"),
        (vec!["--tenants-file", "-", "--vars-file", "-"], "stdin"),
        (vec!["--tenant", "a", "--max-concurrency", "0"], "0"),
    ] {
        let args: Vec<&str> = ["plan", "apply", "pair"].into_iter().chain(args).collect();
        crate::steadfast::steadfast(dir.path(), &args).ends_with(2).says(&[said]);
    }
}
