//! The kind `call`: requests to other nodes, over a network in memory and over sockets.

use crate::support::{Shelf, ended, vars};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::messages::{Incoming, Node, Peer};
use steadfast::{Class, Code, Engine, Failure, Run};
use steadfast_definitions::Settings;
use steadfast_kernel::{Payload, WorkflowName};
use steadfast_runtime::{Attempted, Builder, Observer, RunEnded, Start};

/// What a bank was asked, in order.
type Asked = Arc<Mutex<Vec<Incoming>>>;

/// A node that answers `transfer` in turn, and the last answer for ever.
async fn bank(answers: Vec<Result<Json, Failure>>) -> (Node, Asked) {
    let node = Node::builder().name("bank").bind("127.0.0.1:0").await.unwrap();
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let handler = move |incoming: Incoming| {
        let mut asked = seen.lock();
        let answer = answers.get(asked.len()).or_else(|| answers.last()).cloned().unwrap();
        asked.push(incoming);
        async move { answer.map(|answer| answer.to_string()) }
    };
    node.route("transfer", handler);
    (node, asked)
}

/// One call step with those fields beside `to` and `route`.
fn text(fields: &str, step: &str) -> String {
    format!(
        "workflow: pay\nsteps:\n  - name: transfer\n    call: {{ to: \"{{{{ vars.bank }}}}\", route: transfer{fields} }}\n{step}output: \"{{{{ steps.transfer.output }}}}\"\n"
    )
}

/// Carries out one definition with a node of its own.
async fn pay(bank: &Node, text: &str, input: Json) -> (Engine, Run, Result<Json, Failure>) {
    let mut vars = vars();
    vars.insert("bank".into(), format!("http://{}", bank.addr().unwrap()).into());
    let shelf = Shelf::with(&[text], Settings::default(), vars);
    shelf.library.set_node(Node::builder().name("shop").bind("127.0.0.1:0").await.unwrap());
    let engine = shelf.engine().await;
    let run = engine.start("pay", &input).id("r").await.unwrap();
    let result = ended(&run).await;
    (engine, run, result)
}

#[tokio::test]
async fn the_output_is_the_answer_and_the_request_has_the_key_of_the_step() {
    let (bank, asked) = bank(vec![Ok(json!({"receipt": 17}))]).await;
    let text = text(", input: { cents: \"{{ input.amount * 100 }}\" }", "    timeout: 20s\n");
    let (_, _, result) = pay(&bank, &text, json!({"amount": 7})).await;
    assert_eq!(result, Ok(json!({"receipt": 17})));
    let asked = asked.lock().remove(0);
    assert_eq!((&*asked.id, &*asked.caller.name, &asked.payload[..]), ("r/transfer#1/1", "shop", &b"{\"cents\":700}"[..]));
    assert!(
        asked.wants_answer && asked.left() <= Duration::from_secs(60) && asked.left() > Duration::from_secs(20),
        "an attempt that is given up does not end it: it comes again, and its route says for how long it may take"
    );
}

#[tokio::test]
async fn a_failed_attempt_is_made_again_under_the_same_id() {
    let (bank, asked) = bank(vec![Err(Failure::transient("busy")), Err(Failure::transient("busy")), Ok(json!("booked"))]).await;
    let (_, run, result) = pay(&bank, &text("", "    retry: { max_attempts: 3, base: 1ms }\n"), json!(null)).await;
    assert_eq!(result, Ok(json!("booked")));
    let seen: Vec<_> = asked.lock().iter().map(|asked| (asked.id.to_string(), asked.attempt)).collect();
    assert_eq!(seen, [1, 2, 3].map(|attempt| ("r/transfer#1/1".to_owned(), attempt)), "the receiver sees which attempt it is");
    let retries = run
        .journal()
        .await
        .unwrap()
        .iter()
        .filter(|entry| format!("{:?}", entry.event).contains("RetryScheduled"))
        .count();
    assert_eq!(retries, 2, "they are the engine's attempts, on record");
}

