//! What somebody does in the first ten minutes, as the README and the demonstration say it.

use crate::served::Served;
use crate::steadfast::{steadfast, until};
use rustix::process::Signal;
use std::path::Path;

fn demo(dir: &Path) -> Served {
    Served::start(dir, &["--demo", "--listen", "127.0.0.1:0"])
}

/// The status of a step of a run.
fn step(served: &Served, run: &str, name: &str) -> serde_json::Value {
    let run = served.run(run);
    run["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["name"] == name)
        .cloned()
        .unwrap_or_default()
}

#[test]
fn the_first_ten_minutes() {
    let dir = tempfile::tempdir().unwrap();
    let served = demo(dir.path());

    // It says what to look at, and what it says works.
    until("it says what to look at", || served.log().contains("nothing is lost").then_some(()));
    let log = served.log();
    assert!(log.contains("7 runs were started:") && log.contains("run why demo/order-2"), "{log}");
    served.call(&["run", "list"]).ends_with(0).prints(&["demo/order-1", "demo/reminder", "TIMER"]);

    // A dependency that is down for a while.
    served.until_status("demo/order-1", "COMPLETED");
    assert_eq!(step(&served, "demo/order-1", "charge")["attempts"], 3);
    assert_eq!(step(&served, "demo/order-1", "ok")["status"], "SKIPPED");
    served.call(&["run", "show", "demo/order-1"]).ends_with(0).prints(&["charge", "c-order-1"]);
    served
        .call(&["run", "events", "demo/order-1"])
        .ends_with(0)
        .prints(&["RETRY_SCHEDULED", "RUN_COMPLETED"]);

    // A person who decides.
    until("it waits for a person", || (served.run("demo/order-2")["wait"]["reason"] == "APPROVAL").then_some(()));
    assert_eq!(step(&served, "demo/order-2", "receipt")["status"], "PENDING");
    served
        .call(&["run", "why", "demo/order-2"])
        .ends_with(0)
        .prints(&["operator", "run signal demo/order-2 ok"]);
    served
        .call(&["run", "signal", "demo/order-2", "ok", "--payload", "{\"approved\":true}"])
        .ends_with(0);
    served.until_status("demo/order-2", "COMPLETED");

    // What was done is undone.
    served.until_status("demo/order-3", "FAILED");
    assert_eq!(step(&served, "demo/order-3", "reserve")["status"], "UNDONE");
    served.call(&["run", "why", "demo/order-3"]).ends_with(0).prints(&["402"]);

    // Branches and runs of their own.
    for run in ["demo/newsletter", "demo/bundle"] {
        served.until_status(run, "COMPLETED");
    }
    assert_eq!(served.run("demo/newsletter")["result"]["sent"], 7);
    assert_eq!(served.run("demo/bundle")["result"]["receipts"].as_array().unwrap().len(), 2);

    // A dead letter.
    until("there is a letter", || served.call(&["letter", "list"]).out.contains("report.1").then_some(()));
    served.call(&["letter", "show", "report.1"]).ends_with(0).prints(&["demo/report", "DECODE_FAILURE"]);
    served
        .call(&["letter", "redrive", "report.1", "--reason", "perhaps they have logged us in"])
        .ends_with(0);
    until("it is poison again", || served.call(&["letter", "list"]).out.contains("report.3").then_some(()));
    served.call(&["letter", "drop", "report.3", "--reason", "they have not"]).ends_with(0);
    assert!(!served.call(&["letter", "list"]).ends_with(0).out.contains("report."));

    // Carts that expire: one starts a run, one is told to nobody.
    served.call(&["key", "list", "demo/"]).ends_with(0).prints(&["demo/carts/cleo", "/cart-left"]);
    let carts = ["run", "list", "--workflow", "left-cart", "--json"];
    let run = until("a run is started", || served.call(&carts).json()["items"][0]["id"].as_str().map(str::to_owned));
    assert!(run.starts_with("expired/demo/carts/ada/"), "{run}");
    served.until_status(&run, "COMPLETED");
    until("there is a letter", || served.call(&["letter", "list"]).out.contains("key:demo/carts/dan.").then_some(()));
    let cart = served.call(&["key", "get", "demo/carts/cleo", "--json"]).ends_with(0).json();

    // A plan over five branches, one of which needs a person.
    served
        .call(&["plan", "show", "demo/switch"])
        .ends_with(0)
        .prints(&["demo/switch  switch  ", "go-live", "oslo "]);
    served.until_task("oslo", "FAILED");
    served
        .call(&["tenant", "show", "oslo"])
        .ends_with(0)
        .prints(&["stage 3 of 5, verify", "409", "steadfast tenant retry oslo"]);
    served.call(&["tenant", "retry", "oslo", "--reason", "counted again"]).ends_with(0);
    served.until_plan("demo/switch", "COMPLETED");

    // A definition of one's own, with a mistake in it first.
    let file = dir.path().join("demo-data/definitions/hello.yaml");
    std::fs::write(
        &file,
        "workflow: hello\nsteps:\n  - { name: say, set: \"Hello, {{ inptu.name }}\" }\noutput: \"{{ steps.say.output }}\"\n",
    )
    .unwrap();
    steadfast(dir.path(), &["check", "demo-data/definitions/hello.yaml"])
        .ends_with(1)
        .prints(&["hello.yaml:3", "did you mean `input`?"]);
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap().replace("inptu", "input")).unwrap();
    steadfast(dir.path(), &["check", "demo-data/definitions"]).ends_with(0);
    let hello = ["run", "start", "hello", "--input", "{\"name\":\"Ada\"}", "--wait"];
    until("it is taken up", || (served.call(&hello).out == "\"Hello, Ada\"\n").then_some(()));

    // It is killed, and nothing is lost.
    let due = served.run("demo/reminder")["wait"]["dueAt"].clone();
    assert!(due.is_string());
    let mut killed = served;
    killed.tell(Signal::KILL);
    killed.ended();
    let served = demo(dir.path());
    until("it says that they are there", || served.log().contains("7 runs are here from the last time").then_some(()));
    assert_eq!(served.run("demo/reminder")["wait"]["dueAt"], due);
    assert_eq!(served.call(&["key", "get", "demo/carts/cleo", "--json"]).ends_with(0).json(), cart);
    assert_eq!(served.run("demo/order-2")["result"]["receipt"]["charge"], "c-order-2");
    assert_eq!(served.plan("demo/switch")["status"], "COMPLETED");
    served.call(&["run", "replay", "demo/order-2"]).ends_with(0);
    steadfast(dir.path(), &["doctor", "--server", &served.url, "--data", "demo-data", "--definitions", "demo-data/definitions"])
        .prints(&[&format!("{} is ready", served.url)]);
}
