//! How many, how large, how long.

use crate::support::{PATIENCE, Site, config, until};
use reqwest::Method;
use serde_json::json;
use std::time::Duration;
use steadfast_server::{Config, Parts};
use steadfast_store::memory::{Fault, Gate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let site = Site::with(Config { body_bytes_max: 1000, ..config() }, Parts::default()).await;
    let announced = site.request(Method::POST, "/v1/runs").json(&json!({"workflow": "echo", "input": "x".repeat(2000)}));
    assert_eq!(site.send(announced).await.problem(413), "SF0106");
    let chunks = futures_util::stream::iter((0..4).map(|_| Ok::<_, std::io::Error>("x".repeat(500))));
    let chunked = site.request(Method::POST, "/v1/runs").header("content-type", "application/json");
    assert_eq!(site.send(chunked.body(reqwest::Body::wrap_stream(chunks))).await.problem(413), "SF0106");
}

#[tokio::test]
async fn an_input_that_is_too_large_for_the_engine_is_refused() {
    let site = Site::new().await;
    let got = site.post("/v1/runs", json!({"workflow": "echo", "input": "x".repeat(9 << 19)})).await;
    assert_eq!(got.problem(413), "SF0106");
}

#[tokio::test]
async fn only_so_many_requests_are_under_way_at_once() {
    let site = Site::with(Config { in_flight_max: 1, ..config() }, Parts::default()).await;
    site.run(json!({"workflow": "hold", "id": "h"})).await;
    let waiting = tokio::spawn(site.request(Method::GET, "/v1/runs/h/result?waitMs=60000").send());
    until("as many are under way as may be", async || site.get("/v1/runs").await.status != 200).await;
    let refused = site.get("/v1/runs").await;
    assert_eq!((refused.problem(429).as_str(), refused.header("retry-after")), ("SF0507", "1"));
    assert_eq!(site.get("/healthz").await.status, 200, "probes are always answered");
    let run = steadfast_kernel::RunId::new("h").unwrap();
    site.engine
        .signal(&run, "go", steadfast_kernel::Payload::json("1"), steadfast_kernel::Origin::default())
        .await
        .unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    assert_eq!(site.get("/v1/runs").await.status, 200);
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_given_up() {
    let site =
        Site::with(Config { request_time: Duration::from_millis(50), wait_max: Duration::from_millis(50), ..config() }, Parts::default())
            .await;
    let gate = Gate::default();
    site.store.faults().after(0, Fault::Hold(gate.clone()));
    let got = site.post("/v1/runs", json!({"workflow": "echo", "id": "slow"})).await;
    assert_eq!((got.problem(503).as_str(), got.header("retry-after")), ("SF0508", "1"));
    gate.open();
    site.until("slow", "COMPLETED").await;
}

#[tokio::test]
async fn a_wait_is_no_longer_than_the_server_allows() {
    let site = Site::with(Config { wait_max: Duration::from_millis(20), ..config() }, Parts::default()).await;
    let got = site.post("/v1/runs", json!({"workflow": "hold", "waitMs": u64::MAX})).await;
    assert_eq!(got.status, 201);
}

/// All that comes back on a connection on which this was sent, until the server ends it.
async fn until_closed(site: &Site, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(site.addr).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut answer = Vec::new();
    let _reset = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the server ends it");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_client_that_sends_nothing_or_half_a_head_is_cut_off() {
    let site = Site::with(Config { head_time: Duration::from_millis(100), ..config() }, Parts::default()).await;
    for sent in ["", "G", "PRI * HTTP/2", "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        let answer = until_closed(&site, sent.as_bytes()).await;
        assert!(!answer.contains(" 200 "), "{sent:?}: {answer}");
    }
}

#[tokio::test]
async fn http_2_is_spoken_without_tls() {
    let site = Site::new().await;
    steadfast_tls::install_default();
    let http = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let answer = http
        .post(site.url("/v1/runs"))
        .json(&json!({"workflow": "echo", "waitMs": 30000}))
        .send()
        .await
        .unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (201, reqwest::Version::HTTP_2));
}
