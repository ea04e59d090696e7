//! Keys in the change feed.

use crate::feed::{Reader, types};
use crate::support::Site;
use serde_json::json;

#[tokio::test]
async fn keys_are_followed_by_what_their_names_begin_with() {
    let site = Site::new().await;
    let mut reader = Reader::open(&site, "?kind=key&prefix=session:").await;
    let mut one = Reader::open(&site, "?kind=key&id=session:2").await;
    let hour = 3_600_000;
    site.put("other:1", json!({"value": 1, "ttlMs": hour})).await;
    let put = site.put("session:1", json!({"value": {"user": 7}, "ttlMs": hour, "owner": "web"})).await.json();
    site.run(json!({"workflow": "echo", "id": "session", "waitMs": 30000})).await;
    site.post("/v1/keys/session:1/renew", json!({"ttlMs": 2 * hour, "owner": "web"})).await;
    site.put("session:2", json!({"value": 2, "ttlMs": 1})).await;
    let events = reader.until("KEY_EXPIRED").await;
    assert_eq!(types(&events), ["KEY_PUT", "KEY_RENEWED", "KEY_PUT", "KEY_EXPIRED"]);
    let first = &events[0].1;
    assert_eq!((&first["kind"], &first["id"], &first["event"]["workflowId"]), (&json!("key"), &json!("session:1"), &json!("session:1")));
    let payload = &first["event"]["payload"];
    assert_eq!((&payload["value"], &payload["owner"], &payload["ttlMs"]), (&json!({"user": 7}), &json!("web"), &json!(hour)));
    assert_eq!((&payload["revision"], &payload["expiresAt"]), (&put["revision"], &put["expiresAt"]));
    assert_eq!(events[3].1["id"], "session:2");
    assert_eq!(types(&one.until("KEY_EXPIRED").await), ["KEY_PUT", "KEY_EXPIRED"]);
    let mut again = Reader::open(&site, &format!("?prefix=session:&after={}", events[1].0)).await;
    assert_eq!(again.next().await.unwrap(), events[2], "it goes on where it was left");
}

#[tokio::test]
async fn what_cannot_be_followed_is_said() {
    let site = Site::new().await;
    for (query, code) in
        [("?prefix=a%20b", "SF0101"), ("?kind=key&id=a%20b", "SF0101"), ("?kind=letter&id=key:", "SF0501"), ("?types=KEY_PUTT", "SF0501")]
    {
        assert_eq!(site.get(&format!("/v1/events{query}")).await.problem(400), code, "{query}");
    }
}

#[tokio::test]
async fn a_handler_and_a_run_are_told_too() {
    let site = Site::new().await;
    let mut reader = Reader::open(&site, "?prefix=k").await;
    let put = site
        .put("k:1", json!({"value": 1, "ttlMs": 1, "onExpire": {"startRun": {"workflow": "echo", "input": {"n": 1.10}}}}))
        .await;
    let events = reader.until("CALLBACK_SETTLED").await;
    assert_eq!(types(&events), ["KEY_PUT", "KEY_EXPIRED", "CALLBACK_SETTLED"]);
    assert_eq!(events[0].1["event"]["payload"]["onExpire"], json!({"startRun": {"workflow": "echo", "input": {"n": 1.10}}}));
    assert_eq!(events[2].1["event"]["payload"]["revision"], put.json()["revision"]);
    let run = events[2].1["event"]["payload"]["run"].as_str().unwrap();
    assert_eq!(site.until(run, "COMPLETED").await["result"], json!({"n": 1.10}));
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |expired: steadfast_runtime::Expired| -> futures_util::future::BoxFuture<'static, _> {
        told.send(expired.idempotency_key()).unwrap();
        Box::pin(async { Ok(()) })
    };
    site.engine.on_expire("k:2", std::sync::Arc::new(handler)).unwrap();
    let put = site.put("k:2", json!({"value": 1, "ttlMs": 1, "onExpire": {"handler": true}})).await.json();
    assert_eq!(hears.recv().await.unwrap(), format!("k:2/{}", put["revision"]));
}
