//! Those who are told over HTTP, and what happens where they are not well. What is sick never answers by itself here, so nothing depends on how fast the machine is.

use super::receiver::{Answers, Heard, Receiver, at_once, status};
use crate::feed::{Reader, types};
use crate::support::{Site, config, until};
use axum::body::Body;
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Class, KeyName, Payload, Policy, Timestamp};
use steadfast_runtime::{Call, Callbacks, Caller};
use steadfast_server::{CallerSettings, HttpCaller, Parts};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Tries again at once, for as long as it takes.
pub(super) fn at_it_again() -> Callbacks {
    let policy = Policy::constant(Duration::from_millis(1)).max_attempts(1_000_000);
    Callbacks { policy, attempt_timeout: Duration::from_secs(3600), in_flight_max: 64 }
}

/// Tries again when the test is long over.
pub(super) fn much_later() -> Callbacks {
    Callbacks { policy: Policy::constant(Duration::from_secs(3600)).max_attempts(5), ..at_it_again() }
}

pub(super) async fn site(callbacks: Callbacks) -> Site {
    Site::calling(config(), Parts::default(), callbacks, CallerSettings::default()).await
}

/// Puts a key that is over at once.
pub(super) async fn put(site: &Site, key: &str, url: &str) -> u64 {
    let got = site
        .put(key, json!({"value": {"secret": "of-the-value"}, "ttlMs": 1, "onExpire": {"url": url}}))
        .await;
    assert_eq!(got.status, 200, "{}", got.text);
    got.json()["revision"].as_u64().unwrap()
}

async fn callbacks(site: &Site) -> Vec<Value> {
    site.get("/v1/callbacks").await.json()["items"].as_array().unwrap().clone()
}

/// Hears of expiries that were told.
async fn settled(site: &Site) -> Reader {
    Reader::open(site, "?types=CALLBACK_SETTLED").await
}

/// Waits until so many more were told.
async fn told(reader: &mut Reader, number: usize) {
    for _ in 0..number {
        reader.next().await.expect("another one");
    }
}