#[tokio::test]
async fn what_is_left_of_the_time_of_the_step_travels_with_each_attempt() {
    let seconds = Duration::from_secs;
    for (step, least, most) in [
        ("    retry: { max_attempts: 1 }\n    timeout: 15s\n", vec![0], vec![15]),
        ("    retry: { max_attempts: 2, base: 1ms }\n    timeout: 15s\n", vec![15, 0], vec![30, 15]),
        ("    retry: { max_attempts: 2, base: 1ms, deadline: 40s }\n    timeout: 15s\n", vec![15, 15], vec![40, 40]),
    ] {
        let (bank, asked) = bank(vec![Err(Failure::transient("busy"))]).await;
        let (_, _, result) = pay(&bank, &text("", step), json!(null)).await;
        assert!(result.unwrap_err().message.ends_with("busy"));
        let left: Vec<Duration> = asked.lock().iter().map(Incoming::left).collect();
        assert_eq!(left.len(), most.len());
        for (left, (least, most)) in left.iter().zip(least.into_iter().zip(most)) {
            assert!((seconds(least)..=seconds(most)).contains(left), "{left:?} is not between {least} and {most} seconds: {step}");
        }
    }
}

#[tokio::test]
async fn a_permanent_failure_is_not_tried_again() {
    let (bank, asked) = bank(vec![Err(Failure::permanent("no such account").code(Code::NotFound))]).await;
    let (_, _, result) = pay(&bank, &text("", ""), json!(null)).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.class, failure.code, asked.lock().len()), (Class::Permanent, Code::NotFound, 1));
    assert!(failure.message.contains("no such account"), "{failure}");
}

