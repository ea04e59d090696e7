//! What stages leave for those after them, and what becomes of a stage that cannot leave it.

use super::{Rollout, TASK};
use crate::support::Shelf;
use serde_json::json;
use steadfast::{Class, Code, Config, TaskStatus};

#[tokio::test]
async fn a_checkpoint_that_cannot_be_rendered_fails_the_stage() {
    let text = r#"
plan: a
stages:
  - { name: one, set: 1, checkpoint: { one: "{{ output }}" } }
  - { name: two, set: { secret: hunter2 }, checkpoint: { two: { deep: ["{{ output.missing }}"] } } }
  - { name: three, set: 3 }
"#;
    let rollout = Rollout::of(text, json!({})).await;
    let failure = rollout.result().await.unwrap_err();
    let why = "step two, checkpoint.two.deep[0]: `output.missing` is undefined";
    assert_eq!((failure.class, failure.code, &*failure.message), (Class::Permanent, Code::InvalidArgument, why));
    assert_eq!((rollout.task().await.status, rollout.left().await), (TaskStatus::Failed, Some(json!({"one": 1}))));
    assert!(
        rollout
            .said()
            .await
            .last()
            .is_some_and(|line| line.starts_with("STAGE_FAILED") && line.contains("two"))
    );
    assert_eq!(rollout.calls(&["one", "two", "three"]), [1, 1, 0]);

    rollout.retry().await;
    assert_eq!(rollout.result().await.unwrap_err().message, why);
    assert_eq!(rollout.calls(&["one", "two", "three"]), [1, 2, 0], "the stage is done again: it may return something else");
}

#[tokio::test]
async fn what_is_too_large_to_be_kept_fails_the_stage() {
    let text = r#"
plan: a
stages:
  - { name: one, set: "{{ input.large }}", checkpoint: { one: "{{ output }}" } }
  - { name: two, set: "{{ input.large }}", checkpoint: { two: "{{ output }}" } }
  - { name: three, set: 3 }
"#;
    let shelf = Shelf::of(&[text]);
    let lab = shelf.lab().config(Config { payload_bytes_max: 1000, ..Config::default() });
    let rollout = Rollout::on(shelf, lab, json!({"large": "x".repeat(600)})).await;
    rollout.start().await;
    let failure = rollout.result().await.unwrap_err();
    let why = "step two: the checkpoint has 1219 bytes, at most 1000 are allowed; keep large data elsewhere and pass its address";
    assert_eq!((failure.class, failure.code, &*failure.message), (Class::Permanent, Code::ResourceExhausted, why));
    assert_eq!(rollout.left().await, Some(json!({"one": "x".repeat(600)})), "what was kept before is still there");
    assert_eq!(rollout.calls(&["one", "two", "three"]), [1, 1, 0]);
}

#[tokio::test]
async fn the_last_stage_has_the_same_bound() {
    let text =
        "plan: a\nstages:\n  - { name: one, set: \"{{ input.large }}\", checkpoint: { a: \"{{ output }}\", b: \"{{ output }}\" } }\n";
    let shelf = Shelf::of(&[text]);
    let lab = shelf.lab().config(Config { payload_bytes_max: 1000, ..Config::default() });
    let rollout = Rollout::on(shelf, lab, json!({"large": "x".repeat(600)})).await;
    rollout.start().await;
    let failure = rollout.result().await.unwrap_err();
    assert!(failure.message.starts_with("step one: the checkpoint has 1215 bytes"), "{failure:?}");
    assert!(rollout.said().await.last().is_some_and(|line| line.starts_with("STAGE_FAILED")), "it is the stage that has failed");
}

#[tokio::test]
async fn what_was_left_is_the_same_after_the_process_died() {
    let text = r#"
plan: a
stages:
  - { name: one, set: { n: 1 }, checkpoint: { one: "{{ output.n }}", both: first } }
  - { name: two, set: "{{ checkpoint.one + 1 }}", checkpoint: { two: "{{ output }}", both: "{{ checkpoint.both }} second" } }
  - { name: gate, approve: {}, checkpoint: { by: "{{ output.by }}" } }
  - { name: three, set: "{{ checkpoint }}" }
"#;
    let rollout = Rollout::of(text, json!({})).await;
    let left = json!({"one": 1, "two": 2, "both": "first second"});
    assert_eq!(rollout.left().await, Some(left.clone()));
    let version = rollout.task().await.checkpoint.unwrap().version;
    rollout.lab.crash().await;
    assert_eq!(rollout.left().await, Some(left));
    assert_eq!(rollout.task().await.checkpoint.unwrap().version, version, "it is not saved again");
    assert_eq!(rollout.task().await.status, TaskStatus::Waiting, "whoever only waits is not interrupted");
    rollout.answer("gate", json!({"approved": true, "by": "ada"})).await;
    assert_eq!(rollout.result().await, Ok(json!({"one": 1, "two": 2, "both": "first second", "by": "ada"})));
    assert_eq!(rollout.calls(&["one", "two", "three"]), [1, 1, 1]);
    rollout.lab.journal(TASK).await.step("three").completed();
}
