//! The way through a definition: order, skipped steps, failures.

use crate::support::{lines, play};
use serde_json::json;
use steadfast::{Code, Status};

#[tokio::test]
async fn steps_see_input_vars_run_and_the_steps_before_them() {
    let text = r#"
workflow: greet
steps:
  - { name: first, set: { whole: "{{ input }}", n: "{{ input.n + 1 }}", shop: "{{ vars.shop }}", run: "{{ run.id }}", attempt: "{{ attempt }}" } }
  - { name: with-dash, set: "{{ steps.first.output.n * 2 }}" }
output: { first: "{{ steps.first.output }}", second: "{{ steps['with-dash'].output }}", text: "n is {{ steps.first.output.n }}", list: [1, "{{ none }}"] }
"#;
    let (lab, result) = play(text, json!({"n": 1})).await;
    let first = json!({"whole": {"n": 1}, "n": 2, "shop": "the shop", "run": "r", "attempt": 1});
    assert_eq!(result, Ok(json!({"first": first, "second": 4, "text": "n is 2", "list": [1, null]})));
    lab.journal("r").await.ended(Status::Completed).step("with-dash").completed().after("first");
    assert_eq!(lab.calls("first")[0].step, "first#1", "a step of the root branch, under its own name");
}

#[tokio::test]
async fn without_an_output_the_result_is_null() {
    assert_eq!(play("workflow: a\nsteps:\n  - { name: one, set: 1 }\n", json!(null)).await.1, Ok(json!(null)));
}

#[tokio::test]
async fn a_step_starts_the_moment_its_own_predecessors_are_done() {
    let text = r#"
workflow: diamond
steps:
  - { name: top, set: 1 }
  - { name: slow, after: [top], wait: 1h }
  - { name: quick, after: [top], wait: 1s }
  - { name: after-quick, after: [quick], set: 3 }
  - { name: bottom, after: [slow, after-quick], set: 4 }
  - { name: beside, after: [], set: 5 }
"#;
    let (lab, result) = play(text, json!(null)).await;
    assert_eq!(result, Ok(json!(null)));
    let lines = lines(&lab).await;
    let at = |what: &str| {
        lines
            .iter()
            .position(|line| line.contains(what))
            .unwrap_or_else(|| panic!("{what} is not in {lines:#?}"))
    };
    assert!(at("slow#1/sleep#1") < at("quick#1/sleep#1"), "both wait side by side: {lines:#?}");
    let fired = lines.iter().position(|line| line.contains("TIMER_FIRED") && line.contains("slow#1")).unwrap();
    assert!(at("after-quick#1") < fired && fired < at("bottom#1"), "{lines:#?}");
    assert!(at("beside#1") < at("after-quick#1"), "{lines:#?}");
}

#[tokio::test]
async fn a_skipped_step_releases_those_after_it_and_its_output_is_null() {
    let text = r#"
workflow: skip
steps:
  - { name: one, set: 1, when: "{{ input.wanted }}" }
  - { name: nap, wait: 10m, when: "{{ input.wanted }}" }
  - { name: many, foreach: [1, 2], set: "{{ item }}", when: "{{ input.wanted }}" }
  - { name: two, set: { one: "{{ steps.one.output }}", many: "{{ steps.many.output }}" }, when: "{{ vars.here and steps.one.output is none }}" }
output: "{{ steps.two.output }}"
"#;
    let (lab, result) = play(text, json!({"wanted": false})).await;
    assert_eq!(result, Ok(json!({"one": null, "many": null})));
    let skipped: Vec<_> = lines(&lab).await.into_iter().filter(|line| line.contains("STEP_SKIPPED")).collect();
    assert_eq!(skipped.len(), 3, "{skipped:?}");
    assert!(skipped[0].contains("one#1") && skipped[1].contains("nap#1") && skipped[2].contains("many#1"), "{skipped:?}");
    assert!(lab.calls("one").is_empty());
}

