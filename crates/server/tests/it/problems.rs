//! Every error is a problem document that says what to do.

use crate::support::{Site, config, raw};
use reqwest::Method;
use serde_json::json;
use std::sync::Arc;
use steadfast_server::shapes::Workflow;
use steadfast_server::{Catalogue, Parts};
use steadfast_store::memory::Fault;

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said() {
    let site = Site::new().await;
    let says = async |method: Method, path: &str, body: &str, status: u16, code: &str, says: &str| {
        let request = site.request(method, path).header("content-type", "application/json").body(body.to_string());
        let got = site.send(request).await;
        assert_eq!(got.problem(status), code, "{path} {body}");
        let problem = got.json();
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
        assert_eq!(problem["instance"], path.split('?').next().unwrap());
    };
    let (get, post) = (Method::GET, Method::POST);
    says(get.clone(), "/v1/nothing", "", 404, "SF0504", "/openapi.json").await;
    says(Method::DELETE, "/v1/runs", "", 405, "SF0505", "does not take DELETE").await;
    says(get.clone(), "/v1/runs/a%20b", "", 400, "SF0101", "A-Z a-z 0-9").await;
    says(get.clone(), "/v1/runs/a%FF", "", 400, "SF0501", "UTF-8").await;
    says(get.clone(), "/v1/runs/a//b", "", 400, "SF0101", "without empty").await;
    says(get.clone(), "/v1/runs/none", "", 404, "SF0104", "GET /v1/runs").await;
    says(get.clone(), "/v1/runs?statsu=FAILED", "", 400, "SF0501", "did you mean \"status\"?").await;
    says(get.clone(), "/v1/runs?limit=0", "", 400, "SF0501", "from 1 to 1000").await;
    says(get.clone(), "/v1/runs?cursor=abc", "", 400, "SF0501", "cursor").await;
    says(get.clone(), "/v1/runs?wait=BACKOF", "", 400, "SF0501", "did you mean BACKOFF?").await;
    says(get.clone(), "/v1/letters/x", "", 400, "SF0501", "WORKFLOW.NUMBER").await;
    says(get.clone(), "/v1/letters/x.1", "", 404, "SF0115", "GET /v1/letters").await;
    says(post.clone(), "/v1/runs", "{", 400, "SF0501", "the body cannot be read").await;
    says(post.clone(), "/v1/runs", r#"["echo"]"#, 400, "SF0501", "it has to be an object").await;
    says(post.clone(), "/v1/runs", "{}", 400, "SF0501", "missing field `workflow`").await;
    says(post.clone(), "/v1/runs", r#"{"workflow":"echo","inputs":1}"#, 400, "SF0501", "unknown field `inputs`").await;
    says(post.clone(), "/v1/runs", r#"{"workflow":"nope"}"#, 404, "SF0102", "echo").await;
    says(post.clone(), "/v1/runs", r#"{"workflow":"echo","id":"a b"}"#, 400, "SF0101", "run id").await;
    says(post.clone(), "/v1/runs", r#"{"workflow":"echo","deadlineMs":0}"#, 400, "SF0501", "deadlineMs").await;
    says(post.clone(), "/v1/runs", r#"{"workflow":"strict","input":"x"}"#, 422, "SF0116", "not a number").await;
    says(post.clone(), "/v1/runs/none/retry", r#"{"outputs":{"":1}}"#, 400, "SF0501", "BRANCH/NAME#OCCURRENCE").await;
    let long = format!(r#"{{"reason":"{}"}}"#, "x".repeat(5000));
    says(post, "/v1/runs/none/pause", &long, 400, "SF0501", "reason").await;
}

#[tokio::test]
async fn other_methods_are_told_what_a_path_takes() {
    let site = Site::new().await;
    let got = site.send(site.request(Method::PUT, "/v1/runs")).await;
    assert_eq!((got.problem(405).as_str(), got.header("allow")), ("SF0505", "POST,GET,HEAD"));
}

#[tokio::test]
async fn bodies_have_to_say_that_they_are_json() {
    let site = Site::new().await;
    let form = site.request(Method::POST, "/v1/runs").header("content-type", "text/plain").body("{}");
    assert_eq!(site.send(form).await.problem(415), "SF0506");
    let none = site.request(Method::POST, "/v1/runs/x/pause").body("{}");
    assert_eq!(site.send(none).await.problem(415), "SF0506");
    let charset = site
        .request(Method::POST, "/v1/runs")
        .header("content-type", "Application/JSON; charset=utf-8")
        .body(r#"{"workflow":"echo"}"#);
    assert_eq!(site.send(charset).await.status, 201);
}

#[tokio::test]
async fn a_command_needs_one_readable_key() {
    let site = Site::new().await;
    let pause = || site.request(Method::POST, "/v1/runs/x/pause");
    let twice = pause().header("idempotency-key", "a").header("idempotency-key", "b");
    assert_eq!(site.send(twice).await.problem(400), "SF0501");
    assert_eq!(site.send(pause().header("idempotency-key", "x".repeat(300))).await.problem(400), "SF0501");
}

#[tokio::test]
async fn a_store_that_cannot_write_is_unavailable_and_the_server_is_not_ready() {
    let site = Site::new().await;
    assert_eq!(site.get("/readyz").await.json()["ready"], true);
    site.store.faults().rule(|_| Some(Fault::Fail));
    let got = site.post("/v1/runs", json!({"workflow": "echo"})).await;
    assert_eq!((got.problem(503).as_str(), got.header("retry-after")), ("SF0301", "1"));
    let ready = site.get("/readyz").await;
    assert_eq!(ready.problem(503), "SF0510");
    let store = &ready.json()["dependencies"][0];
    assert_eq!((&store["name"], &store["ready"]), (&json!("store"), &json!(false)));
    assert!(store["detail"].as_str().unwrap().contains("SF0301"), "{store}");
    assert_eq!(site.get("/healthz").await.json(), json!({"status": "ok"}));
}

#[tokio::test]
async fn an_engine_that_has_stopped_is_unavailable() {
    let site = Site::new().await;
    site.engine.clone().shutdown().await;
    assert_eq!(site.post("/v1/runs", json!({"workflow": "echo"})).await.problem(503), "SF0202");
}

#[tokio::test]
async fn odd_requests_are_refused_and_break_nothing() {
    let site = Site::new().await;
    for (head, status) in [
        ("OPTIONS * HTTP/1.1\r\nHost: localhost", "404"),
        ("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost", "404"),
        ("CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost", "403"),
        ("GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost", "403"),
        ("GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example", "200"),
        ("get /healthz HTTP/1.1\r\nHost: localhost", "405"),
        ("TRACE /v1/runs HTTP/1.1\r\nHost: localhost", "405"),
        ("GET /v1/runs/../runs HTTP/1.1\r\nHost: localhost", "400"),
        ("GET /v1/runs/%zz HTTP/1.1\r\nHost: localhost", "400"),
        ("GET //v1/runs HTTP/1.1\r\nHost: localhost", "404"),
        ("GET /v1/runs/%00 HTTP/1.1\r\nHost: localhost", "400"),
    ] {
        let answer = raw(&site, &format!("{head}\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
    }
}

struct Broken;

impl Catalogue for Broken {
    fn describe(&self) -> Vec<Workflow> {
        panic!("secret")
    }
}

#[tokio::test]
async fn a_panic_is_answered_without_details() {
    let site = Site::with(config(), Parts { catalogue: Some(Arc::new(Broken)), ..Parts::default() }).await;
    let got = site.get("/v1/workflows").await;
    assert_eq!(got.problem(500), "SF0509");
    assert!(!got.text.contains("secret"), "{}", got.text);
    assert_eq!(site.get("/healthz").await.status, 200, "the server goes on");
}

#[tokio::test]
async fn a_request_keeps_the_id_that_it_was_given() {
    let site = Site::new().await;
    let got = site.send(site.request(Method::GET, "/healthz").header("x-request-id", "abc-1")).await;
    assert_eq!(got.header("x-request-id"), "abc-1");
    let odd = site.send(site.request(Method::GET, "/healthz").header("x-request-id", "a b")).await;
    assert_ne!(odd.header("x-request-id"), "a b");
}
