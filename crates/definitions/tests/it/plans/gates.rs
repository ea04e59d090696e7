//! Stages that wait for a person's yes.

use super::{Rollout, TASK, yes};
use serde_json::{Value as Json, json};
use steadfast::{Code, HOUR, TaskStatus, Wait};

const GATED: &str = r#"
plan: a
stages:
  - { name: one, set: 1, checkpoint: { one: "{{ output }}" } }
  - { name: ok, approve: { roles: [operator], within: 2h }, checkpoint: { ticket: "{{ output.ticket }}" } }
  - { name: two, set: "{{ steps.ok.output.ticket }}", checkpoint: { two: "{{ output }}" } }
"#;

#[tokio::test]
async fn a_task_waits_at_its_gate_until_somebody_says_yes() {
    let rollout = Rollout::of(GATED, json!({})).await;
    rollout.lab.advance(HOUR).await;
    let task = rollout.task().await;
    assert_eq!((task.status, task.stage), (TaskStatus::Waiting, Some((1, "ok".into()))));
    let Some(Wait::Approval { roles, .. }) = rollout.view().await.waits.first().cloned() else { panic!("it waits for something else") };
    assert_eq!(roles, ["operator"]);
    rollout.answer("ok", json!({"approved": true, "ticket": "T-1"})).await;
    assert_eq!(rollout.result().await, Ok(json!({"one": 1, "ticket": "T-1", "two": "T-1"})));
}

#[tokio::test]
async fn whatever_is_no_yes_fails_the_stage_and_a_retry_asks_again() {
    for no in [json!({"approved": false}), json!({}), json!(null), json!(true), json!({"approved": "true"})] {
        let rollout = Rollout::of(GATED, json!({})).await;
        rollout.answer("ok", no.clone()).await;
        let failure = rollout.result().await.unwrap_err();
        assert_eq!((failure.code, &*failure.message), (Code::FailedPrecondition, "ok was not approved"), "{no}");
        assert_eq!(rollout.left().await, Some(json!({"one": 1})));
        assert!(
            rollout
                .said()
                .await
                .last()
                .is_some_and(|line| line.starts_with("STAGE_FAILED") && line.contains("ok")),
            "{no}"
        );

        rollout.retry().await;
        assert_eq!(rollout.task().await.status, TaskStatus::Waiting, "{no}: the no before is not the answer to this question");
        rollout.answer("ok", json!({"approved": true, "ticket": 2})).await;
        assert_eq!(rollout.result().await, Ok(json!({"one": 1, "ticket": 2, "two": 2})), "{no}");
        assert_eq!(rollout.calls(&["one", "two"]), [1, 1], "{no}");
    }
}

#[tokio::test]
async fn a_yes_that_comes_too_late_is_none() {
    let rollout = Rollout::of(GATED, json!({})).await;
    rollout.lab.advance(3 * HOUR).await;
    assert_eq!(rollout.result().await.unwrap_err().code, Code::DeadlineExceeded);
    rollout.retry().await;
    rollout.answer("ok", json!({"approved": true, "ticket": 3})).await;
    assert_eq!(rollout.result().await, Ok(json!({"one": 1, "ticket": 3, "two": 3})));
}

#[tokio::test]
async fn a_gate_that_leaves_nothing_needs_only_the_yes() {
    let rollout = Rollout::of("plan: a\nstages:\n  - { name: ok, approve: }\n  - { name: two, set: 1 }\n", json!({})).await;
    rollout.answer("ok", yes()).await;
    assert_eq!(rollout.result().await, Ok(json!({})));
    let result: Json = rollout.lab.result(TASK).await.unwrap();
    assert_eq!(result, json!({}));
}
