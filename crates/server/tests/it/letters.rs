//! Dead letters of all kinds: listed by what is asked for, shown with their bytes, and tried again together.

use crate::feed::Reader;
use crate::support::{Got, Site, config, until};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use steadfast_kernel::{Direction, Failure, MessageKind, Payload};
use steadfast_runtime::MessageLetter;
use steadfast_server::{Config, Parts};

async fn post(site: &Site, request: &str, bytes: &'static [u8]) -> String {
    let message = MessageLetter {
        route: "mail/send".into(),
        direction: Direction::Sent,
        kind: MessageKind::Tell,
        peer: "https://10.0.0.7:7373".into(),
        request: request.into(),
        tenant: Some("acme".into()),
        attempts: 3,
        failure: Failure::transient("the peer is away"),
        payload: Payload::bytes(bytes),
    };
    site.engine.post_message(message).await.unwrap().to_string()
}

async fn ids(site: &Site, query: &str) -> Vec<String> {
    let got = site.get(&format!("/v1/letters{query}")).await;
    assert_eq!(got.status, 200, "{}", got.text);
    got.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|letter| letter["id"].as_str().unwrap().to_string())
        .collect()
}

/// A step, an expiry is left to other tests, and two messages.
async fn three(site: &Site) {
    site.run(json!({"workflow": "team/poison", "id": "p", "waitMs": 30000})).await;
    until("the step is a letter", async || ids(site, "").await.len() == 1).await;
    post(site, "r-1", b"{\"to\": [1, 2.50]}").await;
    post(site, "bad-2", b"\xff\0").await;
}

async fn redrive(site: &Site, key: &str, body: Value) -> Got {
    site.send(site.request(Method::POST, "/v1/letters/redrive").header("idempotency-key", key).json(&body))
        .await
}

#[tokio::test]
async fn a_message_is_shown_with_all_that_is_known_of_it() {
    let site = Site::new().await;
    let id = post(&site, "r-1", b"{\"to\": [1, 2.50]}").await;
    let letter = site.get(&format!("/v1/letters/{id}")).await.json();
    let expected = json!({"id": "route:mail/send.1", "kind": "message", "route": "mail/send", "direction": "sent", "messageKind": "tell",
        "peer": "https://10.0.0.7:7373", "request": "r-1", "tenant": "acme", "attempt": 3, "size": 17, "payload": {"to": [1, 2.50]}});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&letter[name], value, "{name}");
    }
    assert!(letter.get("workflow").is_none() && letter.get("run").is_none() && letter.get("key").is_none());
    let id = post(&site, "r-2", b"\xff\0").await;
    let letter = site.get(&format!("/v1/letters/{id}")).await.json();
    assert_eq!(letter["payload"], json!({"encoding": "bytes", "base64": "/wA="}));
}

