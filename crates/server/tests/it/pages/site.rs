//! A server with a console, which can be restarted on the same port.

use super::browser::PATIENCE;
use super::flows::{self, World};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use steadfast_runtime::Engine;
use steadfast_server::{Config, Parts, Server};
use steadfast_store::memory::Memory;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(super) struct Site {
    pub(super) engine: Engine,
    pub(super) world: World,
    pub(super) addr: SocketAddr,
    http: reqwest::Client,
    serving: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// A page as it came.
pub(super) struct Got {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Got {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    #[track_caller]
    pub(super) fn has(&self, part: &str) {
        assert!(self.text.contains(part), "there is no {part:?} in:\n{}", self.text);
    }

    #[track_caller]
    pub(super) fn has_not(&self, part: &str) {
        assert!(!self.text.contains(part), "there is a {part:?} in:\n{}", self.text);
    }
}

impl Site {
    pub(super) async fn new() -> Self {
        Site::with(Config::default()).await
    }

    pub(super) async fn with(config: Config) -> Self {
        Site::before(Memory::new(), config).await
    }

    /// One that finds something in its store.
    pub(super) async fn before(store: Memory, config: Config) -> Self {
        let world = World::default();
        let engine = flows::engine(store, &world).await;
        steadfast_tls::install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut site = Site { engine, world, addr: ([127, 0, 0, 1], 0).into(), http, serving: None };
        site.serve(config).await;
        site
    }

    /// Begins to answer, on the port that it had before if it had one.
    pub(super) async fn serve(&mut self, config: Config) {
        let config = Config { listen: self.addr, shutdown_grace: Duration::from_secs(1), ..config };
        let server = Server::bind(config, self.engine.clone(), Parts::default()).await.unwrap();
        self.addr = server.addr();
        let (stop, stopped) = oneshot::channel();
        self.serving = Some((stop, tokio::spawn(server.serve(async move { drop(stopped.await) }))));
    }

    /// Stops answering; the engine goes on.
    pub(super) async fn stop(&mut self) {
        let (stop, served) = self.serving.take().unwrap();
        let _it_has_ended_by_itself = stop.send(());
        served.await.unwrap();
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// A page, asked for as browsers do.
    pub(super) async fn page(&self, path: &str) -> Got {
        let answer = self
            .http
            .get(self.url(path))
            .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
            .send()
            .await
            .unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        Got { status, headers, text: answer.text().await.unwrap() }
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.http.post(self.url(path)).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }

    /// Sends a form as the page of that origin would, and does not follow where it leads.
    pub(super) async fn form_of(&self, origin: &str, path: &str, fields: &[(&str, &str)]) -> Got {
        steadfast_tls::install_default();
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let answer = http
            .post(self.url(path))
            .header("accept", "text/html")
            .header("origin", origin)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body)
            .send()
            .await
            .unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        Got { status, headers, text: answer.text().await.unwrap() }
    }

    /// Sends a form of a page of ours.
    pub(super) async fn form(&self, path: &str, fields: &[(&str, &str)]) -> Got {
        self.form_of(&self.url(""), path, fields).await
    }

    /// Creates a plan, and starts it.
    pub(super) async fn plan(&self, id: &str, tenants: &[&str]) {
        self.create(id, tenants).await;
        self.post(&format!("/v1/plans/{id}/start"), json!({"reason": "the night has begun"})).await;
    }

    pub(super) async fn create(&self, id: &str, tenants: &[&str]) {
        let vars = json!({"gateway": "<img src=x onerror=y()>"});
        let plan = json!({"definition": "eu/switch", "id": id, "tenants": tenants, "vars": vars, "maxConcurrency": 50, "reason": "<b>new</b> gateway"});
        self.post("/v1/plans", plan).await;
    }

    /// Waits until the task of a tenant stands so.
    pub(super) async fn task_is(&self, tenant: &str, status: &str) {
        self.come_to(&format!("/v1/tenants/{tenant}/task"), |task| task["status"] == status).await;
    }

    /// Waits until the plan stands so.
    pub(super) async fn plan_is(&self, id: &str, status: &str) {
        self.come_to(&format!("/v1/plans/{id}"), |plan| plan["status"] == status).await;
    }

    async fn come_to(&self, path: &str, fact: impl Fn(&Value) -> bool) {
        let mut seen = Value::Null;
        let look = async {
            while !fact(&seen) {
                seen = self.http.get(self.url(path)).send().await.unwrap().json().await.unwrap();
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, look).await.is_ok();
        assert!(in_time, "{path} never comes to it, but is {seen}");
    }

    /// Puts a key.
    pub(super) async fn put(&self, key: &str, body: Value) -> u64 {
        let answer = self.http.put(self.url(&format!("/v1/keys/{key}"))).json(&body).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        answer["revision"].as_u64().unwrap_or_else(|| panic!("{answer}"))
    }

    /// Starts a run, and waits until it is in that status.
    pub(super) async fn run(&self, workflow: &str, id: &str, status: &str) {
        self.post("/v1/runs", json!({"workflow": workflow, "id": id, "input": {"order": id}, "tenant": "acme"}))
            .await;
        self.until(id, status).await;
    }

    pub(super) async fn until(&self, id: &str, status: &str) {
        let run = steadfast_kernel::RunId::new(id).unwrap();
        let look = async {
            while self.engine.view(&run).await.unwrap().status.as_str() != status {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("{id} is never {status}"));
    }
}
