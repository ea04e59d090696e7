//! The kind `http` against a real server.

use crate::server::{Answer, Server};
use crate::support::{Shelf, ended, vars};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Class, Code, Error, Failure, Run};
use steadfast_definitions::Settings;
use steadfast_kernel::{Payload, WorkflowName};
use steadfast_runtime::{Attempted, Builder, Observer, RunEnded, Start};

/// One http step with those fields beside its url, which has the path `/x?token=hunter2`.
fn text(fields: &str, step: &str) -> String {
    format!(
        "workflow: call\nsteps:\n  - name: ask\n    http: {{ url: \"{{{{ vars.server }}}}/x?token=hunter2\"{fields} }}\n{step}output: \"{{{{ steps.ask.output }}}}\"\n"
    )
}

async fn call(server: &Server, text: &str, settings: Settings, input: Json) -> (Run, Result<Json, Failure>) {
    let mut vars = vars();
    vars.insert("server".into(), server.address().into());
    let shelf = Shelf::with(&[text], settings, vars);
    let engine = shelf.engine().await;
    let run = engine.start("call", &input).id("r").await.unwrap();
    let result = ended(&run).await;
    (run, result)
}

async fn once(answer: Answer, fields: &str) -> (Server, Result<Json, Failure>) {
    let server = Server::start([answer]).await;
    let step = "    retry: { max_attempts: 1 }\n";
    let (_, result) = call(&server, &text(fields, step), Settings::default(), json!({"order": 7})).await;
    (server, result)
}

#[tokio::test]
async fn the_output_has_status_headers_and_the_parsed_body() {
    let (server, result) = once(
        Answer::json(201, "{\"id\": 7}").header("x-a", "1").header("x-a", "2"),
        ", method: POST, body: { order: \"{{ input.order }}\" }",
    )
    .await;
    let output = result.unwrap();
    assert_eq!((&output["status"], &output["body"], &output["headers"]["x-a"]), (&json!(201), &json!({"id": 7}), &json!("1, 2")));
    let request = server.requests().remove(0);
    assert!(request.starts_with("POST /x?token=hunter2 HTTP/1.1"), "{request}");
    assert!(request.contains("content-type: application/json") && request.ends_with("{\"order\":7}"), "{request}");
    assert!(request.contains("idempotency-key: r/ask#1/1"), "{request}");
    assert!(request.contains("user-agent: steadfast/"), "{request}");
}

#[tokio::test]
async fn text_bodies_go_and_come_as_they_are() {
    let (server, result) =
        once(Answer::text(200, "{\"id\": 7}"), ", method: PUT, body: \"n={{ input.order }}\", headers: { Idempotency-Key: mine, X-N: 5 }")
            .await;
    assert_eq!(result.unwrap()["body"], json!("{\"id\": 7}"));
    let request = server.requests().remove(0);
    assert!(request.ends_with("\r\n\r\nn=7") && !request.contains("content-type"), "{request}");
    assert!(request.contains("idempotency-key: mine") && !request.contains("r/ask#1"), "the definition's own goes first: {request}");
    assert!(request.contains("x-n: 5"), "{request}");
}

#[tokio::test]
async fn a_flaky_server_is_asked_again_under_the_same_key() {
    let server =
        Server::start([Answer::text(503, ""), Answer::hang_up(), Answer::text(429, "").header("retry-after", "0"), Answer::json(200, "1")])
            .await;
    let step = "    retry: { max_attempts: 4, base: 1ms }\n";
    let (run, result) = call(&server, &text("", step), Settings::default(), json!(null)).await;
    assert_eq!(result.unwrap()["body"], json!(1));
    let keys = server.requests().iter().filter(|request| request.contains("idempotency-key: r/ask#1/1")).count();
    assert_eq!(keys, 4);
    let journal: Vec<_> = run.journal().await.unwrap().iter().map(|entry| format!("{:?}", entry.event)).collect();
    let codes: Vec<_> = ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]
        .map(|code| journal.iter().filter(|line| line.contains(code)).count())
        .into();
    assert_eq!(codes, [2, 1], "{journal:#?}");
    assert!(!journal.iter().any(|line| line.contains("hunter2")), "queries are not part of messages: {journal:#?}");
}

#[tokio::test]
async fn retry_after_of_the_answer_is_honoured() {
    let server = Server::start([Answer::text(503, "").header("retry-after", "3600"), Answer::json(200, "too early")]).await;
    let step = "    retry: { max_attempts: 2, base: 1ms, max_delay: 2h, deadline: 30m }\n";
    let (_, result) = call(&server, &text("", step), Settings::default(), json!(null)).await;
    let failure = result.unwrap_err();
    assert!(failure.message.starts_with("no time left for another attempt"), "an hour from now is after the deadline: {failure:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_permanent_and_says_who_refused() {
    let (server, result) = once(Answer::text(404, "hunter2"), "").await;
    let failure = result.unwrap_err();
    let host = server.address().replace("http://", "");
    assert_eq!((failure.class, failure.code, failure.message), (Class::Permanent, Code::NotFound, format!("GET {host}/x answered 404")));
}

#[tokio::test]
async fn a_body_that_is_not_the_json_it_says_is_poison() {
    for (answer, fields) in [(Answer::json(200, "{\"id\": hunter2"), ""), (Answer::text(200, "hunter2"), ", expect: json")] {
        let failure = once(answer, fields).await.1.unwrap_err();
        assert_eq!((failure.class, failure.code), (Class::Poison, Code::DecodeFailure));
        assert!(failure.message.ends_with("answered 200 with a body that is not JSON"), "{failure:?}");
    }
    assert_eq!(once(Answer::json(200, "{"), ", expect: text").await.1.unwrap()["body"], json!("{"));
}

#[tokio::test]
async fn a_huge_body_fails_the_step_and_is_not_read_to_its_end() {
    let server = Server::start([Answer::endless()]).await;
    let settings = Settings { response_bytes_max: 100_000, ..Settings::default() };
    let (_, result) = call(&server, &text("", ""), settings, json!(null)).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.class, failure.code), (Class::Permanent, Code::ResourceExhausted));
    assert!(failure.message.contains("more than 100000 bytes"), "{failure:?}");
}