#[tokio::test]
async fn letters_are_listed_by_what_is_asked_for() {
    let site = Site::new().await;
    three(&site).await;
    let (step, first, second) = ("team/poison.1".to_string(), "route:mail/send.1".to_string(), "route:mail/send.2".to_string());
    for (query, expected) in [
        ("", vec![&second, &first, &step]),
        ("?kind=message", vec![&second, &first]),
        ("?kind=step", vec![&step]),
        ("?kind=expiry", vec![]),
        ("?route=mail/send", vec![&second, &first]),
        ("?workflow=team/poison", vec![&step]),
        ("?workflow=other", vec![]),
        ("?keyPrefix=session", vec![]),
        ("?class=poison", vec![&step]),
        ("?code=UNAVAILABLE&tenant=acme", vec![&second, &first]),
        ("?addedBefore=2020-01-01T00:00:00Z", vec![]),
        ("?addedAfter=2020-01-01T00:00:00Z&kind=step", vec![&step]),
    ] {
        assert_eq!(ids(&site, query).await.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    for (query, says) in [
        ("kind=mesage", "did you mean message?"),
        ("class=sick", "transient, permanent, poison"),
        ("code=UNAVAILABL", "did you mean UNAVAILABLE?"),
        ("route=a%20b", "route"),
        ("workflow=a&route=b", "only one of workflow, route and key"),
        ("addedBefore=yesterday", "addedBefore"),
    ] {
        let got = site.get(&format!("/v1/letters?{query}")).await;
        assert_eq!(got.status, 400, "{query}");
        assert!(got.text.contains(says), "{query}: {}", got.text);
    }
}

#[tokio::test]
async fn a_message_that_fails_again_is_told_and_stays() {
    let site = Site::new().await;
    three(&site).await;
    let got = site.post("/v1/letters/route:mail/send.2/redrive", json!({"reason": "try"})).await;
    assert_eq!(got.problem(409), "SF0138");
    assert!(got.text.contains("the peer is still away"), "{}", got.text);
    let letter = site.get("/v1/letters/route:mail%2Fsend.2").await.json();
    assert_eq!((&letter["failure"]["message"], &letter["attempt"]), (&json!("the peer is still away"), &json!(4)));
    assert_eq!(site.post("/v1/letters/route:mail/send.1/redrive", json!({})).await.status, 204);
    assert_eq!(ids(&site, "?kind=message").await, ["route:mail/send.2"]);
    let mut feed = Reader::open(&site, "?after=0&kind=letter&types=LETTER_FAILED").await;
    let (_, change) = feed.next().await.unwrap();
    assert_eq!((&change["id"], &change["event"]["payload"]["letter"]), (&json!("route:mail/send.2"), &json!(2)));
    assert_eq!(change["event"]["failureReason"], "the peer is still away");
}

/// It is not cut off when nobody waits any more, and those behind it have their turn.
#[tokio::test]
async fn a_message_that_takes_long_is_said_to_be_on_its_way_before_its_request_is_over() {
    let site = Site::with(Config { request_time: Duration::from_secs(2), ..config() }, Parts::default()).await;
    let id = post(&site, "slow-1", b"1").await;
    let got = site.post(&format!("/v1/letters/{id}/redrive"), json!({})).await;
    assert_eq!(got.problem(409), "SF0137");
    post(&site, "r-2", b"2").await;
    let done = redrive(&site, "all", json!({"kind": "message"})).await.json();
    assert_eq!((&done["redriven"], &done["refused"], &done["reasons"][0]["code"]), (&json!(1), &json!(1), &json!("SF0137")));
    until("it is delivered by itself", async || ids(&site, "").await.is_empty()).await;
}

/// Also if the request has little time, and the message that takes long is the first one.
#[tokio::test]
async fn many_are_tried_again_within_the_time_of_a_short_request() {
    let site = Site::with(Config { request_time: Duration::from_secs(1), ..config() }, Parts::default()).await;
    post(&site, "slow-1", b"1").await;
    let done = redrive(&site, "all", json!({"kind": "message"})).await;
    assert_eq!(done.status, 200, "{}", done.text);
    let done = done.json();
    assert_eq!((&done["refused"], &done["reasons"][0]["code"]), (&json!(1), &json!("SF0137")));
    until("it is delivered by itself", async || ids(&site, "").await.is_empty()).await;
}

#[tokio::test]
async fn all_that_match_are_tried_again_and_the_answer_says_what_came_of_it() {
    let site = Site::new().await;
    three(&site).await;
    let counted = redrive(&site, "k-0", json!({"kind": "message", "dryRun": true})).await.json();
    assert_eq!((&counted["matching"], &counted["redriven"]), (&json!(2), &json!(0)));
    assert_eq!(ids(&site, "").await.len(), 3, "it was only counted");
    let first = redrive(&site, "k-1", json!({"kind": "message", "perSecond": 1000, "limit": 1, "reason": "the peer is back"}))
        .await
        .json();
    assert_eq!((&first["redriven"], &first["refused"], &first["more"]), (&json!(1), &json!(0), &json!(true)));
    let again = redrive(&site, "k-1", json!({"kind": "message", "perSecond": 1000, "limit": 1, "reason": "the peer is back"}))
        .await
        .json();
    assert_eq!(again, first, "the same request again is answered as before");
    assert_eq!(ids(&site, "?kind=message").await, ["route:mail/send.2"], "and tries nothing");
    let rest = json!({"cursor": first["nextCursor"], "addedBefore": first["addedBefore"]});
    let rest = redrive(&site, "k-1", rest).await.json();
    assert_eq!((&rest["redriven"], &rest["refused"], &rest["more"]), (&json!(0), &json!(1), &json!(false)));
    let why = &rest["reasons"][0];
    assert_eq!((&why["letter"], &why["code"]), (&json!("route:mail/send.2"), &json!("SF0138")));
    assert!(why["detail"].as_str().unwrap().contains("the peer is still away"));
    let all = redrive(&site, "k-2", json!({"workflow": "team/poison"})).await.json();
    assert_eq!(all["redriven"], 1);
    until("it has failed again", async || ids(&site, "?kind=step").await == ["team/poison.3"]).await;
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_named() {
    let site = Site::new().await;
    for (body, says) in [
        (json!({"perSecond": 0}), "perSecond"),
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 100_001}), "limit"),
        (json!({"kind": "mesage"}), "did you mean message?"),
        (json!({"cursor": "x"}), "cursor"),
        (json!({"kinds": "step"}), "kinds"),
    ] {
        let got = site.post("/v1/letters/redrive", body.clone()).await;
        assert_eq!(got.problem(400), "SF0501", "{body}");
        assert!(got.text.contains(says), "{body}: {}", got.text);
    }
}
