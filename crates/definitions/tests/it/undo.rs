//! Undo of what was done, with what was on record.

use crate::support::{Shelf, ended, lines};
use serde_json::{Value as Json, json};
use std::fs;
use steadfast::{Failure, HOUR, Status};

const SAGA: &str = r#"
workflow: saga
steps:
  - name: reserve
    run: { command: [sh, -c, "echo reserve $1 >> log; echo '{\"id\": 7}'", "-", "{{ input.order }}"] }
    undo:
      run: { command: [sh, -c, "echo release $1 $2 $STEADFAST_IDEMPOTENCY_KEY >> log", "-", "{{ output.json.id }}", "{{ input.order }}"] }
  - name: each
    foreach: { items: [a, b], concurrency: 1 }
    run: { command: [sh, -c, "echo each $1 >> log", "-", "{{ item }}"] }
    undo: { run: { command: [sh, -c, "echo un-each $1 >> log", "-", "{{ item }}-{{ index }}-{{ output.exitCode }}-{{ steps.reserve.output.json.id }}"] } }
  - name: last
    fail: { message: no stock }
"#;

#[tokio::test]
async fn what_was_done_is_undone_newest_first_with_what_it_returned() {
    let shelf = Shelf::of(&[SAGA]);
    let engine = shelf.engine().await;
    let run = engine.start("saga", &json!({"order": "o-1"})).id("r").await.unwrap();
    assert_eq!(ended(&run).await.unwrap_err().message, "no stock");
    assert_eq!(run.view().await.unwrap().status, Status::Failed);
    let log = fs::read_to_string(shelf.folder.path().join("log")).unwrap();
    let expected = ["reserve o-1", "each a", "each b", "un-each b-1-0-7", "un-each a-0-0-7", "release 7 o-1 r/reserve#1/1/undo"];
    assert_eq!(log.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_undo_is_retried_by_a_policy_of_its_own() {
    let text = "workflow: a\nsteps:\n  - { name: one, set: 1, undo: { run: { command: [never] }, retry: { max_attempts: 2, base: 1h, max_delay: 2h } } }\n  - { name: two, fail: { message: bad } }\n";
    let shelf = Shelf::of(&[text]);
    let lab = shelf.lab().open().await;
    lab.fail_attempt("one/undo", 1, Failure::transient("not now"));
    lab.fail_attempt("one/undo", 2, Failure::transient("not now either"));
    lab.start_named("a", "r", &json!(null)).await;
    lab.advance(HOUR / 2).await;
    assert!(lines(&lab).await.last().unwrap().contains("RETRY_SCHEDULED"), "{:#?}", lines(&lab).await);
    lab.advance(2 * HOUR).await;
    assert!(lines(&lab).await.iter().any(|line| line.contains("UNDO_FAILED")), "two attempts and no more: {:#?}", lines(&lab).await);
}

#[tokio::test]
async fn an_undo_can_call_for_a_person() {
    let text = "workflow: a\nsteps:\n  - { name: one, set: 1, undo: { fail: { message: \"undo {{ output }} by hand\" } } }\n  - { name: two, fail: { message: bad } }\n";
    let shelf = Shelf::of(&[text]);
    let lab = shelf.lab().open().await;
    lab.start_named("a", "r", &json!(null)).await;
    lab.settle().await;
    let why = lab.ask(async |engine| engine.why("r").await).await.unwrap();
    assert_eq!(why.status, Status::Compensating, "{why}");
    lab.ask(async |engine| engine.run("r")?.resolve("one#1", steadfast::Resolution::SkipUndo).await)
        .await
        .unwrap();
    assert_eq!(lab.result::<Json>("r").await.unwrap_err().message, "bad");
}
