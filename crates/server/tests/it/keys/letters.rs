//! Ends that nobody will tell by itself: looked at, tried again, thrown away.

use super::callbacks::{at_it_again, much_later, put, site};
use super::receiver::{Heard, Receiver, at_once, status};
use crate::feed::{Reader, types};
use crate::support::{Site, until};
use axum::body::Body;
use axum::response::Response;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use steadfast_kernel::Policy;
use steadfast_runtime::Callbacks;

async fn letters(site: &Site) -> Vec<Value> {
    site.get("/v1/letters").await.json()["items"].as_array().unwrap().clone()
}

async fn a_letter(site: &Site) -> Value {
    until("it is a dead letter", async || !letters(site).await.is_empty()).await;
    letters(site).await.remove(0)
}

#[tokio::test]
async fn what_will_not_pass_is_a_letter_at_once_and_is_told_when_it_is_redriven() {
    let answer = Arc::new(AtomicU16::new(404));
    let answers = Arc::clone(&answer);
    let receiver = Receiver::new(at_once(move |_| status(answers.load(Ordering::Relaxed)))).await;
    let site = site(at_it_again()).await;
    let mut reader = Reader::open(&site, "?prefix=session:").await;
    let revision = put(&site, "session:4/2", &receiver.url("/gone?token=of-the-query")).await;
    let letter = a_letter(&site).await;
    assert_eq!((&letter["kind"], &letter["key"], &letter["revision"]), (&json!("expiry"), &json!("session:4/2"), &json!(revision)));
    let id = letter["id"].as_str().unwrap();
    assert!(id.starts_with("key:session:4/2."), "{id}");
    assert!(letter.get("workflow").is_none() && letter.get("run").is_none() && letter.get("step").is_none(), "{letter}");
    assert_eq!(letter["failure"]["message"], format!("http://{} answered 404", receiver.addr));
    assert_eq!((&letter["failure"]["class"], receiver.heard().len()), (&json!("permanent"), 1));
    assert_eq!(site.get("/v1/callbacks").await.json()["items"], json!([]));
    for path in [format!("/v1/letters/{id}"), format!("/v1/letters/{}", id.replace('/', "%2F").replace(':', "%3A"))] {
        let shown = site.get(&path).await.json();
        assert_eq!((&shown["payload"], &shown["attempt"]), (&json!({"secret": "of-the-value"}), &json!(1)));
    }
    let events = reader.until("LETTER_ADDED").await;
    assert_eq!(types(&events), ["KEY_PUT", "KEY_EXPIRED", "LETTER_ADDED"]);
    assert_eq!((&events[2].1["kind"], &events[2].1["id"]), (&json!("letter"), &json!(id)));
    answer.store(200, Ordering::Relaxed);
    let redrive = || site.request(Method::POST, &format!("/v1/letters/{id}/redrive")).header("idempotency-key", "r-1");
    let because = json!({"reason": "the address is there now"});
    assert_eq!(site.send(redrive().json(&because)).await.status, 204);
    let events = reader.until("CALLBACK_SETTLED").await;
    assert_eq!(types(&events), ["LETTER_REDRIVEN", "CALLBACK_SETTLED"]);
    assert_eq!((&events[0].1["kind"], &events[0].1["id"]), (&json!("letter"), &json!(id)));
    assert_eq!(events[0].1["event"]["payload"]["reason"], "the address is there now");
    assert_eq!(site.send(redrive().json(&because)).await.status, 204, "the same again is one");
    let keys: Vec<String> = receiver.heard().iter().map(Heard::key).collect();
    assert_eq!(keys, [format!("session:4/2/{revision}"), format!("session:4/2/{revision}")]);
    assert_eq!(letters(&site).await, Vec::<Value>::new());
    assert_eq!(site.get(&format!("/v1/letters/{id}")).await.problem(404), "SF0115");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let answers = |_: &Heard| Response::builder().status(307).header("location", "/elsewhere").body(Body::empty()).unwrap();
    let receiver = Receiver::new(at_once(answers)).await;
    let site = site(at_it_again()).await;
    put(&site, "k", &receiver.url("/")).await;
    let letter = a_letter(&site).await;
    let message = letter["failure"]["message"].as_str().unwrap();
    assert!(message.contains("answered 307; redirects are not followed"), "{message}");
    let paths: Vec<String> = receiver.heard().into_iter().map(|heard| heard.path).collect();
    assert_eq!(paths, ["/"]);
}

#[tokio::test]
async fn attempts_that_are_used_up_make_a_letter_that_can_be_dropped() {
    let receiver = Receiver::new(at_once(|_| status(500))).await;
    let policy = Policy::constant(Duration::from_millis(1)).max_attempts(3);
    let site = site(Callbacks { policy, ..much_later() }).await;
    put(&site, "k", &receiver.url("/")).await;
    let letter = a_letter(&site).await;
    assert_eq!((&letter["failure"]["attempts"], &letter["failure"]["maxAttempts"]), (&json!(3), &json!(3)));
    let attempts: Vec<u64> = receiver.heard().iter().map(Heard::attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    let path = format!("/v1/letters/{}", letter["id"].as_str().unwrap());
    let mut reader = Reader::open(&site, "?kind=letter").await;
    assert_eq!(site.send(site.request(Method::DELETE, &format!("{path}?reason=nobody+cares"))).await.status, 204);
    let dropped = reader.next().await.unwrap().1;
    assert_eq!((&dropped["id"], &dropped["event"]["eventType"]), (&letter["id"], &json!("LETTER_DROPPED")));
    assert_eq!(letters(&site).await, Vec::<Value>::new());
    assert_eq!(site.send(site.request(Method::DELETE, &path)).await.problem(404), "SF0115");
    assert_eq!(site.post(&format!("{path}/redrive"), json!({})).await.problem(404), "SF0115");
}

#[tokio::test]
async fn letters_of_steps_and_of_keys_are_in_one_list() {
    let receiver = Receiver::new(at_once(|_| status(410))).await;
    let site = site(at_it_again()).await;
    site.run(json!({"workflow": "team/poison", "id": "mail"})).await;
    until("the step is a letter", async || letters(&site).await.len() == 1).await;
    put(&site, "k", &receiver.url("/")).await;
    until("the expiry is one, too", async || letters(&site).await.len() == 2).await;
    let all = letters(&site).await;
    let kinds: Vec<&str> = all.iter().map(|letter| letter["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["expiry", "step"], "newest first");
    assert_eq!((&all[1]["workflow"], &all[1]["run"], &all[1]["step"]), (&json!("team/poison"), &json!("mail"), &json!("read")));
    let first = site.get("/v1/letters?limit=1").await.json();
    let second = site
        .get(&format!("/v1/letters?limit=1&cursor={}", first["nextCursor"].as_str().unwrap()))
        .await
        .json();
    assert_eq!((&first["items"][0], &second["items"][0]), (&all[0], &all[1]), "pages go on after a key's letter");
}
