//! What goes for runs of a definition: input, limits, deadline, recovery.

use crate::support::Shelf;
use serde_json::{Value as Json, json};
use steadfast::testing::Lab;
use steadfast::{Code, HOUR, Status};

const TEXT: &str = r#"
workflow: order
input: { type: object, required: [customer], properties: { customer: { type: string } } }
deadline: 2h
recovery: manual
concurrency: { key: "customer/{{ input.customer }}", limit: 1 }
steps:
  - { name: nap, wait: 1h }
  - { name: ask, approve: {} }
"#;

#[tokio::test]
async fn an_input_that_does_not_fit_is_refused_without_showing_it() {
    let shelf = Shelf::of(&[TEXT]);
    let lab = shelf.lab().open().await;
    let engine = lab.engine().await;
    for (input, why) in
        [(json!({"customer": 1234}), "/customer: value is not of type \"string\""), (json!({}), "\"customer\" is a required property")]
    {
        let error = engine.start("order", &input).await.map(drop).unwrap_err();
        assert_eq!(error.code(), "SF0116", "{error}");
        assert!(error.to_string().contains(why) && !error.to_string().contains("1234"), "{error}");
    }
}

#[tokio::test]
async fn runs_of_one_key_go_one_after_another() {
    let shelf = Shelf::of(&[TEXT]);
    let lab = shelf.lab().open().await;
    assert_eq!(begun(&lab, "order", &["a", "a", "b"]).await, [true, false, true]);
}

#[tokio::test]
async fn any_text_is_a_key() {
    let shelf = Shelf::of(&[&TEXT.replace("customer/{{ input.customer }}", "{{ input.customer }}")]);
    let lab = shelf.lab().open().await;
    let long = "long ".repeat(100);
    for (index, key) in ["ada@example.com", "two words", "Zoë", "", &long].into_iter().enumerate() {
        let other = format!("{key}, another @");
        assert_eq!(begun(&lab, &index.to_string(), &[key, key, &other]).await, [true, false, true], "{key:?}");
    }
}

/// Starts a run per customer, and tells which of them have begun.
async fn begun(lab: &Lab, prefix: &str, customers: &[&str]) -> Vec<bool> {
    let id = |number: usize| format!("{prefix}-{number}");
    for (number, customer) in customers.iter().enumerate() {
        lab.start_named("order", &id(number), &json!({"customer": customer})).await;
    }
    lab.settle().await;
    let mut begun = Vec::new();
    for number in 0..customers.len() {
        let view = lab.ask(async |engine| engine.run(&id(number))?.view().await).await.unwrap();
        begun.push(view.status != Status::Ready);
    }
    begun
}

const CALLER: &str = r#"
workflow: caller
steps:
  - { name: ask, start: { workflow: called, input: "{{ input }}" } }
"#;
const CALLED: &str = r#"
workflow: called
concurrency: { key: "{{ input.customer }}", limit: 1 }
steps:
  - { name: work, set: done }
output: "{{ steps.work.output }}"
"#;

#[tokio::test]
async fn a_child_that_has_no_key_for_its_limit_fails_before_it_does_anything() {
    let shelf = Shelf::of(&[CALLER, CALLED]);
    let lab = shelf.lab().open().await;
    lab.start_named("caller", "good", &json!({"customer": "a"})).await;
    assert!(lab.result::<Json>("good").await.is_ok());
    assert_eq!(lab.calls("work").len(), 1);
    lab.start_named("caller", "bad", &json!({})).await;
    let failure = lab.result::<Json>("bad").await.unwrap_err();
    assert!(failure.message.contains("concurrency.key: `input.customer` is undefined"), "{failure:?}");
    assert_eq!(lab.calls("work").len(), 1, "it does not run without its limit");
}

#[tokio::test]
async fn the_deadline_is_over_the_whole_run() {
    let shelf = Shelf::of(&[TEXT]);
    let lab = shelf.lab().open().await;
    lab.start_named("order", "r", &json!({"customer": "a"})).await;
    lab.advance(HOUR).await;
    let view = lab.ask(async |engine| engine.run("r")?.view().await).await.unwrap();
    assert_eq!(view.deadline_at.map(|at| at.to_string()).as_deref(), Some("2026-01-01T02:00:00Z"));
    assert_eq!(lab.result::<Json>("r").await.unwrap_err().code, Code::DeadlineExceeded);
    let journal = lab.journal("r").await;
    assert!(format!("{:?}", journal.entries()[0]).contains("Manual"), "{:?}", journal.entries()[0]);
}