#[tokio::test]
async fn without_an_answer_it_is_over_when_it_is_taken() {
    let (bank, asked) = bank(vec![Ok(json!("nobody sees this"))]).await;
    let (_, _, result) = pay(&bank, &text(", input: 7, answer: false", ""), json!(null)).await;
    assert_eq!(result, Ok(json!(null)));
    let asked = asked.lock().remove(0);
    assert!(!asked.wants_answer && asked.payload == "7", "{asked:?}");
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_poison_and_is_not_shown() {
    let (bank, _) = bank(vec![Ok(json!(null))]).await;
    bank.route("transfer", |_| async { Ok("hunter2 {") });
    let (_, _, result) = pay(&bank, &text("", ""), json!(null)).await;
    let failure = result.unwrap_err();
    assert!(failure.class == Class::Poison && failure.message.contains("not JSON") && !failure.message.contains("hunter2"), "{failure}");
}

#[tokio::test]
async fn a_node_that_has_connected_is_called_by_its_name() {
    let text = "workflow: pay\nsteps:\n  - { name: transfer, call: { node: \"{{ input.who }}\", route: transfer } }\noutput: \"{{ steps.transfer.output }}\"\n";
    let server = Node::builder().name("server").bind("127.0.0.1:0").await.unwrap();
    let shelf = Shelf::of(&[text]);
    shelf.library.set_node(server.clone());
    let engine = shelf.engine().await;
    let run = engine.start("pay", &json!({"who": "bank"})).id("r").await.unwrap();
    // It connects while it is waited for.
    server.route("hello", |_| async { Ok("null") });
    let (bank, _) = bank(vec![Ok(json!("booked"))]).await;
    bank.call(Peer::at(format!("http://{}", server.addr().unwrap())), "hello", "").await.unwrap();
    assert_eq!(ended(&run).await, Ok(json!("booked")));
}

#[tokio::test]
async fn an_address_that_cannot_be_is_told_without_itself() {
    let (bank, asked) = bank(vec![Ok(json!(1))]).await;
    for (address, part) in [
        ("http://u:hunter2@bank:7400", "a name or password"),
        ("http://bank:7400/?token=hunter2", "more than a host"),
        ("hunter2", "no address"),
    ] {
        let text = "workflow: pay\nsteps:\n  - { name: transfer, call: { to: \"{{ input }}\", route: transfer } }\n";
        let (_, _, result) = pay(&bank, text, json!(address)).await;
        let failure = result.unwrap_err();
        assert!(failure.message.contains(part) && failure.message.contains("call.to") && !failure.message.contains("hunter2"), "{failure}");
        assert_eq!((failure.class, failure.code), (Class::Permanent, Code::InvalidArgument));
    }
    assert!(asked.lock().is_empty());
}

#[tokio::test]
async fn without_a_node_it_fails_and_says_what_to_do() {
    let shelf = Shelf::of(&["workflow: pay\nsteps:\n  - { name: transfer, call: { to: \"http://127.0.0.1:1\", route: transfer } }\n"]);
    let engine = shelf.engine().await;
    let failure = ended(&engine.start("pay", &json!(null)).await.unwrap()).await.unwrap_err();
    assert_eq!((failure.class, failure.code), (Class::Permanent, Code::FailedPrecondition));
    assert!(failure.message.contains("steadfast serve"), "{failure}");
}

#[tokio::test]
async fn a_call_is_undone_by_a_call() {
    let (bank, asked) = bank(vec![Ok(json!({"id": 5}))]).await;
    let undone = Arc::clone(&asked);
    bank.route("refund", move |incoming| {
        undone.lock().push(incoming);
        async { Ok("null") }
    });
    let step = "    undo: { call: { to: \"{{ vars.bank }}\", route: refund, input: \"{{ output.id }}\" } }\n  - { name: bad, fail: { message: bad } }\n";
    let (_, _, result) = pay(&bank, &text("", step), json!(null)).await;
    assert_eq!(result.unwrap_err().message, "bad");
    let asked = asked.lock();
    assert_eq!((asked[1].payload.as_ref(), &*asked[1].id), (&b"5"[..], "r/transfer#1/1/undo"));
}

/// Somebody who follows traces.
struct Follower;

impl Observer for Follower {
    fn attempted(&self, _attempted: &Attempted<'_>) {}

    fn ended(&self, _ended: &RunEnded<'_>) {}
}

#[tokio::test]
async fn a_trace_goes_along_and_a_long_key_goes_as_its_digest() {
    let (bank, asked) = bank(vec![Ok(json!(1))]).await;
    let shelf =
        Shelf::with(&[&text("", "").replace("{{ vars.bank }}", &format!("http://{}", bank.addr().unwrap()))], Settings::default(), vars());
    shelf.library.set_node(Node::builder().name("shop").bind("127.0.0.1:0").await.unwrap());
    let mut builder = Builder::new(Arc::new(Memory::new()));
    builder.observer = Some(Arc::new(Follower));
    for (name, registered) in shelf.registered() {
        builder.registry.insert(WorkflowName::new(name).unwrap(), registered);
    }
    let engine = builder.start().await.unwrap();
    let id = Some("long".repeat(32));
    let start = Start { workflow: "pay".into(), input: Payload::json("null"), id, deadline: None, tenant: None, limits: Vec::new() };
    let (run, _) = engine.start(start).await.unwrap();
    assert!(engine.ended(&run).await.unwrap().outcome.is_ok());
    let asked = asked.lock().remove(0);
    assert!(asked.trace.starts_with("00-"), "{:?}", asked.trace);
    assert!(asked.id.len() <= 128 && !asked.id.contains("long"), "{:?}", asked.id);
}

#[test]
fn routes_follow_the_definitions_and_have_one_answer() {
    let shelf = Shelf::of(&[
        "workflow: one\nanswers: true\nsteps:\n  - { name: s, set: 1 }\n",
        "workflow: two\nanswers: deux\nsteps:\n  - { name: s, set: 1 }\n",
        "workflow: three\nanswers: false\nsteps:\n  - { name: s, set: 1 }\n",
    ]);
    let answers = || {
        shelf
            .library
            .answers()
            .into_iter()
            .map(|(route, workflow)| format!("{route}={workflow}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(answers(), ["deux=two", "one=one"]);
    std::fs::write(shelf.folder.path().join("3.yaml"), "workflow: four\nanswers: one\nsteps:\n  - { name: s, set: 1 }\n").unwrap();
    let changes = shelf.library.reload().unwrap();
    let problem = changes.problems().next().unwrap().to_string();
    assert!(problem.contains("the route one is answered by the workflow one already, which is defined by 0.yaml"), "{problem}");
    std::fs::remove_file(shelf.folder.path().join("0.yaml")).unwrap();
    drop(shelf.library.reload().unwrap());
    assert_eq!(answers(), ["deux=two", "one=four"]);
}
