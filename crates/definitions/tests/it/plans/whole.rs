//! A task from its beginning to its end, and what its templates see.

use super::{Rollout, TASK};
use crate::support::Shelf;
use serde_json::json;
use std::time::Duration;
use steadfast::{HOUR, PlanStatus, TaskStatus};
use steadfast_kernel::plan::{Settings, StopWhen};
use steadfast_kernel::{Conflict, OnFailure, Payload, Recovery};
use steadfast_runtime::host::Code;

const SWITCH: &str = r#"
plan: switch
stages:
  - name: drain
    set: { count: 7, who: "{{ tenant }}" }
    checkpoint: { drained: "{{ output.count }}", by: { plan: "{{ plan.id }}", task: "{{ run.id }}" } }
  - { name: nap, wait: 10m }
  - name: switch
    set: "{{ checkpoint.drained + 1 }}"
    checkpoint: { drained: "{{ checkpoint.drained + output }}", to: "{{ input.to }}" }
  - name: verify
    set: "{{ steps.drain.output.who }} {{ checkpoint.drained }} {{ vars.shop }} {{ attempt }}"
    checkpoint: { verified: "{{ output }}" }
"#;

#[tokio::test]
async fn a_task_goes_from_stage_to_stage_and_returns_what_they_left() {
    let rollout = Rollout::of(SWITCH, json!({"to": "b"})).await;
    let left = json!({"drained": 15, "by": {"plan": "p", "task": TASK}, "to": "b", "verified": "acme 15 the shop 1"});
    assert_eq!(rollout.result().await, Ok(left));
    assert_eq!(rollout.task().await.status, TaskStatus::Completed);
    assert_eq!(rollout.plan().await.ended().await.unwrap().status, PlanStatus::Completed);
    let said = rollout.said().await;
    let kinds: Vec<_> = said.iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    let stage = ["STAGE_STARTED", "STAGE_COMPLETED", "CHECKPOINT_SAVED"];
    let expected: Vec<_> = stage.iter().cycle().take(11).copied().collect();
    assert_eq!(kinds, expected, "there is no checkpoint after the last stage");
}

#[tokio::test]
async fn the_outcome_of_a_stage_its_end_and_its_checkpoint_are_one_turn() {
    let rollout = Rollout::of(SWITCH, json!({"to": "b"})).await;
    rollout.result().await.unwrap();
    let journal = rollout.lab.journal(TASK).await;
    let turns = journal.entries().split_inclusive(|entry| entry.in_flight.is_some());
    let turns: Vec<Vec<&str>> = turns.map(|turn| turn.iter().map(|entry| entry.event.kind()).collect()).collect();
    let following = ["STAGE_COMPLETED", "CHECKPOINT_SAVED", "STAGE_STARTED"];
    for turn in &turns {
        if let Some(at) = turn.iter().position(|kind| ["STEP_COMPLETED", "TIMER_FIRED"].contains(kind)) {
            let rest = &turn[at + 1..];
            assert!(rest.starts_with(&following) || rest.starts_with(&["STAGE_COMPLETED", "RUN_COMPLETED"]), "{turns:#?}");
        }
    }
    assert_eq!(turns.iter().flatten().filter(|kind| **kind == "CHECKPOINT_SAVED").count(), 3);
}

#[tokio::test]
async fn what_the_plan_was_given_wins_over_what_the_server_has() {
    let text = r#"
plan: a
stages:
  - { name: one, set: { vars: "{{ vars }}", input: "{{ input }}" }, checkpoint: { saw: "{{ output }}" } }
"#;
    let rollout = Rollout::of(text, json!({"shop": "ours", "more": [1]})).await;
    let vars = json!({"shop": "ours", "here": true, "more": [1]});
    assert_eq!(rollout.result().await, Ok(json!({"saw": {"vars": vars, "input": {"shop": "ours", "more": [1]}}})));
}

#[tokio::test]
async fn variables_that_do_not_fit_are_refused_before_there_is_a_plan() {
    let shelf = Shelf::of(&[
        "plan: a\ninput: { type: object, required: [to], properties: { to: { type: string } } }\nstages:\n  - { name: one, set: 1 }\n",
    ]);
    let lab = shelf.lab().open().await;
    let engine = lab.engine().await;
    for (vars, why) in [
        (json!({}), "the vars are not what a asks for: \"to\" is a required property"),
        (json!(null), "\"to\" is a required property"),
        (json!({"to": 1234}), "/to: value is not of type \"string\""),
        (json!(["to"]), "they have to be a map of names and values"),
    ] {
        let error = engine.create_plan("a").id("p").tenants(["acme"]).vars(&vars).await.map(drop).unwrap_err();
        assert_eq!(error.code(), "SF0116", "{error}");
        assert!(error.to_string().contains(why) && !error.to_string().contains("1234"), "{error}");
    }
    assert!(engine.plan_status("p").await.is_err());
    assert!(engine.create_plan("a").id("p").tenants(["acme"]).vars(&json!({"to": "b"})).await.unwrap().is_new());
}