#[tokio::test]
async fn a_slow_server_is_given_up_after_the_timeout() {
    let server = Server::start([Answer::never(), Answer::json(200, "2")]).await;
    let step = "    timeout: 500ms\n    retry: { max_attempts: 9, base: 1ms }\n";
    let (run, result) = call(&server, &text("", step), Settings::default(), json!(null)).await;
    assert_eq!(result.unwrap()["body"], json!(2));
    assert!(
        run.journal()
            .await
            .unwrap()
            .iter()
            .any(|entry| format!("{:?}", entry.event).contains("DEADLINE_EXCEEDED"))
    );
    let server = Server::start([Answer::never()]).await;
    let settings = Settings { http_timeout: Duration::from_millis(50), ..Settings::default() };
    let failure = call(&server, &text("", "    retry: { max_attempts: 1 }\n"), settings, json!(null))
        .await
        .1
        .unwrap_err();
    assert_eq!(failure.code, Code::DeadlineExceeded, "steps that say nothing have the timeout of the settings");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_transient() {
    let server = Server::start([]).await;
    let address = server.address();
    drop(server);
    let shelf = Shelf::with(
        &[&text("", "    retry: { max_attempts: 2, base: 1ms }\n").replace("{{ vars.server }}", &address)],
        Settings::default(),
        vars(),
    );
    let engine = shelf.engine().await;
    let error = engine.start("call", &()).id("r").await.unwrap().result::<Json>().await.unwrap_err();
    let Error::Failed { failure, .. } = error else { panic!("{error:?}") };
    assert_eq!((failure.code, failure.attempts), (Code::Unavailable, 2));
    assert!(failure.message.contains("cannot be reached") && !format!("{failure:?}").contains("hunter2"), "{failure:?}");
}

#[tokio::test]
async fn redirects_are_followed_but_not_for_ever() {
    let answers = [Answer::text(307, "").header("location", "/there"), Answer::json(200, "3")];
    let server = Server::start(answers).await;
    assert_eq!(call(&server, &text("", ""), Settings::default(), json!(null)).await.1.unwrap()["body"], json!(3));
    assert!(server.requests()[1].starts_with("GET /there"));
    let server = Server::start((0..10).map(|_| Answer::text(302, "").header("location", "/round"))).await;
    let failure = call(&server, &text("", ""), Settings::default(), json!(null)).await.1.unwrap_err();
    assert_eq!((failure.class, server.requests().len()), (Class::Permanent, 6));
}

/// Headers, bodies and keys are meant for who was asked.
#[tokio::test]
async fn redirects_lead_nowhere_else() {
    let other = Server::start([Answer::json(200, "1")]).await;
    let away = Answer::text(307, "").header("location", &format!("{}/other", other.address()));
    let server = Server::start([away]).await;
    let failure = call(&server, &text("", ""), Settings::default(), json!(null)).await.1.unwrap_err();
    assert_eq!(failure.class, Class::Permanent);
    assert!(failure.message.ends_with("answered 307"), "{failure:?}");
    assert!(other.requests().is_empty());
}

/// Somebody who follows traces.
struct Follower;

impl Observer for Follower {
    fn attempted(&self, _attempted: &Attempted<'_>) {}

    fn ended(&self, _ended: &RunEnded<'_>) {}
}

#[tokio::test]
async fn a_trace_goes_along_unless_the_definition_sets_its_own() {
    for (fields, own) in [("", false), (", headers: { traceparent: mine }", true)] {
        let server = Server::start([Answer::json(200, "1")]).await;
        let shelf = Shelf::with(&[&text(fields, "").replace("{{ vars.server }}", &server.address())], Settings::default(), vars());
        let mut builder = Builder::new(Arc::new(Memory::new()));
        builder.observer = Some(Arc::new(Follower));
        for (name, registered) in shelf.registered() {
            builder.registry.insert(WorkflowName::new(name).unwrap(), registered);
        }
        let engine = builder.start().await.unwrap();
        let start =
            Start { workflow: "call".into(), input: Payload::json("null"), id: None, deadline: None, tenant: None, limits: Vec::new() };
        let (run, _) = engine.start(start).await.unwrap();
        assert!(engine.ended(&run).await.unwrap().outcome.is_ok());
        let request = server.requests().remove(0);
        let traceparent = request
            .lines()
            .find_map(|line| line.strip_prefix("traceparent: "))
            .unwrap_or_else(|| panic!("{request}"));
        assert_eq!((traceparent == "mine", traceparent.starts_with("00-")), (own, !own), "{request}");
    }
}

#[tokio::test]
async fn an_address_that_templates_spoil_is_permanent() {
    let server = Server::start([]).await;
    let spoiled = text("", "").replace("{{ vars.server }}/x?token=hunter2", "{{ input.order }}");
    for (order, why) in [("file:///etc/passwd", "neither http:// nor https://"), ("not an address", "it gave no address")] {
        let failure = call(&server, &spoiled, Settings::default(), json!({"order": order})).await.1.unwrap_err();
        assert_eq!(failure.code, Code::InvalidArgument);
        assert!(failure.message.starts_with("step ask, http.url: ") && failure.message.contains(why), "{failure:?}");
    }
}
