//! A person has a task rolled back.

use super::{Rollout, Site};
use serde_json::json;
use steadfast::TaskStatus;

const UNDONE: &str = r#"
plan: a
stages:
  - name: one
    run: { command: [sh, -c, "echo one $1 >> log; echo '{\"id\": 7}'", "-", "{{ tenant }}"] }
    checkpoint: { id: "{{ output.json.id }}" }
    undo: { run: { command: [sh, -c, "echo un-one $1 >> log", "-", "{{ output.json.id }} {{ checkpoint }} {{ tenant }} {{ plan.id }} {{ vars.shop }}"] } }
  - { name: nothing, set: 1, checkpoint: { id: 8 } }
  - name: two
    run: { command: [sh, -c, "echo two >> log"] }
    checkpoint: { id: 9 }
    undo: { run: { command: [sh, -c, "echo un-two $1 >> log", "-", "{{ output.exitCode }} {{ checkpoint.id }} {{ steps.one.output.json.id }}"] } }
  - { name: three, fail: { message: no } }
"#;

#[tokio::test]
async fn what_was_done_is_undone_newest_first_with_what_was_known_then() {
    let site = Site::of(UNDONE).await;
    assert_eq!(site.start().await, TaskStatus::Failed);
    assert_eq!(site.log(), ["one acme", "two"], "a task that fails undoes nothing by itself");
    assert_eq!(site.roll_back().await, TaskStatus::RolledBack);
    assert_eq!(site.log()[2..], ["un-two 0 8 7", "un-one 7 {} acme p the shop"]);
    assert!(site.left().await.is_none(), "there is nothing to go on from");
}

#[tokio::test]
async fn a_task_that_has_completed_is_undone_as_well() {
    let site = Site::of(&UNDONE.replace("fail: { message: no }", "set: 1")).await;
    assert_eq!(site.start().await, TaskStatus::Completed);
    assert_eq!(site.roll_back().await, TaskStatus::RolledBack);
    assert_eq!(site.log()[2..], ["un-two 0 8 7", "un-one 7 {} acme p the shop"]);
}

#[tokio::test]
async fn an_undo_that_fails_for_good_is_for_a_person() {
    let text = "plan: a\nstages:\n  - { name: one, set: 1, undo: { fail: { message: by hand } } }\n  - { name: two, set: 1, undo: { set: 1 } }\n  - { name: three, fail: { message: no } }\n";
    let rollout = Rollout::of(text, json!({})).await;
    assert_eq!(rollout.result().await.unwrap_err().message, "no");
    rollout.run().await.roll_back().await.unwrap();
    assert_eq!(rollout.task().await.status, TaskStatus::RollbackFailed);
    assert_eq!(rollout.lab.calls("two/undo").len(), 1);
}
