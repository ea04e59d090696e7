//! Who may reach the server.

use crate::support::{Site, TOKEN, config, engine, raw};
use reqwest::Method;
use serde_json::json;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use steadfast_server::{Config, Error, Parts, Server};
use steadfast_store::memory::Memory;
use tempfile::TempDir;

fn token_file(folder: &TempDir, content: &str, mode: u32) -> PathBuf {
    let path = folder.path().join("token");
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

async fn guarded(folder: &TempDir) -> Site {
    let token_file = Some(token_file(folder, &format!("{TOKEN}\n"), 0o600));
    Site::with(Config { token_file, ..config() }, Parts::default()).await
}

async fn refused(config: Config) -> Error {
    let engine = engine(Memory::new(), Default::default(), Default::default(), &Default::default()).await;
    Server::bind(config, engine, Parts::default()).await.err().expect("it does not start")
}

#[tokio::test]
async fn an_address_that_others_can_reach_needs_a_token() {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let error = refused(Config { listen: everywhere, ..config() }).await;
    assert_eq!(error.code(), "SF0511");
    assert!(error.to_string().contains("head -c 32 /dev/urandom | base64"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let token_file = Some(token_file(&folder, TOKEN, 0o600));
    let site = Site::with(Config { listen: everywhere, token_file, ..config() }, Parts::default()).await;
    assert_eq!(site.get("/v1/runs").await.problem(401), "SF0502");
}

#[tokio::test]
async fn a_token_file_that_keeps_nobody_out_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let with = |content: &str, mode| Config { token_file: Some(token_file(&folder, content, mode)), ..config() };
    for (content, mode, says) in
        [(TOKEN, 0o644, "chmod 600"), (TOKEN, 0o640, "chmod 600"), ("short", 0o600, "43 of base64"), ("", 0o600, "64 of hex")]
    {
        let error = refused(with(content, mode)).await;
        assert_eq!(error.code(), "SF0512");
        assert!(error.to_string().contains(says), "{error}");
    }
    let missing = Config { token_file: Some(folder.path().join("none")), ..config() };
    assert_eq!(refused(missing).await.code(), "SF0512");
}

#[tokio::test]
async fn an_address_that_is_taken_is_said_so() {
    let site = Site::new().await;
    assert_eq!(refused(Config { listen: site.addr, ..config() }).await.code(), "SF0513");
}

#[tokio::test]
async fn everything_but_the_probes_needs_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(&folder).await;
    for path in ["/v1/runs", "/metrics", "/openapi.json", "/v1/events", "/v1/runs/x", "/nothing"] {
        let got = site.get(path).await;
        assert_eq!((got.problem(401).as_str(), got.header("www-authenticate")), ("SF0502", "Bearer"), "{path}");
    }
    for wrong in ["Bearer x", &format!("Bearer {TOKEN}x"), &format!("Basic {TOKEN}"), TOKEN, "Bearer", ""] {
        let got = site.send(site.request(Method::GET, "/v1/runs").header("authorization", wrong)).await;
        assert_eq!(got.problem(401), "SF0502", "{wrong}");
    }
    for right in [format!("Bearer {TOKEN}"), format!("bearer {TOKEN}")] {
        assert_eq!(site.send(site.request(Method::GET, "/v1/runs").header("authorization", right)).await.status, 200);
    }
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(site.get(probe).await.status, 200, "{probe}");
    }
}

#[tokio::test]
async fn why_it_is_not_ready_is_told_to_those_who_have_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let site = guarded(&folder).await;
    site.store.faults().rule(|_| Some(steadfast_store::memory::Fault::Fail));
    let start = site.request(Method::POST, "/v1/runs").bearer_auth(TOKEN).json(&json!({"workflow": "echo"}));
    assert_eq!(site.send(start).await.problem(503), "SF0301");
    assert_eq!(site.get("/readyz").await.json()["dependencies"][0], json!({"name": "store", "ready": false, "status": "down"}));
    let told = site.send(site.request(Method::GET, "/readyz").bearer_auth(TOKEN)).await;
    assert!(told.json()["dependencies"][0]["detail"].is_string());
}

#[tokio::test]
async fn a_name_that_is_not_ours_is_refused() {
    let site = Site::with(Config { allowed_hosts: vec!["steadfast.example.com".into()], ..config() }, Parts::default()).await;
    for host in ["evil.example", "localhost.evil.example:7373", "127.0.0.1.evil.example"] {
        let answer = raw(&site, &format!("GET /v1/runs HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("SF0503"), "{answer}");
    }
    let missing = raw(&site, "GET /v1/runs HTTP/1.0\r\n\r\n").await;
    assert!(missing.starts_with("HTTP/1.0 403") && missing.contains("SF0503"), "{missing}");
    for host in ["localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:7373", "steadfast.example.com"] {
        let answer = raw(&site, &format!("GET /v1/runs HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{host}: {answer}");
    }
}

#[tokio::test]
async fn pages_of_other_sites_change_nothing() {
    let site = Site::new().await;
    let start = |origin: &str| {
        site.request(Method::POST, "/v1/runs")
            .header("origin", origin.to_string())
            .json(&json!({"workflow": "echo"}))
    };
    for origin in ["https://evil.example", "null", "http://localhost:3000"] {
        assert_eq!(site.send(start(origin)).await.problem(403), "SF0503", "{origin}");
    }
    assert_eq!(site.send(start(&format!("http://{}", site.addr))).await.status, 201, "its own pages may");
    let read = site.send(site.request(Method::GET, "/v1/runs").header("origin", "https://evil.example")).await;
    assert_eq!((read.status.as_u16(), read.header("access-control-allow-origin")), (200, ""), "the browser does not show it");
}

#[tokio::test]
async fn pages_of_configured_origins_may() {
    let site = Site::with(Config { cors_origins: vec!["https://app.example".into()], ..config() }, Parts::default()).await;
    let asks = |origin: &str| {
        let preflight = site.request(Method::OPTIONS, "/v1/runs").header("access-control-request-method", "POST");
        preflight.header("origin", origin.to_string())
    };
    let allowed = site.send(asks("https://app.example")).await;
    assert_eq!((allowed.status.as_u16(), allowed.header("access-control-allow-origin")), (204, "https://app.example"));
    assert_eq!(site.send(asks("https://evil.example")).await.problem(405), "SF0505");
    let start = site
        .request(Method::POST, "/v1/runs")
        .header("origin", "https://app.example")
        .json(&json!({"workflow": "echo"}));
    let started = site.send(start).await;
    assert_eq!((started.status.as_u16(), started.header("access-control-allow-origin")), (201, "https://app.example"));
}
