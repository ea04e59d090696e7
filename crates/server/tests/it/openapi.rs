//! The OpenAPI document: it is the committed one, and the server does all that it says.

use crate::cluster::Cluster;
use crate::instances::two;
use crate::plans::How;
use crate::schema::Document;
use crate::support::{Got, Site, TOKEN, config, until};
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use steadfast_server::{Config, Parts};
use steadfast_store::LetterFilter;
use steadfast_store::memory::Fault;
use steadfast_test_servers::RedisServer;

#[test]
fn every_operation_has_a_name_of_its_own() {
    let document = Document::new();
    let names: Vec<&str> = document.operations().map(|(_, _, operation)| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    assert!(names.contains(&"runs_start"), "{names:?}");
}

#[tokio::test]
async fn it_is_served() {
    assert_eq!(Site::new().await.get("/openapi.json").await.text, steadfast_server::openapi());
}

/// What was seen: method, path as in the document, status.
type Seen = BTreeSet<(String, String, u16)>;

struct Tour {
    document: Document,
    seen: Seen,
}

impl Tour {
    /// Sends a request to a path of the document, whose answer has to be as it says.
    async fn go(
        &mut self,
        site: &Site,
        operation: &str,
        path: &str,
        status: u16,
        with: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Got {
        let (method, template) = operation.split_once(' ').unwrap();
        let request = site.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
        let streams = operation == "GET /v1/events" && status == 200;
        let got = if streams { stream(with(request)).await } else { site.send(with(request)).await };
        assert_eq!(got.status, status, "{operation} {path}: {}", got.text);
        self.document.check(&method.to_lowercase(), template, &got);
        self.seen.insert((method.into(), template.into(), status));
        got
    }
}

/// The head of an answer that has no end.
async fn stream(request: RequestBuilder) -> Got {
    let answer = request.send().await.unwrap();
    Got { status: answer.status(), headers: answer.headers().clone(), text: String::new() }
}

/// Every operation, with a path that is good for it.
const OPERATIONS: [(&str, &str); 52] = [
    ("GET /healthz", "/healthz"),
    ("GET /readyz", "/readyz"),
    ("GET /metrics", "/metrics"),
    ("GET /openapi.json", "/openapi.json"),
    ("GET /v1/workflows", "/v1/workflows"),
    ("GET /v1/workers", "/v1/workers"),
    ("GET /v1/messages", "/v1/messages"),
    ("GET /v1/cluster", "/v1/cluster"),
    ("POST /v1/cluster/instances/{id}/drain", "/v1/cluster/instances/b/drain"),
    ("POST /v1/cluster/instances/{id}/undrain", "/v1/cluster/instances/b/undrain"),
    ("GET /v1/events", "/v1/events"),
    ("GET /v1/runs", "/v1/runs"),
    ("POST /v1/runs", "/v1/runs"),
    ("GET /v1/runs/{id}", "/v1/runs/done"),
    ("GET /v1/runs/{id}/events", "/v1/runs/done/events"),
    ("GET /v1/runs/{id}/result", "/v1/runs/done/result"),
    ("POST /v1/runs/{id}/pause", "/v1/runs/held/pause"),
    ("POST /v1/runs/{id}/resume", "/v1/runs/held/resume"),
    ("POST /v1/runs/{id}/cancel", "/v1/runs/held/cancel"),
    ("POST /v1/runs/{id}/retry", "/v1/runs/failed/retry"),
    ("POST /v1/runs/{id}/signals/{name}", "/v1/runs/told/signals/go"),
    ("POST /v1/runs/{id}/replay", "/v1/runs/done/replay"),
    ("POST /v1/plans", "/v1/plans"),
    ("GET /v1/plans", "/v1/plans"),
    ("GET /v1/plans/{id}", "/v1/plans/night"),
    ("GET /v1/plans/{id}/events", "/v1/plans/night/events"),
    ("POST /v1/plans/{id}/start", "/v1/plans/night/start"),
    ("POST /v1/plans/{id}/pause", "/v1/plans/night/pause"),
    ("POST /v1/plans/{id}/resume", "/v1/plans/night/resume"),
    ("GET /v1/tenants/{tenant}/task", "/v1/tenants/acme/task"),
    ("GET /v1/tenants/{tenant}/checkpoint", "/v1/tenants/acme/checkpoint"),
    ("POST /v1/tenants/{tenant}/pause", "/v1/tenants/calm/pause"),
    ("POST /v1/tenants/{tenant}/resume", "/v1/tenants/calm/resume"),
    ("GET /v1/locks", "/v1/locks"),
    ("DELETE /v1/locks/{tenant}", "/v1/locks/acme?reason=stuck"),
    ("POST /v1/tenants/{tenant}/retry", "/v1/tenants/acme/retry"),
    ("POST /v1/tenants/{tenant}/rollback", "/v1/tenants/acme/rollback"),
    ("POST /v1/tenants/{tenant}/cancel", "/v1/tenants/calm/cancel"),
    ("POST /v1/tenants/{tenant}/hand-over", "/v1/tenants/acme/hand-over"),
    ("POST /v1/plans/{id}/rollback", "/v1/plans/night/rollback"),
    ("POST /v1/plans/{id}/cancel", "/v1/plans/idle/cancel"),
    ("GET /v1/keys", "/v1/keys"),
    ("PUT /v1/keys/{key}", "/v1/keys/kept"),
    ("GET /v1/keys/{key}", "/v1/keys/kept"),
    ("POST /v1/keys/{key}/renew", "/v1/keys/kept/renew"),
    ("DELETE /v1/keys/{key}", "/v1/keys/kept"),
    ("GET /v1/callbacks", "/v1/callbacks"),
    ("GET /v1/letters", "/v1/letters"),
    ("GET /v1/letters/{id}", "/v1/letters/team/poison.1"),
    ("DELETE /v1/letters/{id}", "/v1/letters/team/poison.1"),
    ("POST /v1/letters/{id}/redrive", "/v1/letters/team/poison.1/redrive"),
    ("POST /v1/letters/redrive", "/v1/letters/redrive"),
];

/// A site on which every path has something to show.
async fn furnished(config: Config) -> Site {
    let site = Site::with(config, Parts::default()).await;
    let start = async |workflow: &str, id: &str| {
        let body = json!({"workflow": workflow, "id": id, "waitMs": if ["hold", "stuck"].contains(&workflow) { 0 } else { 30000 }});
        site.send(site.request(Method::POST, "/v1/runs").bearer_auth(TOKEN).json(&body)).await;
    };
    start("echo", "done").await;
    start("fail", "failed").await;
    start("hold", "held").await;
    start("hold", "told").await;
    start("stuck", "stuck").await;
    start("team/poison", "poisoned").await;
    assert_eq!(site.put("kept", json!({"value": 1, "ttlMs": 3_600_000})).await.status, 200);
    site.world.script("acme/move", &[How::Fails]);
    site.world.script("calm/drain", &[How::Ails]);
    for (id, tenants) in [("night", &["acme", "calm"][..]), ("ended", &["fine", "undone"]), ("idle", &["idler"])] {
        let body = json!({"definition": "switch", "id": id, "tenants": tenants});
        site.send(site.request(Method::POST, "/v1/plans").bearer_auth(TOKEN).json(&body)).await;
    }
    for path in ["/v1/plans/night/start", "/v1/plans/ended/start"] {
        assert_eq!(site.send(site.request(Method::POST, path).bearer_auth(TOKEN)).await.status, 200);
    }
    site.task_is("acme", "FAILED").await;
    site.task_is("calm", "WAITING").await;
    site.plan_is("ended", "COMPLETED").await;
    until("two letters are there", async || site.engine.letters(&LetterFilter::default(), None, 2).await.unwrap().len() == 2).await;
    site
}

/// With a body that is good for that operation, if it needs one.
fn filled(operation: &str, request: RequestBuilder) -> RequestBuilder {
    match operation {
        "POST /v1/runs" => request.json(&json!({"workflow": "echo"})),
        "POST /v1/plans" => request.json(&json!({"definition": "switch", "tenants": ["new"]})),
        "PUT /v1/keys/{key}" => request.json(&json!({"value": {"deep": [1, 2.5, null]}, "ttlMs": 3_600_000, "directory": true})),
        "POST /v1/letters/redrive" => request.json(&json!({"kind": "step", "workflow": "team/poison", "perSecond": 1000, "limit": 10})),
        "POST /v1/keys/{key}/renew" => request.json(&json!({"ttlMs": 7_200_000})),
        _ => request,
    }
}

fn same(request: RequestBuilder) -> RequestBuilder {
    request
}

#[tokio::test]
async fn every_documented_answer_of_every_path_is_given() {
    let mut tour = Tour { document: Document::new(), seen: Seen::new() };
    successes(&mut tour).await;
    what_is_not_there(&mut tour).await;
    what_cannot_be_understood(&mut tour).await;
    conflicts(&mut tour).await;
    elsewhere(&mut tour).await;
    shared(&mut tour).await;
    closed_doors(&mut tour).await;
    trouble(&mut tour).await;
    let documented = tour.document.answers();
    let missing: Vec<_> = documented.difference(&tour.seen).collect();
    assert!(missing.is_empty(), "documented, but in no case here: {missing:?}");
    let listed: BTreeSet<String> = OPERATIONS.iter().map(|(operation, _)| operation.to_string()).collect();
    let operations = documented.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    assert_eq!(listed, operations);
}

async fn successes(tour: &mut Tour) {
    let site = furnished(config()).await;
    let start =
        json!({"workflow": "echo", "input": {"deep": [1, 2.5, null]}, "id": "new", "deadlineMs": 60000, "tenant": "acme", "waitMs": 30000});
    tour.go(&site, "POST /v1/runs", "/v1/runs", 201, |request| request.json(&start)).await;
    tour.go(&site, "POST /v1/runs", "/v1/runs", 200, |request| request.json(&start)).await;
    tour.go(&site, "GET /v1/runs/{id}/result", "/v1/runs/held/result", 202, same).await;
    tour.go(&site, "GET /v1/runs/{id}", "/v1/runs/held", 200, same).await;
    tour.go(&site, "GET /v1/runs/{id}", "/v1/runs/failed", 200, same).await;
    tour.go(&site, "POST /v1/runs/{id}/retry", "/v1/runs/failed/retry", 200, |request| request.json(&json!({"dryRun": true})))
        .await;
    let create =
        json!({"definition": "switch", "id": "new", "tenants": ["new"], "maxConcurrency": 2, "vars": {"deep": [1, null]}, "reason": "x"});
    tour.go(&site, "POST /v1/plans", "/v1/plans", 201, |request| request.json(&create)).await;
    tour.go(&site, "POST /v1/plans", "/v1/plans", 200, |request| request.json(&create)).await;
    tour.go(&site, "GET /v1/tenants/{tenant}/task", "/v1/tenants/calm/task", 200, same).await;
    tour.go(&site, "GET /v1/runs/{id}", "/v1/runs/night/acme", 200, same).await;
    for (operation, path) in OPERATIONS {
        let status = match operation {
            "POST /v1/runs" | "POST /v1/plans" => continue,
            "POST /v1/letters/{id}/redrive" | "POST /v1/tenants/{tenant}/hand-over" => continue,
            shared if shared.contains("/v1/cluster") => continue,
            "DELETE /v1/letters/{id}" | "DELETE /v1/locks/{tenant}" => 204,
            _ => 200,
        };
        tour.go(&site, operation, path, status, |request| filled(operation, request)).await;
    }
    let site = furnished(config()).await;
    tour.go(&site, "POST /v1/letters/{id}/redrive", "/v1/letters/team/poison.1/redrive", 204, same)
        .await;
}

async fn what_is_not_there(tour: &mut Tour) {
    let site = furnished(config()).await;
    tour.go(&site, "GET /v1/cluster", "/v1/cluster", 404, same).await;
    for (operation, path) in OPERATIONS.into_iter().filter(|(operation, _)| operation.contains('{')) {
        let gone = path
            .replace("done", "gone")
            .replace("held", "gone")
            .replace("told", "gone")
            .replace("failed", "gone")
            .replace("kept", "gone")
            .replace("poison.1", "poison.7")
            .replace("night", "gone")
            .replace("idle", "gone")
            .replace("acme", "gone")
            .replace("calm", "gone");
        let starts = json!({"value": 1, "ttlMs": 3_600_000, "onExpire": {"startRun": {"workflow": "gone"}}});
        let no_such_workflow = operation == "PUT /v1/keys/{key}";
        tour.go(&site, operation, &gone, 404, |request| if no_such_workflow { request.json(&starts) } else { filled(operation, request) })
            .await;
    }
    tour.go(&site, "POST /v1/runs", "/v1/runs", 404, |request| request.json(&json!({"workflow": "gone"})))
        .await;
    tour.go(&site, "POST /v1/plans", "/v1/plans", 404, |request| request.json(&json!({"definition": "gone", "tenants": ["a"]})))
        .await;
}

async fn what_cannot_be_understood(tour: &mut Tour) {
    let site = Site::with(Config { body_bytes_max: 1000, ..config() }, Parts::default()).await;
    for (method, template, _) in tour.document.answers().into_iter().filter(|(_, _, status)| *status == 400) {
        let operation = format!("{method} {template}");
        let (_, path) = OPERATIONS.into_iter().find(|(listed, _)| *listed == operation).unwrap();
        let and = if path.contains('?') { '&' } else { '?' };
        tour.go(&site, &operation, &format!("{path}{and}nonsense=1"), 400, |request| request.json(&json!({})))
            .await;
    }
    let takes_a_body = |operation: &str| operation.starts_with('P') || operation == "DELETE /v1/locks/{tenant}";
    for (operation, path) in OPERATIONS.into_iter().filter(|(operation, _)| takes_a_body(operation)) {
        tour.go(&site, operation, path, 415, |request| request.body("{}")).await;
        tour.go(&site, operation, path, 413, |request| request.json(&json!({"reason": "x".repeat(2000)})))
            .await;
    }
}

async fn conflicts(tour: &mut Tour) {
    let site = furnished(config()).await;
    for verb in ["pause", "resume", "cancel"] {
        tour.go(&site, &format!("POST /v1/runs/{{id}}/{verb}"), &format!("/v1/runs/done/{verb}"), 409, same)
            .await;
    }
    tour.go(&site, "POST /v1/runs/{id}/signals/{name}", "/v1/runs/done/signals/go", 409, same).await;
    tour.go(&site, "POST /v1/runs/{id}/retry", "/v1/runs/done/retry", 409, same).await;
    tour.go(&site, "POST /v1/runs/{id}/retry", "/v1/runs/failed/retry", 422, |request| request.json(&json!({"fromStep": "nowhere"})))
        .await;
    tour.go(&site, "POST /v1/runs", "/v1/runs", 409, |request| request.json(&json!({"workflow": "echo", "id": "done", "input": 2})))
        .await;
    tour.go(&site, "POST /v1/runs", "/v1/runs", 422, |request| request.json(&json!({"workflow": "strict", "input": {}})))
        .await;
    for verb in ["start", "pause", "resume", "cancel"] {
        tour.go(&site, &format!("POST /v1/plans/{{id}}/{verb}"), &format!("/v1/plans/ended/{verb}"), 409, same)
            .await;
    }
    tour.go(&site, "POST /v1/plans/{id}/rollback", "/v1/plans/idle/rollback", 409, same).await;
    for verb in ["retry", "pause", "resume", "cancel"] {
        tour.go(&site, &format!("POST /v1/tenants/{{tenant}}/{verb}"), &format!("/v1/tenants/fine/{verb}"), 409, same)
            .await;
    }
    site.verb("/v1/tenants/undone/rollback", "x").await;
    site.task_is("undone", "ROLLED_BACK").await;
    tour.go(&site, "POST /v1/tenants/{tenant}/rollback", "/v1/tenants/undone/rollback", 409, same).await;
    let locked = json!({"definition": "switch", "tenants": ["acme"]});
    tour.go(&site, "POST /v1/plans", "/v1/plans", 409, |request| request.json(&locked)).await;
    tour.go(&site, "POST /v1/plans", "/v1/plans", 422, |request| request.json(&json!({"definition": "switch", "tenants": []})))
        .await;
    let changed = json!({"value": 1, "ttlMs": 3_600_000, "ifRevision": u32::MAX});
    tour.go(&site, "PUT /v1/keys/{key}", "/v1/keys/kept", 409, |request| request.json(&changed)).await;
    let changed = json!({"ttlMs": 3_600_000, "ifRevision": u32::MAX});
    tour.go(&site, "POST /v1/keys/{key}/renew", "/v1/keys/kept/renew", 409, |request| request.json(&changed))
        .await;
    tour.go(&site, "DELETE /v1/keys/{key}", "/v1/keys/kept?ifRevision=1000000", 409, same).await;
    let nobody = json!({"value": 1, "ttlMs": 3_600_000, "onExpire": {"url": "ftp://example.com/"}});
    tour.go(&site, "PUT /v1/keys/{key}", "/v1/keys/kept", 422, |request| request.json(&nobody)).await;
    assert_eq!(site.post("/v1/runs/stuck/pause", json!({})).await.status, 200);
    tour.go(&site, "POST /v1/letters/{id}/redrive", "/v1/letters/stuck.1/redrive", 409, same).await;
}

/// What another instance has.
async fn elsewhere(tour: &mut Tour) {
    let redis = RedisServer::start();
    let (a, b, world) = two(&redis).await;
    world.script("acme/move", &[How::Fails]);
    a.switch("night", &["acme", "fine"]).await;
    a.task_is("acme", "FAILED").await;
    a.task_is("fine", "COMPLETED").await;
    a.engine.shared().await;
    tour.go(&a, "GET /readyz", "/readyz", 200, same).await;
    tour.go(&a, "GET /v1/locks", "/v1/locks", 200, same).await;
    tour.go(&b, "GET /v1/plans/{id}", "/v1/plans/night", 200, same).await;
    tour.go(&b, "GET /v1/tenants/{tenant}/task", "/v1/tenants/acme/task", 200, same).await;
    tour.go(&b, "GET /v1/tenants/{tenant}/checkpoint", "/v1/tenants/acme/checkpoint", 200, same).await;
    tour.go(&b, "GET /v1/plans/{id}/events", "/v1/plans/night/events", 409, same).await;
    tour.go(&b, "DELETE /v1/locks/{tenant}", "/v1/locks/acme?reason=x", 409, same).await;
    let hand_over = "POST /v1/tenants/{tenant}/hand-over";
    tour.go(&a, hand_over, "/v1/tenants/fine/hand-over", 409, same).await;
    tour.go(&a, hand_over, "/v1/tenants/acme/hand-over", 200, same).await;
}

/// What is there where instances share a store, and what is said when that is away.
async fn shared(tour: &mut Tour) {
    let cluster = Cluster::default();
    let (a, _b) = (cluster.start("a").await, cluster.start("b").await);
    for (operation, path) in OPERATIONS.into_iter().filter(|(operation, _)| operation.contains("/v1/cluster")) {
        tour.go(&a, operation, path, 200, same).await;
        if operation.contains('{') {
            tour.go(&a, operation, &path.replace("/b/", "/gone/"), 404, same).await;
        }
    }
    a.store.crash();
    for (operation, path) in OPERATIONS.into_iter().filter(|(operation, _)| operation.contains("/v1/cluster")) {
        tour.go(&a, operation, path, 503, same).await;
    }
}

async fn closed_doors(tour: &mut Tour) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, TOKEN).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let guarded = Site::with(Config { token_file: Some(path), ..config() }, Parts::default()).await;
    let full = Site::with(Config { in_flight_max: 0, ..config() }, Parts::default()).await;
    for (operation, path) in OPERATIONS {
        tour.go(&guarded, operation, path, 403, |request| request.header("host", "evil.example")).await;
        if !["GET /healthz", "GET /readyz"].contains(&operation) {
            tour.go(&guarded, operation, path, 401, same).await;
            tour.go(&full, operation, path, 429, same).await;
        }
    }
}

async fn trouble(tour: &mut Tour) {
    let site = Site::new().await;
    site.engine.clone().shutdown().await;
    let may_be_away = |path: &str| path != "/readyz" && !path.starts_with("/v1/cluster");
    for (method, template, _) in tour.document.answers().into_iter().filter(|(_, path, status)| *status == 503 && may_be_away(path)) {
        let operation = format!("{method} {template}");
        let (_, path) = OPERATIONS.into_iter().find(|(listed, _)| *listed == operation).unwrap();
        tour.go(&site, &operation, path, 503, |request| filled(&operation, request)).await;
    }
    let sick = Site::new().await;
    sick.store.faults().rule(|_| Some(Fault::Fail));
    tour.go(&sick, "POST /v1/runs", "/v1/runs", 503, |request| request.json(&json!({"workflow": "echo"})))
        .await;
    tour.go(&sick, "GET /readyz", "/readyz", 503, same).await;
}
