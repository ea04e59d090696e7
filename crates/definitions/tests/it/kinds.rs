//! The kinds that wait: for time, for people, for other runs.

use crate::support::{Shelf, lines, play, status};
use serde_json::{Value as Json, json};
use steadfast::{Class, Code, HOUR, MINUTE, Status, Wait};

#[tokio::test]
async fn a_wait_takes_as_long_as_it_says() {
    let text = r#"
workflow: nap
steps:
  - { name: fixed, wait: 10m }
  - { name: given, wait: "{{ input.time }}" }
  - { name: date, wait: { until: "{{ input.until }}" } }
"#;
    let shelf = Shelf::of(&[text]);
    let lab = shelf.lab().open().await;
    lab.start_named("nap", "r", &json!({"time": "5m", "until": "2026-01-01T01:00:00Z"})).await;
    let waits = async || lab.ask(async |engine| engine.run("r")?.view().await).await.unwrap().waits;
    lab.advance(9 * MINUTE).await;
    assert!(lines(&lab).await.iter().any(|line| line.contains("fixed#1/sleep#1")));
    lab.advance(2 * MINUTE).await;
    assert!(lines(&lab).await.iter().any(|line| line.contains("given#1/sleep#1")));
    lab.advance(5 * MINUTE).await;
    let until = waits().await.into_iter().find_map(|wait| wait.due_at()).map(|due| due.to_string());
    assert_eq!(until.as_deref(), Some("2026-01-01T01:00:00Z"), "the lab begins with that year");
    assert_eq!(lab.result("r").await, Ok(Json::Null));
    let (_, result) = play(text, json!({"time": "soon", "until": 1})).await;
    assert!(result.unwrap_err().message.starts_with("step given, wait: it gave no duration"));
}

#[tokio::test]
async fn an_approval_waits_for_a_person_and_returns_what_was_said() {
    let text = r#"
workflow: ask
steps:
  - { name: ok, approve: { roles: [operator, boss], within: 2h } }
  - { name: go, when: "{{ steps.ok.output.approved }}", set: going }
output: { said: "{{ steps.ok.output }}", went: "{{ steps.go.output }}" }
"#;
    let shelf = Shelf::of(&[text]);
    let lab = shelf.lab().open().await;
    lab.start_named("ask", "r", &json!(null)).await;
    lab.advance(HOUR).await;
    let view = lab.ask(async |engine| engine.run("r")?.view().await).await.unwrap();
    let Some(Wait::Approval { roles, until, .. }) = view.waits.first() else { panic!("{:?}", view.waits) };
    assert_eq!((roles.join(" "), until.map(|at| at.to_string()).as_deref()), ("operator boss".into(), Some("2026-01-01T02:00:00Z")));
    lab.crash().await;
    lab.signal("r", "ok", &json!({"approved": true})).await;
    assert_eq!(lab.result("r").await, Ok(json!({"said": {"approved": true}, "went": "going"})));

    lab.start_named("ask", "late", &json!(null)).await;
    let failure = lab.result::<Json>("late").await.unwrap_err();
    assert_eq!(failure.code, Code::DeadlineExceeded);
}

const PARENT: &str = r#"
workflow: parent
steps:
  - { name: child, start: { workflow: child, input: { n: "{{ input.n }}" } } }
  - { name: named, start: { workflow: child, input: { n: 0 }, id: "{{ run.id }}-named" } }
  - { name: apart, start: { workflow: child, input: { n: 5 }, wait: false } }
output: { child: "{{ steps.child.output }}", named: "{{ steps.named.output }}", apart: "{{ steps.apart.output }}" }
"#;
const CHILD: &str = r#"
workflow: child
input: { type: object, properties: { n: { type: integer } } }
steps:
  - { name: work, wait: 1m }
  - { name: odd, when: "{{ input.n == 13 }}", fail: { message: unlucky, class: poison, code: DECODE_FAILURE } }
output: "{{ input.n * 2 }}"
"#;

#[tokio::test]
async fn a_start_waits_for_the_other_run_unless_told_not_to() {
    let shelf = Shelf::of(&[PARENT, CHILD]);
    let lab = shelf.lab().open().await;
    lab.start_named("parent", "r", &json!({"n": 4})).await;
    let result: Json = lab.result("r").await.unwrap();
    let apart = result["apart"]["runId"].as_str().expect("the id of the run").to_string();
    assert_eq!((&result["child"], &result["named"]), (&json!(8), &json!(0)));
    assert_eq!(lab.result::<Json>("r-named").await, Ok(json!(0)));
    assert_eq!(lab.result::<Json>(&apart).await, Ok(json!(10)));
    let kept = shelf.library.describe().into_iter().find(|described| described.name == "child").unwrap().version;
    let view = lab.ask(async |engine| engine.run("r-named")?.journal().await).await.unwrap();
    assert!(format!("{:?}", view[0]).contains(&kept), "children keep their version, too: {:?}", view[0]);
}

#[tokio::test]
async fn a_child_that_fails_fails_its_step() {
    let shelf = Shelf::of(&[PARENT, CHILD]);
    let lab = shelf.lab().open().await;
    lab.start_named("parent", "r", &json!({"n": 13})).await;
    let failure = lab.result::<Json>("r").await.unwrap_err();
    assert!(failure.message.contains("unlucky"), "{failure:?}");
    assert_eq!(status(&lab).await, Status::Failed);
    lab.start_named("parent", "s", &json!({"n": "no number"})).await;
    let failure = lab.result::<Json>("s").await.unwrap_err();
    assert!(
        failure
            .message
            .contains("the input is not what child asks for: /n: value is not of type \"integer\""),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_run_that_is_not_waited_for_goes_on_when_its_parent_fails() {
    let parent = "workflow: parent\nsteps:\n  - { name: apart, start: { workflow: child, input: { n: 5 }, wait: false, id: apart } }\n  - { name: bad, fail: { message: bad } }\n";
    let shelf = Shelf::of(&[parent, CHILD]);
    let lab = shelf.lab().open().await;
    lab.start_named("parent", "r", &json!(null)).await;
    assert_eq!(lab.result::<Json>("r").await.unwrap_err().message, "bad");
    assert_eq!(lab.result::<Json>("apart").await, Ok(json!(10)));
}

#[tokio::test]
async fn a_failure_has_the_class_and_code_that_it_says() {
    let (_, result) =
        play("workflow: a\nsteps:\n  - { name: one, fail: { message: m, class: poison, code: INTERNAL } }\n", json!(null)).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.class, failure.code, &*failure.message), (Class::Poison, Code::Internal, "m"));
    let (_, result) = play("workflow: a\nsteps:\n  - { name: one, fail: { message: m } }\n", json!(null)).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.class, failure.code), (Class::Permanent, Code::FailedPrecondition));
}
