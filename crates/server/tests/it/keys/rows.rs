//! Every row of the API of keys, and what it answers where it cannot.

use crate::support::{Site, config};
use reqwest::Method;
use serde_json::{Value, json};
use steadfast_runtime::Callbacks;
use steadfast_server::{CallerSettings, Config, Parts};

const HOUR: u64 = 3_600_000;

async fn delete(site: &Site, path: &str) -> crate::support::Got {
    site.send(site.request(Method::DELETE, path)).await
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_key_is_put_seen_renewed_and_deleted() {
    let site = Site::new().await;
    let body = r#"{"value":{"b":1.10,"a":12345678901234567890123},"ttlMs":3600000,"owner":"web-1","onExpire":{"url":"https://example.com/gone?t=1"}}"#;
    let request = site.request(Method::PUT, "/v1/keys/session:42").header("content-type", "application/json");
    let put = site.send(request.body(body)).await;
    assert_eq!(put.status, 200, "{}", put.text);
    let put = put.json();
    assert_eq!(put["key"], "session:42");
    let seen = site.get("/v1/keys/session:42").await;
    assert!(seen.text.contains(r#""value":{"b":1.10,"a":12345678901234567890123}"#), "to the letter: {}", seen.text);
    let key = seen.json();
    assert_eq!((&key["revision"], &key["expiresAt"]), (&put["revision"], &put["expiresAt"]));
    assert_eq!((&key["ttlMs"], &key["owner"], &key["directory"]), (&json!(HOUR), &json!("web-1"), &json!(false)));
    assert_eq!(key["onExpire"], json!({"url": "https://example.com/gone?t=1"}));
    let renewed = site.post("/v1/keys/session:42/renew", json!({"ttlMs": 2 * HOUR, "owner": "web-1"})).await.json();
    assert!(renewed["revision"].as_u64() > put["revision"].as_u64());
    assert!(renewed["expiresAt"].as_str() > put["expiresAt"].as_str());
    let again = site.get("/v1/keys/session:42").await.json();
    assert_eq!((&again["ttlMs"], &again["putAt"], &again["value"]), (&json!(2 * HOUR), &key["putAt"], &key["value"]));
    let gone = delete(&site, "/v1/keys/session:42?owner=web-1").await;
    assert_eq!((gone.status.as_u16(), gone.json()), (200, json!({"key": "session:42", "revision": renewed["revision"]})));
    assert_eq!(site.get("/v1/keys/session:42").await.problem(404), "SF0117");
    let new = site.put("session:42", json!({"value": 1, "ttlMs": HOUR})).await.json();
    assert!(new["revision"].as_u64() > renewed["revision"].as_u64(), "revisions do not begin anew");
}

#[tokio::test]
async fn names_may_have_slashes_and_colons_written_either_way() {
    let site = Site::new().await;
    for (put, get) in [("a:b/c", "a:b%2Fc"), ("a%3Ab%2Fd", "a:b/d"), ("x%2Frenew", "x%2Frenew"), ("renew", "renew")] {
        assert_eq!(site.put(put, json!({"value": put, "ttlMs": HOUR})).await.status, 200, "{put}");
        assert_eq!(site.get(&format!("/v1/keys/{get}")).await.json()["value"], put);
    }
    assert_eq!(names(&site.get("/v1/keys").await.json()), ["a:b/c", "a:b/d", "renew", "x/renew"]);
    for path in ["/v1/keys/a:b/c/renew", "/v1/keys/a:b%2Fc/renew", "/v1/keys/x%2Frenew/renew", "/v1/keys/renew/renew"] {
        assert_eq!(site.post(path, json!({"ttlMs": 1000 * HOUR})).await.status, 200, "{path}");
    }
    assert_eq!(site.send(site.request(Method::PUT, "/v1/keys/x/renew").json(&json!({}))).await.problem(405), "SF0505");
    for wrong in ["a%20b", "a//b", "a/..%2Fb", "/a", "a/", "caf%C3%A9", "a%23b", &"x".repeat(129)] {
        let path = format!("/v1/keys/{wrong}");
        assert_eq!(site.get(&path).await.problem(400), "SF0101", "{wrong}");
        assert_eq!(site.put(wrong, json!({"value": 1, "ttlMs": HOUR})).await.problem(400), "SF0101", "{wrong}");
        assert_eq!(delete(&site, &path).await.problem(400), "SF0101", "{wrong}");
    }
    assert_eq!(site.get("/v1/keys/a%FF").await.problem(400), "SF0501");
}

#[tokio::test]
async fn a_key_of_somebody_else_is_left_alone() {
    let site = Site::new().await;
    let put = site.put("k", json!({"value": 1, "ttlMs": HOUR, "owner": "mine"})).await.json();
    for owner in [Value::Null, json!("theirs")] {
        assert_eq!(site.put("k", json!({"value": 2, "ttlMs": HOUR, "owner": owner})).await.problem(403), "SF0118");
        assert_eq!(site.post("/v1/keys/k/renew", json!({"ttlMs": HOUR, "owner": owner})).await.problem(403), "SF0118");
    }
    for path in ["/v1/keys/k", "/v1/keys/k?owner=theirs", "/v1/keys/k?owner="] {
        assert_eq!(delete(&site, path).await.problem(403), "SF0118", "{path}");
    }
    assert_eq!(site.get("/v1/keys/k").await.json()["revision"], put["revision"], "nothing has changed");
    assert_eq!(site.put("k", json!({"value": 2, "ttlMs": HOUR, "owner": "mine"})).await.status, 200);
}

#[tokio::test]
async fn a_change_can_ask_for_a_revision() {
    let site = Site::new().await;
    let absent = |value: u64| json!({"value": value, "ttlMs": HOUR, "ifRevision": 0});
    let first = site.put("k", absent(1)).await.json()["revision"].clone();
    assert_eq!(site.put("k", absent(2)).await.problem(409), "SF0119", "only one of two is first");
    let second = site.put("k", json!({"value": 2, "ttlMs": HOUR, "ifRevision": first})).await.json()["revision"].clone();
    let stale = site.post("/v1/keys/k/renew", json!({"ttlMs": HOUR, "ifRevision": first})).await;
    assert_eq!(stale.problem(409), "SF0119");
    assert!(stale.json()["detail"].as_str().unwrap().contains(&format!("revision {second}")), "{}", stale.text);
    assert_eq!(delete(&site, &format!("/v1/keys/k?ifRevision={first}")).await.problem(409), "SF0119");
    assert_eq!(delete(&site, &format!("/v1/keys/k?ifRevision={second}")).await.status, 200);
    assert_eq!(site.put("k", json!({"value": 2, "ttlMs": HOUR, "ifRevision": second})).await.problem(409), "SF0119");
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said() {
    let caller = CallerSettings { hosts: vec!["*.example.com".into()], user_agent: None };
    let site = Site::calling(Config { body_bytes_max: 5000, ..config() }, Parts::default(), Callbacks::default(), caller).await;
    let says = async |method: &str, path: &str, body: Value, status: u16, code: &str, says: &str| {
        let mut request = site.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
        if !body.is_null() {
            request = request.json(&body);
        }
        let got = site.send(request).await;
        assert_eq!(got.problem(status), code, "{method} {path} {body}");
        assert!(got.json()["detail"].as_str().unwrap().contains(says), "{}", got.text);
    };
    for ttl in [0, -1, i64::MIN] {
        says("PUT", "/v1/keys/k", json!({"value": 1, "ttlMs": ttl}), 400, "SF0120", "more than nothing").await;
        says("POST", "/v1/keys/k/renew", json!({"ttlMs": ttl}), 400, "SF0120", "more than nothing").await;
    }
    let put = async |more: Value, status, code, word| {
        let mut body = json!({"value": 1, "ttlMs": 1000});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        says("PUT", "/v1/keys/k", body, status, code, word).await;
    };
    put(json!({"ttlMs": "1s"}), 400, "SF0501", "expected i64").await;
    put(json!({"ttlMs": 1.5}), 400, "SF0501", "the body cannot be read").await;
    put(json!({"tllMs": 1}), 400, "SF0501", "unknown field `tllMs`").await;
    put(json!({"owner": ""}), 400, "SF0501", "owner has to have 1 to 256 bytes").await;
    put(json!({"owner": "x".repeat(257)}), 400, "SF0501", "owner").await;
    put(json!({"ifRevision": -1}), 400, "SF0501", "the body cannot be read").await;
    put(json!({"value": "x".repeat(6000)}), 413, "SF0106", "5000").await;
    put(json!({"onExpire": {"uri": "x"}}), 400, "SF0501", "unknown variant `uri`").await;
    put(json!({"onExpire": {"handler": false}}), 400, "SF0501", "onExpire").await;
    put(json!({"onExpire": {"startRun": {"workflow": "nope"}}}), 404, "SF0102", "echo").await;
    put(json!({"onExpire": {"startRun": {"workflow": "a b"}}}), 400, "SF0101", "workflow name").await;
    put(json!({"onExpire": {"startRun": {"workflow": "strict", "input": "x"}}}), 422, "SF0116", "not a number").await;
    put(json!({"onExpire": {"url": "ftp://a.example.com"}}), 422, "SF0121", "neither http:// nor https://").await;
    put(json!({"onExpire": {"url": "/gone"}}), 422, "SF0121", "https://host/path").await;
    put(json!({"onExpire": {"url": "https://me:pw@a.example.com"}}), 422, "SF0121", "user or password").await;
    put(json!({"onExpire": {"url": "https://elsewhere.net/"}}), 422, "SF0121", "callbacks.hosts").await;
    put(json!({"onExpire": {"url": format!("https://a.example.com/{}", "x".repeat(2048))}}), 422, "SF0121", "2048").await;
    says("PUT", "/v1/keys/k", json!({"ttlMs": 1}), 400, "SF0501", "missing field `value`").await;
    says("PUT", "/v1/keys/k", json!({"value": 1}), 400, "SF0501", "missing field `ttlMs`").await;
    says("PUT", "/v1/keys/k?owner=me", json!({"value": 1, "ttlMs": 1}), 400, "SF0501", "takes none").await;
    says("GET", "/v1/keys/k", Value::Null, 404, "SF0117", "GET /v1/keys").await;
    says("POST", "/v1/keys/k/renew", json!({"ttlMs": 1}), 404, "SF0117", "GET /v1/keys").await;
    says("DELETE", "/v1/keys/k", Value::Null, 404, "SF0117", "GET /v1/keys").await;
    says("DELETE", "/v1/keys/k?ifRevision=x", Value::Null, 400, "SF0501", "whole number").await;
    for path in ["/v1/keys", "/v1/callbacks"] {
        says("GET", &format!("{path}?prefix=a%20b"), Value::Null, 400, "SF0101", "prefix").await;
        says("GET", &format!("{path}?limit=1001"), Value::Null, 400, "SF0501", "from 1 to 1000").await;
        says("GET", &format!("{path}?cursor=abc"), Value::Null, 400, "SF0501", "cursor").await;
        says("GET", &format!("{path}?perfix=a"), Value::Null, 400, "SF0501", "did you mean \"prefix\"?").await;
    }
    assert_eq!(names(&site.get("/v1/keys").await.json()), [""; 0], "nothing was put");
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let site = Site::new().await;
    for number in 0..7 {
        site.put(&format!("s:{number}"), json!({"value": number, "ttlMs": HOUR})).await;
    }
    site.put("t:0", json!({"value": 0, "ttlMs": HOUR})).await;
    let (mut seen, mut next, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = site.get(&format!("/v1/keys?prefix=s:&limit=3&cursor={next}")).await.json();
        seen.extend(names(&page).into_iter().map(String::from));
        pages += 1;
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        next = cursor.into();
    }
    let expected: Vec<String> = (0..7).map(|number| format!("s:{number}")).collect();
    assert_eq!((seen, pages), (expected, 3));
    let all = site.get("/v1/keys?prefix=s:&limit=7").await.json();
    assert_eq!(all["nextCursor"], Value::Null, "there is no page after the last");
}

#[tokio::test]
async fn a_page_of_large_values_has_fewer() {
    let site = Site::new().await;
    for number in 0..9 {
        site.put(&format!("big:{number}"), json!({"value": "x".repeat(1 << 20), "ttlMs": HOUR})).await;
    }
    let (mut seen, mut next) = (Vec::new(), String::new());
    loop {
        let page = site.get(&format!("/v1/keys?cursor={next}")).await.json();
        assert!((1..=5).contains(&names(&page).len()), "{:?}", names(&page));
        seen.extend(names(&page).into_iter().map(String::from));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        next = cursor.into();
    }
    let expected: Vec<String> = (0..9).map(|number| format!("big:{number}")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn what_is_over_is_not_shown() {
    let site = Site::new().await;
    site.put("dir", json!({"value": 1, "ttlMs": HOUR, "directory": true})).await;
    site.put("dir/a", json!({"value": 1, "ttlMs": HOUR})).await;
    site.put("dir/b/c", json!({"value": 1, "ttlMs": HOUR})).await;
    site.put("dirt", json!({"value": 1, "ttlMs": HOUR})).await;
    assert_eq!(site.get("/v1/keys/dir").await.json()["directory"], true);
    assert_eq!(delete(&site, "/v1/keys/dir").await.status, 200);
    assert_eq!(names(&site.get("/v1/keys").await.json()), ["dirt"]);
    assert_eq!(site.get("/v1/keys/dir/a").await.problem(404), "SF0117");
    site.put("brief", json!({"value": 1, "ttlMs": 1})).await;
    crate::support::until("it is over", async || site.get("/v1/keys/brief").await.status == 404).await;
    assert_eq!(names(&site.get("/v1/keys").await.json()), ["dirt"]);
}
