//! Locks are listed and broken.

use super::How;
use crate::feed::Reader;
use crate::support::{Got, Site};
use reqwest::Method;
use serde_json::{Value, json};

/// A site on which these tenants are locked by tasks that have failed.
async fn locked(tenants: &[&str]) -> Site {
    let site = Site::new().await;
    tenants.iter().for_each(|tenant| site.world.script(&format!("{tenant}/drain"), &[How::Fails]));
    site.switch("p", tenants).await;
    site.plan_is("p", "FAILED").await;
    site
}

async fn delete(site: &Site, path: &str) -> Got {
    site.send(site.request(Method::DELETE, path)).await
}

#[tokio::test]
async fn locks_are_listed_by_tenant_in_pages() {
    let site = locked(&["c", "a/x", "b", "a"]).await;
    let all = site.get("/v1/locks").await.json();
    let tenants = |page: &Value| {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|lock| lock["tenantId"].as_str().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!((tenants(&all), &all["nextCursor"]), (vec!["a".into(), "a/x".into(), "b".into(), "c".into()], &Value::Null));
    let lock = &all["items"][1];
    assert_eq!((&lock["holder"], &lock["planId"], &lock["taskId"]), (&json!("p:p/a/x"), &json!("p"), &json!("p/a/x")));
    assert_eq!((&lock["fence"], &lock["leaseMs"], &lock["waiting"]), (&json!(1), &json!(9_000_000), &json!(0)));
    assert!(lock["since"].as_str() < lock["expiresAt"].as_str(), "{lock}");
    let first = site.get("/v1/locks?limit=3").await.json();
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest = site.get(&format!("/v1/locks?limit=3&cursor={cursor}")).await.json();
    assert_eq!((tenants(&first).len(), tenants(&rest), &rest["nextCursor"]), (3, vec!["c".to_string()], &Value::Null));
    for query in ["limit=0", "limit=1001", "cursor=abc", "tenant=a"] {
        assert_eq!(site.get(&format!("/v1/locks?{query}")).await.problem(400), "SF0501", "{query}");
    }
}

#[tokio::test]
async fn a_lock_is_broken_for_a_reason() {
    let site = locked(&["a", "b/c"]).await;
    for path in ["/v1/locks/a", "/v1/locks/a?reason=", "/v1/locks/a?reason=%20"] {
        let got = delete(&site, path).await;
        assert_eq!(got.problem(400), "SF0501", "{path}");
        assert!(got.text.contains("for a reason"), "{}", got.text);
    }
    let body = |path: &str, body: Value| site.request(Method::DELETE, path).json(&body);
    assert_eq!(site.send(body("/v1/locks/a", json!({"reason": ""}))).await.problem(400), "SF0501");
    assert_eq!(site.send(body("/v1/locks/a", json!({"why": "x"}))).await.problem(400), "SF0501");
    assert_eq!(site.send(body("/v1/locks/a?reason=x", json!({"reason": "y"}))).await.problem(400), "SF0501");
    assert_eq!(delete(&site, "/v1/locks/a?why=x").await.problem(400), "SF0501");
    assert_eq!(delete(&site, "/v1/locks/a%20b?reason=x").await.problem(400), "SF0101");
    assert_eq!(site.get("/v1/locks").await.json()["items"].as_array().unwrap().len(), 2, "none of them broke anything");

    assert_eq!(delete(&site, "/v1/locks/a?reason=the+box+is+gone").await.status, 204);
    assert_eq!(site.send(body("/v1/locks/b/c", json!({"reason": "so is this"}))).await.status, 204);
    site.lock_is("a", None).await;
    site.lock_is("b/c", None).await;
    let mut reader = Reader::open(&site, "?after=0&types=LOCK_BROKEN").await;
    let (_, first) = reader.next().await.unwrap();
    assert_eq!((&first["kind"], &first["id"]), (&json!("lock"), &json!("a")));
    let payload = &first["event"]["payload"];
    assert_eq!((&payload["by"], &payload["reason"], &payload["fence"]), (&json!("api"), &json!("the box is gone"), &json!(1)));
    assert_eq!(reader.next().await.unwrap().1["event"]["payload"]["reason"], "so is this");
    assert_eq!(delete(&site, "/v1/locks/a?reason=again").await.problem(404), "SF0127");
    assert_eq!(delete(&site, "/v1/locks/nobody?reason=x").await.problem(404), "SF0127");
    assert_eq!(site.get("/v1/tenants/a/task").await.json()["lock"], Value::Null);
    let plan = site.post("/v1/plans", json!({"definition": "switch", "id": "next", "tenants": ["a"]})).await;
    assert_eq!(plan.status, 201, "others may have it");
}

#[tokio::test]
async fn a_break_that_is_sent_again_is_one() {
    let site = locked(&["a"]).await;
    let again = || site.request(Method::DELETE, "/v1/locks/a?reason=x").header("idempotency-key", "k1");
    assert_eq!(site.send(again()).await.status, 204);
    site.world.script("a/drain", &[How::Hangs]);
    site.switch("next", &["a"]).await;
    site.lock_is("a", Some("next:next/a")).await;
    assert_eq!(site.send(again()).await.status, 204);
    site.lock_is("a", Some("next:next/a")).await;
    assert_eq!(site.get("/v1/tenants/a/task").await.json()["status"], "RUNNING", "who has it now is left alone");
    assert_eq!(delete(&site, "/v1/locks/a?reason=y").await.status, 204);
    assert_eq!(site.task_is("a", "INTERRUPTED").await["lock"], Value::Null);
}