#[tokio::test]
async fn a_condition_has_to_be_true_or_false() {
    let (_, result) = play("workflow: a\nsteps:\n  - { name: one, set: 1, when: \"{{ input }}\" }\n", json!("hunter2")).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.code, &*failure.message), (Code::InvalidArgument, "step one, when: it gave neither true nor false"));
}

#[tokio::test]
async fn those_after_a_failed_step_never_run_and_those_beside_it_do() {
    let text = r#"
workflow: half
steps:
  - { name: bad, fail: { message: "no {{ input }}", code: NOT_FOUND }, when: true }
  - { name: after-bad, set: 1 }
  - { name: nap, after: [], wait: 1h }
  - { name: after-nap, set: 2 }
  - { name: worse, fail: { message: later }, when: true }
"#;
    let (lab, result) = play(text, json!("cake")).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.code, &*failure.message), (Code::NotFound, "no cake"), "the first failure is the run's");
    let journal = lab.journal("r").await;
    journal.ended(Status::Failed).no_step("after-bad").step("after-nap").completed();
    journal.step("bad").failed(Code::NotFound).attempts(1);
    journal.step("worse").failed(Code::FailedPrecondition);
}

#[tokio::test]
async fn a_template_that_cannot_be_rendered_fails_the_run_at_once() {
    let (lab, result) = play("workflow: a\nsteps:\n  - { name: one, set: \"{{ input.missing }}\" }\n", json!({"secret": "hunter2"})).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.code, &*failure.message), (Code::InvalidArgument, "step one, set: `input.missing` is undefined"));
    lab.journal("r").await.step("one").failed(Code::InvalidArgument).attempts(1);
    let (_, result) = play("workflow: a\nsteps:\n  - { name: one, set: 1 }\noutput: \"{{ input.missing }}\"\n", json!({})).await;
    assert_eq!(result.unwrap_err().message, "output: `input.missing` is undefined");
}

#[tokio::test]
async fn a_step_that_cannot_be_begun_has_failed() {
    for (does, why) in [
        ("set: 1, when: \"{{ input.missing }}\"", "when: `input.missing` is undefined"),
        ("set: 1, when: \"{{ input.n }}\"", "when: it gave neither true nor false"),
        ("set: 1, foreach: \"{{ input.missing }}\"", "foreach: `input.missing` is undefined"),
        ("wait: 1s, foreach: \"{{ input.n }}\"", "foreach: it gave no list"),
        ("wait: \"{{ input.missing }}\"", "wait: `input.missing` is undefined"),
        ("wait: { until: \"{{ input.n }}\" }", "wait.until: it gave no time such as 2026-12-24T18:00:00Z"),
        ("start: { workflow: a, input: \"{{ input.missing }}\" }", "start.input: `input.missing` is undefined"),
        ("start: { workflow: a, id: \"{{ input.missing }}\" }", "start.id: `input.missing` is undefined"),
    ] {
        let text =
            format!("workflow: a\nsteps:\n  - {{ name: before, set: 1 }}\n  - {{ name: one, {does} }}\n  - {{ name: two, set: 2 }}\n");
        let (lab, result) = play(&text, json!({"n": 1})).await;
        let failure = result.unwrap_err();
        assert_eq!((failure.code, &*failure.message), (Code::InvalidArgument, &*format!("step one, {why}")));
        let journal = lab.journal("r").await;
        journal.ended(Status::Failed).no_step("two").step("one").failed(Code::InvalidArgument).attempts(1);
        assert!(
            journal
                .lines()
                .iter()
                .any(|line| line.contains("STEP_FAILED") && line.contains("one#1") && !line.contains('/')),
            "{does}"
        );
    }
    let (lab, result) = play("workflow: a\nsteps:\n  - { name: nap, foreach: [1s, soon, 2s], wait: \"{{ item }}\" }\n", json!(null)).await;
    assert_eq!(result.unwrap_err().code, Code::InvalidArgument);
    let failed: Vec<_> = lines(&lab).await.into_iter().filter(|line| line.contains("STEP_FAILED")).collect();
    assert!(failed.len() == 1 && failed[0].contains("nap#1"), "of the item that it is: {failed:?}");
}
