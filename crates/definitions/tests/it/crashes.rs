//! The process dies before and after every commit, and everything goes on from there.

use crate::support::Shelf;
use serde_json::{Value as Json, json};
use steadfast::Failure;

const EVERYTHING: &str = r#"
workflow: everything
steps:
  - { name: start, set: "{{ input.n }}" }
  - { name: skipped, when: "{{ input.n > 100 }}", set: never }
  - { name: nap, after: [start], wait: 10m }
  - { name: each, after: [start], foreach: { items: "{{ input.items }}", concurrency: 2 }, set: "{{ item }}-{{ steps.start.output }}" }
  - { name: naps, after: [each], foreach: "{{ input.items }}", wait: "{{ index + 1 }}m" }
  - { name: ok, after: [nap, skipped], approve: { roles: [operator], within: 2h } }
  - { name: child, after: [ok, each], start: { workflow: small, input: "{{ steps.each.output }}" } }
  - { name: apart, start: { workflow: small, input: [], id: "{{ run.id }}-apart", wait: false } }
  - { name: check, after: [child, naps, apart], when: "{{ not steps.ok.output.approved }}", fail: { message: "not approved" } }
output: { child: "{{ steps.child.output }}", ok: "{{ steps.ok.output }}", apart: "{{ steps.apart.output.runId }}" }
"#;
const SMALL: &str = r#"
workflow: small
steps:
  - { name: count, set: "{{ input | length }}", undo: { set: "{{ output }}" } }
  - { name: nap, wait: 1s }
output: "{{ steps.count.output }}"
"#;

async fn everywhere(approved: bool) -> Result<Json, Failure> {
    let shelf = Shelf::of(&[EVERYTHING, SMALL]);
    let report = shelf
        .lab()
        .crash_everywhere(async |lab| {
            lab.start_named("everything", "r", &json!({"n": 3, "items": ["a", "b", "c"]})).await;
            lab.signal("r", "ok", &json!({"approved": approved})).await;
            let apart = lab.result::<Json>("r").await;
            assert_eq!(lab.result::<Json>("r-apart").await, Ok(json!(0)));
            apart
        })
        .await;
    assert!(report.plays.len() > 20, "there were only {} crashes", report.plays.len());
    report.called_at_most("start", 2);
    report.called_at_most("each", 2 * 3);
    report.outcome
}

#[tokio::test]
async fn a_run_of_every_kind_survives_crashes_everywhere() {
    assert_eq!(everywhere(true).await, Ok(json!({"child": 3, "ok": {"approved": true}, "apart": "r-apart"})));
}

#[tokio::test]
async fn a_run_that_fails_does_so_wherever_it_crashes() {
    assert_eq!(everywhere(false).await.unwrap_err().message, "not approved");
}

#[tokio::test]
async fn an_undo_survives_crashes_everywhere() {
    let text = r#"
workflow: saga
steps:
  - { name: one, set: { n: 1 }, undo: { set: "{{ output.n }}" } }
  - { name: two, foreach: [1, 2], set: "{{ item }}", undo: { set: "{{ item }} {{ steps.one.output.n }} {{ attempt }}" } }
  - { name: three, fail: { message: bad } }
"#;
    let shelf = Shelf::of(&[text]);
    let report = shelf
        .lab()
        .crash_everywhere(async |lab| {
            lab.start_named("saga", "r", &json!(null)).await;
            lab.result::<Json>("r").await
        })
        .await;
    assert_eq!(report.outcome.clone().unwrap_err().message, "bad");
    report.called_at_most("one/undo", 2);
}
