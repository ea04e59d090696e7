//! A shop whose services are as unreliable as real ones: down for a while, slow, or answering something else than they were asked for.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use steadfast_runtime::clock::{Clock, SystemClock};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How often the payment service fails for one order before it works.
const CHARGES_FAILED: u32 = 2;

/// How often the shop does not listen when it is told of a cart that was left.
const CARTS_MISSED: u32 = 2;

/// Where the shop is, if nobody else is there: keys that outlast a restart call it by its address.
const PORT: u16 = 7374;

/// How long the warehouse takes.
const WAREHOUSE: Duration = Duration::from_millis(1500);

/// How long a stage of moving a branch takes.
const STAGE: Duration = Duration::from_millis(1500);

/// The shop; it is closed when this is dropped.
pub(super) struct Shop {
    pub(super) addr: SocketAddr,
    server: JoinHandle<()>,
}

/// What the services remember: how often each was asked for the same thing, by the key of the request.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<BTreeMap<String, u32>>>);

impl Memory {
    /// Which call of it this is, from 1.
    fn call(&self, service: &str, headers: &HeaderMap) -> u32 {
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default();
        self.count(&format!("{service} {key}"))
    }

    fn count(&self, what: &str) -> u32 {
        let mut calls = self.0.lock();
        let calls = calls.entry(what.to_string()).or_default();
        *calls += 1;
        *calls
    }
}

impl Shop {
    /// Opens it on its port of this machine, or on a free one.
    pub(super) async fn open() -> io::Result<Self> {
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
        };
        let addr = listener.local_addr()?;
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, services()).await {
                tracing::warn!(%error, "the shop of the demonstration has closed");
            }
        });
        Ok(Shop { addr, server })
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn services() -> Router {
    Router::new()
        .route("/reserve", post(reserve))
        .route("/release/{id}", post(done))
        .route("/charge", post(charge))
        .route("/refund/{id}", post(done))
        .route("/ship", post(|| async { Json(json!({ "parcel": "on its way" })) }))
        .route("/mail", post(mail))
        .route("/switch/{branch}/{stage}", post(switch))
        .route("/cart-left", post(cart_left))
        .route("/cart-moved", post(|| async { (StatusCode::GONE, "carts have moved") }))
        .route("/figures", get(|| async { Html("<h1>Please log in</h1>") }))
        .with_state(Memory::default())
}

/// The warehouse is slow.
async fn reserve(Json(order): Json<Value>) -> Json<Value> {
    SystemClock.sleep(WAREHOUSE).await;
    Json(json!({ "id": format!("r-{}", order["order"].as_str().unwrap_or_default()) }))
}

/// The payment service is down for the first calls, and refuses some cards for good.
async fn charge(State(memory): State<Memory>, headers: HeaderMap, Json(order): Json<Value>) -> Response {
    if order["card"] == "stolen" {
        return (StatusCode::PAYMENT_REQUIRED, Json(json!({ "error": "this card is stolen" }))).into_response();
    }
    if memory.call("charge", &headers) <= CHARGES_FAILED {
        return (StatusCode::SERVICE_UNAVAILABLE, "the payment service is being restarted").into_response();
    }
    Json(json!({ "id": format!("c-{}", order["order"].as_str().unwrap_or_default()) })).into_response()
}

/// Every third mail is not taken.
async fn mail(State(memory): State<Memory>) -> Response {
    match memory.count("mail") % 3 {
        0 => (StatusCode::BAD_GATEWAY, "try again").into_response(),
        _ => Json(json!({ "sent": true })).into_response(),
    }
}

/// Moving a branch takes its time; the books of one do not agree until somebody has looked at it, and another is hard to reach once.
async fn switch(State(memory): State<Memory>, Path((branch, stage)): Path<(String, String)>) -> Response {
    SystemClock.sleep(STAGE).await;
    match (branch.as_str(), stage.as_str(), memory.count(&format!("{branch} {stage}"))) {
        ("oslo", "verify", 1) => (StatusCode::CONFLICT, "2 orders are missing in the new till").into_response(),
        ("lima", "copy", 1) => (StatusCode::BAD_GATEWAY, "the line is down").into_response(),
        _ => Json(json!({ "orders": branch.len() * 7 })).into_response(),
    }
}

/// The shop hears of a cart that was left, but not at once. The key of the request tells it one expiry from another.
async fn cart_left(State(memory): State<Memory>, headers: HeaderMap) -> Response {
    match memory.call("cart-left", &headers) {
        ..=CARTS_MISSED => (StatusCode::SERVICE_UNAVAILABLE, "nobody is here").into_response(),
        _ => Json(json!({ "heard": true })).into_response(),
    }
}

async fn done(Path(id): Path<String>) -> Json<Value> {
    Json(json!({ "id": id, "done": true }))
}