#[tokio::test]
async fn an_expiry_is_told_as_it_is_promised() {
    let receiver = Receiver::new(at_once(|_| status(204))).await;
    let site = site(Callbacks::default()).await;
    let mut reader = Reader::open(&site, "?prefix=session:").await;
    let body = format!(
        r#"{{"value":{{"b":1.10,"a":12345678901234567890123}},"ttlMs":1,"owner":"web","onExpire":{{"url":"{}"}}}}"#,
        receiver.url("/gone?token=t")
    );
    let request = site
        .request(reqwest::Method::PUT, "/v1/keys/session:42/cart")
        .header("content-type", "application/json");
    let revision = site.send(request.body(body)).await.json()["revision"].as_u64().unwrap();
    let events = reader.until("CALLBACK_SETTLED").await;
    assert_eq!(types(&events), ["KEY_PUT", "KEY_EXPIRED", "CALLBACK_SETTLED"]);
    let heard = receiver.heard();
    assert_eq!(heard.len(), 1);
    let Heard { method, path, headers, text, .. } = &heard[0];
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/gone?token=t"));
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["idempotency-key"], format!("session:42/cart/{revision}").as_str());
    assert!(headers["user-agent"].to_str().unwrap().starts_with("steadfast/"));
    let expired_at = events[1].1["event"]["payload"]["endedAt"].as_str().unwrap();
    let promised = format!(
        r#"{{"key":"session:42/cart","value":{{"b":1.10,"a":12345678901234567890123}},"owner":"web","revision":{revision},"expiredAt":"{expired_at}","attempt":1}}"#
    );
    assert_eq!(text, &promised);
    assert_eq!(callbacks(&site).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_failed_attempt_can_be_seen_and_says_nothing_that_is_secret() {
    let answers = |_: &Heard| Response::builder().status(503).body(Body::from("of-the-answer")).unwrap();
    let receiver = Receiver::new(at_once(answers)).await;
    let site = site(much_later()).await;
    let mut reader = Reader::open(&site, "?types=CALLBACK_FAILED").await;
    let revision = put(&site, "k", &receiver.url("/of-the-path?token=of-the-query")).await;
    let event = reader.next().await.unwrap().1["event"].clone();
    let seen = callbacks(&site).await;
    assert_eq!(seen.len(), 1);
    let seen = &seen[0];
    assert_eq!((&seen["key"], &seen["revision"]), (&json!("k"), &json!(revision)));
    assert_eq!((&seen["attempt"], &seen["of"], &seen["target"]), (&json!(2), &json!(5), &json!(receiver.url("/of-the-path"))));
    assert_eq!(seen["nextAttemptAt"], event["payload"]["dueAt"]);
    assert_eq!((&event["attemptNumber"], &event["payload"]["of"]), (&json!(1), &json!(5)));
    assert!(event["backoffDelayMs"].as_u64().unwrap() >= 3_600_000);
    assert_eq!(seen["failure"]["message"], format!("http://{} answered 503", receiver.addr));
    assert_eq!((&seen["failure"]["class"], &seen["failure"]["code"]), (&json!("transient"), &json!("UNAVAILABLE")));
    let said = format!("{}{}", seen["failure"], event);
    for secret in ["of-the-answer", "of-the-query", "of-the-value", "of-the-path"] {
        assert!(!said.contains(secret), "{said}");
    }
    assert_eq!(site.get("/v1/callbacks?prefix=other").await.json()["items"], json!([]));
    assert_eq!(site.get("/v1/callbacks?prefix=k").await.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn ends_that_are_still_to_be_told_are_listed_page_by_page_oldest_first() {
    let receiver = Receiver::new(at_once(|_| status(500))).await;
    let site = site(much_later()).await;
    let mut reader = Reader::open(&site, "?types=CALLBACK_FAILED").await;
    for number in (0..5).rev() {
        put(&site, &format!("k:{number}"), &receiver.url("/")).await;
        reader.next().await;
    }
    let (mut seen, mut next) = (Vec::new(), String::new());
    loop {
        let page = site.get(&format!("/v1/callbacks?limit=2&cursor={next}")).await.json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap().to_string()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        next = cursor.into();
    }
    assert_eq!(seen, ["k:4", "k:3", "k:2", "k:1", "k:0"]);
}

#[tokio::test]
async fn each_expiry_is_seen_once_by_its_key_though_attempts_repeat() {
    let fails_a_while = |heard: &Heard| status(if heard.attempt() <= heard.json()["revision"].as_u64().unwrap() % 4 { 500 } else { 200 });
    let receiver = Receiver::new(at_once(fails_a_while)).await;
    let site = site(at_it_again()).await;
    let (mut settled, mut expected) = (settled(&site).await, BTreeMap::new());
    for number in 0..40 {
        let key = format!("k:{}", number % 10); // the same name again is another expiry
        let revision = put(&site, &key, &receiver.url("/")).await;
        until("it is over", async || site.get(&format!("/v1/keys/{key}")).await.status == 404).await;
        expected.insert(format!("{key}/{revision}"), 1 + revision % 4);
    }
    told(&mut settled, 40).await;
    let mut attempts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for heard in receiver.heard() {
        attempts.entry(heard.key()).or_default().push(heard.attempt());
    }
    let expected: BTreeMap<String, Vec<u64>> = expected.into_iter().map(|(key, last)| (key, (1..=last).collect())).collect();
    assert_eq!(attempts, expected);
}

#[tokio::test]
async fn one_that_hangs_is_given_up_and_asked_again_and_its_late_answer_is_nothing() {
    let (late, asked_again) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (answer_late, again) = (Arc::clone(&late), Arc::clone(&asked_again));
    let answers: Answers = Arc::new(move |heard| {
        let (late, again) = (Arc::clone(&answer_late), Arc::clone(&again));
        Box::pin(async move {
            if heard.attempt() == 1 {
                late.notified().await;
                return status(200);
            }
            again.notify_one();
            status(200)
        })
    });
    let receiver = Receiver::new(answers).await;
    let site = site(Callbacks { attempt_timeout: Duration::from_millis(50), ..at_it_again() }).await;
    let mut reader = Reader::open(&site, "?prefix=k").await;
    put(&site, "k", &receiver.url("/")).await;
    asked_again.notified().await;
    late.notify_one();
    let events = reader.until("CALLBACK_SETTLED").await;
    assert_eq!(types(&events)[..3], ["KEY_PUT", "KEY_EXPIRED", "CALLBACK_FAILED"]);
    assert_eq!(events[2].1["event"]["payload"]["failure"]["code"], "DEADLINE_EXCEEDED");
    assert!(events.last().unwrap().1["event"]["attemptNumber"].as_u64() >= Some(2), "the late one does not count");
    let keys: BTreeSet<String> = receiver.heard().iter().map(Heard::key).collect();
    assert_eq!(keys.len(), 1, "it can tell that it is the same");
    assert_eq!(callbacks(&site).await, Vec::<Value>::new());
}

#[tokio::test]
async fn one_that_is_down_for_a_while_is_told_when_it_is_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let site = site(at_it_again()).await;
    let (mut reader, mut settled) = (Reader::open(&site, "?types=CALLBACK_FAILED").await, settled(&site).await);
    put(&site, "k", &format!("http://{addr}/gone")).await;
    let failed = reader.next().await.unwrap().1["event"]["payload"]["failure"].clone();
    assert_eq!((&failed["class"], &failed["message"]), (&json!("transient"), &json!(format!("http://{addr} cannot be reached"))));
    reader.next().await.unwrap();
    let receiver = Receiver::at(TcpListener::bind(addr).await.unwrap(), at_once(|_| status(200)));
    told(&mut settled, 1).await;
    assert_eq!(receiver.heard().len(), 1);
}

#[tokio::test]
async fn one_that_breaks_off_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let site = site(at_it_again()).await;
    let (mut reader, mut settled) = (Reader::open(&site, "?types=CALLBACK_FAILED").await, settled(&site).await);
    put(&site, "k", &format!("http://{addr}/gone?token=of-the-query")).await;
    drop(listener.accept().await.unwrap());
    let failed = reader.next().await.unwrap().1["event"]["payload"]["failure"].clone();
    assert_eq!((&failed["class"], &failed["message"]), (&json!("transient"), &json!(format!("http://{addr} broke off"))));
    assert!(!failed.to_string().contains("of-the-query"), "{failed}");
    let receiver = Receiver::at(listener, at_once(|_| status(200)));
    told(&mut settled, 1).await;
    assert_eq!(receiver.heard().len(), 1);
}

#[tokio::test]
async fn one_that_asks_for_a_pause_gets_it() {
    const DATE: &str = "Wed, 21 Oct 2026 07:28:00 GMT";
    let answers = |heard: &Heard| {
        let after = if heard.path == "/seconds" { "7200" } else { "Wed, 21 Oct 2026 09:28:00 GMT" };
        Response::builder()
            .status(429)
            .header("retry-after", after)
            .header("date", DATE)
            .body(Body::empty())
            .unwrap()
    };
    let receiver = Receiver::new(at_once(answers)).await;
    let policy = at_it_again().policy.max_delay(Duration::from_secs(9000));
    let site = site(Callbacks { policy, ..at_it_again() }).await;
    for path in ["/seconds", "/date"] {
        let mut reader = Reader::open(&site, "?types=CALLBACK_FAILED").await;
        put(&site, "k", &receiver.url(path)).await;
        let event = reader.next().await.unwrap().1["event"].clone();
        assert_eq!(event["payload"]["failure"]["retryAfterMs"], 7_200_000, "{path}");
        assert!(event["backoffDelayMs"].as_u64().unwrap() >= 7_200_000, "{event}");
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_an_answer() {
    let endless = |_: &Heard| {
        let body = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(1000)));
        Response::builder().status(200).body(Body::from_stream(body)).unwrap()
    };
    let receiver = Receiver::new(at_once(endless)).await;
    let site = site(at_it_again()).await;
    let mut settled = settled(&site).await;
    put(&site, "k", &receiver.url("/")).await;
    told(&mut settled, 1).await;
    assert_eq!(receiver.heard().len(), 1);
}

#[tokio::test]
async fn a_sick_target_does_not_keep_others_waiting() {
    let never: Answers = Arc::new(|_| Box::pin(std::future::pending()));
    let (sick, well) = (Receiver::new(never).await, Receiver::new(at_once(|_| status(200))).await);
    let site = site(Callbacks { in_flight_max: 2, ..at_it_again() }).await;
    for number in 0..20 {
        put(&site, &format!("sick:{number}"), &sick.url(&format!("/{number}"))).await;
    }
    until("as many hang as may", async || sick.heard().len() == 2).await;
    for number in 0..20 {
        put(&site, &format!("well:{number}"), &well.url("/")).await;
    }
    until("the others are told", async || {
        let told: BTreeSet<String> = well.heard().iter().map(Heard::key).collect();
        told.len() == 20
    })
    .await;
    assert_eq!(sick.heard().len(), 2, "no more than may are asked of one target, whatever the path");
    assert_eq!(site.get("/v1/callbacks?prefix=sick:").await.json()["items"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn connections_are_used_again() {
    let receiver = Receiver::new(at_once(|_| Response::new(Body::from("thanks")))).await;
    let site = site(at_it_again()).await;
    let mut settled = settled(&site).await;
    for number in 0..20 {
        put(&site, &format!("k:{number}"), &receiver.url("/")).await;
        told(&mut settled, 1).await;
    }
    let connections: BTreeSet<_> = receiver.heard().iter().map(|heard| heard.from).collect();
    assert!(connections.len() < receiver.heard().len(), "{connections:?}");
}

#[tokio::test]
async fn who_may_be_called_is_asked_again_at_the_call() {
    let receiver = Receiver::new(at_once(|_| status(200))).await;
    let caller = HttpCaller::new(CallerSettings { hosts: vec!["example.com".into()], user_agent: None }).unwrap();
    let call = Call {
        key: KeyName::new("k").unwrap(),
        revision: 1,
        value: Payload::json("1"),
        owner: None,
        expired_at: Timestamp::EPOCH,
        attempt: 1,
    };
    let failure = caller.call(&receiver.url("/?token=t"), call).await.unwrap_err();
    assert_eq!(failure.class, Class::Permanent);
    assert!(failure.message.contains("callbacks.hosts") && !failure.message.contains("token"), "{failure:?}");
    assert_eq!(receiver.heard().len(), 0);
    assert_eq!(caller.target("https://Example.com:443/a?b"), caller.target("https://example.com/c"));
    assert_ne!(caller.target("https://example.com/"), caller.target("http://example.com/"));
    assert_ne!(caller.target("http://example.com:81/"), caller.target("http://example.com/"));
    assert!(HttpCaller::new(CallerSettings { hosts: vec!["http://a".into()], user_agent: None }).is_err());
    assert!(HttpCaller::new(CallerSettings { hosts: Vec::new(), user_agent: Some("a\nb".into()) }).is_err());
}

#[tokio::test]
async fn the_age_of_the_oldest_is_measured_when_it_is_asked_for() {
    let metrics = steadfast_server::install_metrics().unwrap();
    let parts = Parts { metrics: Some(metrics), ..Parts::default() };
    let receiver = Receiver::new(at_once(|heard| status(if heard.attempt() == 1 { 500 } else { 200 }))).await;
    let site = Site::calling(config(), parts, much_later(), CallerSettings::default()).await;
    let oldest = async || {
        let text = site.get("/metrics").await.text;
        let line = text.lines().find(|line| line.starts_with("steadfast_callbacks_oldest_pending_seconds "));
        line.unwrap_or_else(|| panic!("not in {text}")).rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(oldest().await, 0.0);
    put(&site, "k", &receiver.url("/")).await;
    until("it was tried", async || !callbacks(&site).await.is_empty()).await;
    let first = oldest().await;
    assert!(first > 0.0);
    assert!(oldest().await > first, "it grows while nothing happens");
}