#[tokio::test]
async fn every_setting_of_the_document_is_the_plans() {
    let settings = |said: &str| {
        let shelf = Shelf::of(&[&format!("plan: a\n{said}stages:\n  - {{ name: one, set: 1 }}\n  - {{ name: two, set: 1 }}\n")]);
        let terms = shelf.library.code(&shelf.library.names()[0]).terms(&Payload::json("{}")).unwrap();
        let (definition, recovery, spec) = (terms.definition, terms.recovery, terms.plan.unwrap());
        assert_eq!(definition, Some(shelf.library.describe()[0].version.clone()));
        assert_eq!((recovery, terms.deadline, spec.stages), (Some(Recovery::Manual), None, vec!["one".into(), "two".into()]));
        spec.settings
    };
    assert_eq!(settings(""), Settings::default());
    assert_eq!(Settings::default().lease, Duration::from_secs(9000));
    let said =
        "max_concurrency: 7\ncanary: 2\nstop_when: { failed_percent: 20 }\nconflict: skip\non_failure: release\ndeadline: 6h\nlease: 1s\n";
    let expected = Settings {
        max_concurrency: 7,
        canary: 2,
        stop_when: Some(StopWhen::FailedPercent(20)),
        conflict: Conflict::Skip,
        on_failure: OnFailure::Release,
        lease: Duration::from_secs(1),
        deadline: Some(6 * HOUR),
    };
    assert_eq!(settings(said), expected);
    let words = "stop_when: { failed: 3 }\nconflict: refuse\non_failure: keep\n";
    assert_eq!(settings(words), Settings { stop_when: Some(StopWhen::Failed(3)), ..Settings::default() });
}

#[tokio::test]
async fn a_stage_that_is_not_wanted_is_done_and_leaves_nothing() {
    let text = r#"
plan: a
stages:
  - { name: one, set: { n: 1 }, checkpoint: { n: "{{ output.n }}" } }
  - { name: two, when: "{{ checkpoint.n > 1 }}", set: { n: 2 }, checkpoint: { n: "{{ output.n }}" }, undo: { set: 1 } }
  - { name: gate, when: "{{ input.ask }}", approve: {} }
  - { name: three, set: "{{ steps.two.output }} {{ checkpoint.n }}", checkpoint: { three: "{{ output }}" } }
"#;
    let rollout = Rollout::of(text, json!({"ask": false})).await;
    assert_eq!(rollout.result().await, Ok(json!({"n": 1, "three": "null 1"})));
    let skipped: Vec<_> = rollout
        .lab
        .journal(TASK)
        .await
        .lines()
        .into_iter()
        .filter(|line| line.contains("SKIPPED"))
        .collect();
    assert!(skipped.len() == 2 && skipped[0].contains("two#1") && skipped[1].contains("gate#1"), "{skipped:?}");
    assert_eq!(rollout.said().await.iter().filter(|line| line.starts_with("STAGE_COMPLETED")).count(), 4);
}

#[tokio::test]
async fn a_stage_starts_workflows_and_waits_for_them() {
    let child = "workflow: z-child\nsteps:\n  - { name: work, set: \"{{ input.n }}\" }\noutput: \"{{ steps.work.output }}\"\n";
    let plan = "plan: a\nstages:\n  - { name: child, start: { workflow: z-child, input: { n: 4 } }, checkpoint: { n: \"{{ output }}\" } }\n  - { name: bad, start: { workflow: z-child, input: {} } }\n";
    let shelf = Shelf::of(&[plan, child]);
    let lab = shelf.lab();
    let rollout = Rollout::on(shelf, lab, json!({})).await;
    rollout.start().await;
    let failure = rollout.result().await.unwrap_err();
    assert!(failure.message.contains("`input.n` is undefined"), "{failure:?}");
    assert_eq!(rollout.left().await, Some(json!({"n": 4})));
}

#[tokio::test]
async fn a_plan_is_not_started_by_a_workflow() {
    let shelf =
        Shelf::of(&["plan: a\nstages:\n  - { name: one, set: 1 }\n", "workflow: b\nsteps:\n  - { name: go, start: { workflow: a } }\n"]);
    let lab = shelf.lab().open().await;
    lab.start_named("b", "r", &json!(null)).await;
    let failure = lab.result::<serde_json::Value>("r").await.unwrap_err();
    assert!(failure.message.contains("plan"), "{failure:?}");
    assert!(lab.calls("one").is_empty());
}
