//! One who is told of expiries: it keeps what it hears, and answers as it is told.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One request, as it came.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) method: String,
    /// Path and query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
    pub(super) from: SocketAddr,
}

impl Heard {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// What lets a receiver see each expiry once.
    pub(super) fn key(&self) -> String {
        self.headers["idempotency-key"].to_str().unwrap().into()
    }

    pub(super) fn attempt(&self) -> u64 {
        self.json()["attempt"].as_u64().unwrap()
    }
}

/// How it answers; it may take as long as it likes.
pub(super) type Answers = Arc<dyn Fn(Heard) -> BoxFuture<'static, Response> + Send + Sync>;

pub(super) struct Receiver {
    pub(super) addr: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    serving: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// An answer without a body.
pub(super) fn status(status: u16) -> Response {
    Response::builder().status(status).body(Body::empty()).unwrap()
}

/// Answers at once.
pub(super) fn at_once(answer: impl Fn(&Heard) -> Response + Send + Sync + 'static) -> Answers {
    Arc::new(move |heard| {
        let answer = answer(&heard);
        Box::pin(async move { answer })
    })
}

impl Receiver {
    pub(super) async fn new(answers: Answers) -> Self {
        Receiver::at(TcpListener::bind("127.0.0.1:0").await.unwrap(), answers)
    }

    pub(super) fn at(listener: TcpListener, answers: Answers) -> Self {
        let (addr, heard) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Heard>>>::default());
        let keeps = Arc::clone(&heard);
        let hear = move |ConnectInfo(from): ConnectInfo<SocketAddr>, request: Request| {
            let (keeps, answers) = (Arc::clone(&keeps), Arc::clone(&answers));
            async move {
                let (parts, body) = request.into_parts();
                let bytes: Bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
                let heard = Heard {
                    method: parts.method.to_string(),
                    path: parts.uri.to_string(),
                    headers: parts.headers,
                    text: String::from_utf8(bytes.into()).unwrap(),
                    from,
                };
                keeps.lock().unwrap().push(heard.clone());
                answers(heard).await
            }
        };
        let app = Router::new().fallback(hear).into_make_service_with_connect_info::<SocketAddr>();
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Receiver { addr, heard, serving }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// All that it has heard so far.
    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}
