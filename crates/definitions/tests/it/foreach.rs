//! A branch per item.

use crate::support::{lines, play};
use serde_json::json;
use steadfast::Code;

#[tokio::test]
async fn every_item_has_a_branch_and_the_outputs_are_in_order() {
    let text = r#"
workflow: each
steps:
  - { name: double, foreach: "{{ input }}", set: { n: "{{ item * 2 }}", at: "{{ index }}" } }
output: "{{ steps.double.output }}"
"#;
    let (lab, result) = play(text, json!([5, 7])).await;
    assert_eq!(result, Ok(json!([{"n": 10, "at": 0}, {"n": 14, "at": 1}])));
    let steps: Vec<_> = lab.calls("double").into_iter().map(|call| call.step).collect();
    assert_eq!(steps, ["double#1/all#1.0/double#1", "double#1/all#1.1/double#1"]);
    assert_eq!(play(text, json!([])).await.1, Ok(json!([])));
    let failure = play(text, json!({"a": 1})).await.1.unwrap_err();
    assert_eq!((failure.code, &*failure.message), (Code::InvalidArgument, "step double, foreach: it gave no list"));
}

#[tokio::test]
async fn items_go_side_by_side_as_far_as_they_may() {
    let text = |limit: &str| {
        format!("workflow: each\nsteps:\n  - {{ name: nap, foreach: {{ items: \"{{{{ input }}}}\"{limit} }}, wait: \"{{{{ item }}}}\" }}\n")
    };
    let set = async |limit: &str| {
        let (lab, result) = play(&text(limit), json!(["1m", "2m", "3m"])).await;
        assert_eq!(result, Ok(json!(null)));
        let lines = lines(&lab).await;
        let fired = lines.iter().position(|line| line.contains("TIMER_FIRED")).unwrap();
        lines[..fired].iter().filter(|line| line.contains("TIMER_SET")).count()
    };
    assert_eq!((set("").await, set(", concurrency: 2").await, set(", concurrency: 1").await), (3, 2, 1));
}

#[tokio::test]
async fn an_item_that_fails_fails_the_step_when_the_others_are_done() {
    let text = r#"
workflow: each
steps:
  - { name: check, foreach: "{{ input }}", start: { workflow: each, input: "{{ item }}" }, when: "{{ input is sequence }}" }
  - { name: bad, when: "{{ input == 13 }}", fail: { message: unlucky } }
output: "{{ input }}"
"#;
    let (lab, result) = play(text, json!([1, 13, 2])).await;
    assert!(result.unwrap_err().message.contains("unlucky"));
    let ended = lines(&lab).await.iter().filter(|line| line.contains("CHILD_ENDED")).count();
    assert_eq!(ended, 3, "all three were waited for");
}
