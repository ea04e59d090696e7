//! The way of an operator: a server that dies in the middle of a stage, and what a person does about it.

use crate::planned::{PAIR, define, log, serve, ten, touch};
use crate::steadfast::until;
use rustix::process::Signal;

#[test]
fn a_task_whose_server_died_goes_on_from_its_checkpoint_when_a_person_says_so() {
    let dir = tempfile::tempdir().unwrap();
    define(dir.path(), "ten", &ten());
    let mut served = serve(dir.path());
    served.call(&["plan", "apply", "ten", "--tenant", "acme", "--id", "night", "--start"]).ends_with(0);
    until("stage 5 is under way", || (log(dir.path(), "acme").len() == 5).then_some(()));
    served.tell(Signal::KILL);
    served.ended();

    let served = serve(dir.path());
    served.call(&["tenant", "show", "acme"]).ends_with(0).prints(&[
        "acme  INTERRUPTED  stage 5 of 10, s5\n",
        "while s5 was under way",
        "stages      4 of 10 done\n",
        "checkpoint  after stage 4, s4 (index 3), saved ",
        "{\"third\":\"acme\"}",
        "lock        its own, fence 1, ",
        "  steadfast tenant retry acme ",
        "  steadfast tenant retry acme --from-start",
        "  steadfast tenant cancel acme ",
    ]);
    let task: serde_json::Value = serde_json::from_str(&served.get("/v1/tenants/acme/task")).unwrap();
    assert_eq!((&task["status"], &task["lastCompletedStageIndex"]), (&"INTERRUPTED".into(), &3.into()));
    let checkpoint: serde_json::Value = serde_json::from_str(&served.get("/v1/tenants/acme/checkpoint")).unwrap();
    assert_eq!(checkpoint["completedStages"], serde_json::json!(["s1", "s2", "s3", "s4"]));
    served.call(&["plan", "show", "night"]).ends_with(0).prints(&[
        "night  ten  PAUSED",
        "the server was started again",
        "INTERRUPTED",
        "✓   ✓   ✓   ✓   !   ·",
    ]);

    touch(dir.path(), "go");
    served
        .call(&["tenant", "retry", "acme", "--reason", "the machine is back"])
        .ends_with(0)
        .prints(&["acme  "]);
    served.until_task("acme", "COMPLETED");
    served.until_plan("night", "COMPLETED");
    let expected = ["s1", "s2", "s3", "s4", "s5", "s5", "s6", "s7", "s8", "s9", "s10"];
    assert_eq!(log(dir.path(), "acme"), expected, "what was done is not done again");
    served.call(&["tenant", "show", "acme"]).ends_with(0).prints(&[
        "acme  COMPLETED\n",
        "stages      10 of 10 done\n",
        "life        2\n",
        "lock        nobody has it",
    ]);
}

#[test]
fn a_task_that_failed_is_retried_from_its_checkpoint_or_from_the_start() {
    let dir = tempfile::tempdir().unwrap();
    define(dir.path(), "pair", PAIR);
    for file in ["acme.go", "acme.bad"] {
        touch(dir.path(), file);
    }
    let served = serve(dir.path());
    served
        .call(&["plan", "apply", "pair", "--tenant", "acme", "--id", "p", "--var", "to=b", "--start", "--watch"])
        .ends_with(1)
        .says(&["acme: failed at fill (2 of 2): ", "p failed: 0 of 1 completed, 1 failed"]);
    served
        .call(&["tenant", "show", "acme"])
        .ends_with(0)
        .prints(&["FAILED  stage 2 of 2, fill", "exit code 1", "caused by"]);
    served.call(&["tenant", "retry", "acme", "--from-start"]).ends_with(0);
    until("both are tried again", || (log(dir.path(), "acme").len() == 2).then_some(()));
    served.until_task("acme", "FAILED");
    std::fs::remove_file(dir.path().join("acme.bad")).unwrap();
    let retried = served.call(&["tenant", "retry", "acme", "--reason", "mended", "--json"]).ends_with(0).json();
    assert_eq!((&retried["tenantId"], &retried["epoch"]), (&"acme".into(), &3.into()));
    served.until_plan("p", "COMPLETED");
    assert_eq!(log(dir.path(), "acme"), ["open b", "open b", "fill"]);
    served.call(&["tenant", "retry", "acme"]).ends_with(1).says(&["SF0"]);
}

#[test]
fn a_task_is_paused_resumed_cancelled_and_rolled_back() {
    let dir = tempfile::tempdir().unwrap();
    define(dir.path(), "pair", PAIR);
    let served = serve(dir.path());
    served
        .call(&["plan", "apply", "pair", "--tenant", "acme", "--tenant", "blue", "--id", "p", "--var", "to=b", "--start"])
        .ends_with(0);
    served.until_task("acme", "RUNNING");
    served
        .call(&["tenant", "pause", "acme", "--reason", "on air"])
        .ends_with(0)
        .prints(&["acme  RUNNING  stage 1 of 2, open"]);
    served
        .call(&["tenant", "show", "acme"])
        .ends_with(0)
        .prints(&["it pauses at the end of this stage"]);
    touch(dir.path(), "acme.go");
    served.until_task("acme", "PAUSED");
    served
        .call(&["tenant", "show", "acme"])
        .ends_with(0)
        .prints(&["it was paused ", ": on air", "steadfast tenant resume acme"]);
    assert_eq!(log(dir.path(), "acme"), ["open b"]);
    served.call(&["tenant", "resume", "acme"]).ends_with(0);
    served.until_task("acme", "COMPLETED");
    served.call(&["tenant", "rollback", "acme", "--reason", "not this one"]).ends_with(0);
    served.until_task("acme", "ROLLED_BACK");
    assert_eq!(log(dir.path(), "acme"), ["open b", "fill", "empty", "close"]);
    served.until_task("blue", "RUNNING");
    served
        .call(&["tenant", "cancel", "blue", "--reason", "they left"])
        .ends_with(0)
        .prints(&["blue  CANCELLED"]);
    served.call(&["tenant", "show", "nobody"]).ends_with(1).says(&["SF0"]);
}
