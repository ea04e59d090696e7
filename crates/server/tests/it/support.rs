//! What the tests share: an engine with a handful of workflows, a server in front of it, and a client that looks at every answer.

use crate::pages::Post;
use crate::plans::World;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Failure, Payload, Policy, RunId, Status, Timestamp, WorkflowName};
use steadfast_runtime::host::Context;
use steadfast_runtime::{Builder, Callbacks, Caller, Code, Engine, Redeliver, Registered, Terms};
use steadfast_server::{CallerSettings, Config, HttpCaller, Parts, Server};
use steadfast_store::memory::Memory;
use steadfast_store::{Batch, EXAMINED_MAX, Fence, RunRow, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A token of 32 bytes.
pub(crate) const TOKEN: &str = "stf_q8Zt0m3n5Yw1vK7xPfR2sLhJdC4bGaUeT6iOoNyQwEk";

/// Long enough for anything that is to happen on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

type Outcome = Result<Payload, Failure>;

/// A workflow of the tests.
struct Flow(fn(Context, Payload) -> BoxFuture<'static, Outcome>);

impl Code for Flow {
    fn begin(&self, context: Context, input: Payload) -> BoxFuture<'static, Outcome> {
        (self.0)(context, input)
    }
}

/// Takes numbers only.
struct Strict;

impl Code for Strict {
    fn begin(&self, _: Context, input: Payload) -> BoxFuture<'static, Outcome> {
        async move { Ok(input) }.boxed()
    }

    fn terms(&self, input: &Payload) -> Result<Terms, Failure> {
        let is_number = serde_json::from_slice::<f64>(&input.bytes).is_ok();
        if is_number { Ok(Terms::default()) } else { Err(Failure::permanent("the input is not a number")) }
    }
}

fn cannot_ask(error: impl std::fmt::Display) -> Failure {
    Failure::permanent(error)
}

async fn step(context: &Context, name: &str, policy: Policy, mut attempt: impl FnMut(u32) -> Outcome + Send) -> Outcome {
    let mut number = 0;
    let attempts = Box::new(move || {
        number += 1;
        let outcome = attempt(number);
        async move { outcome }.boxed()
    });
    let mut call = context.step(name, attempts).map_err(cannot_ask)?;
    call.set_policy(policy);
    call.await
}

fn echo(context: Context, input: Payload) -> BoxFuture<'static, Outcome> {
    async move { step(&context, "echo", Policy::once(), |_| Ok(input.clone())).await }.boxed()
}

fn fail(context: Context, _: Payload) -> BoxFuture<'static, Outcome> {
    async move {
        step(&context, "reserve", Policy::once(), |_| Ok(Payload::json("7"))).await?;
        step(&context, "charge", Policy::once(), |_| Err(Failure::permanent("card declined"))).await
    }
    .boxed()
}

fn flaky(context: Context, _: Payload) -> BoxFuture<'static, Outcome> {
    async move {
        let failed_once = |attempt| if attempt == 1 { Err(Failure::transient("try again")) } else { Ok(Payload::json("\"at last\"")) };
        step(&context, "charge", Policy::constant(Duration::from_millis(1)), failed_once).await
    }
    .boxed()
}

fn sick(context: Context, _: Payload) -> BoxFuture<'static, Outcome> {
    async move { step(&context, "charge", Policy::constant(Duration::from_secs(3600)), |_| Err(Failure::transient("no answer"))).await }
        .boxed()
}

fn hold(context: Context, _: Payload) -> BoxFuture<'static, Outcome> {
    async move { context.signal("go").map_err(cannot_ask)?.await }.boxed()
}

fn approve(context: Context, _: Payload) -> BoxFuture<'static, Outcome> {
    async move { context.approval("ok", vec!["operator".into()]).map_err(cannot_ask)?.await }.boxed()
}

fn poison(context: Context, _: Payload) -> BoxFuture<'static, Outcome> {
    async move { step(&context, "read", Policy::once(), |_| Err(Failure::poison("not a letter"))).await }.boxed()
}

/// Gets over a letter, and waits.
fn stuck(context: Context, _: Payload) -> BoxFuture<'static, Outcome> {
    async move {
        let _nobody_can_read_it = step(&context, "read", Policy::once(), |_| Err(Failure::poison("not a letter"))).await;
        context.signal("go").map_err(cannot_ask)?.await
    }
    .boxed()
}

/// An engine with the workflows of the tests.
/// A store with more runs than a search looks at at once; the oldest one is called `needle`.
pub(crate) async fn many_runs() -> Memory {
    let store = Memory::new();
    let row = |number: i64| RunRow {
        shard: 0,
        run: RunId::new(if number == 0 { "needle".into() } else { format!("run-{number}") }).unwrap(),
        workflow: WorkflowName::new("echo").unwrap(),
        tenant: None,
        status: if number == 0 { Status::Cancelled } else { Status::Completed },
        wait: None,
        text: None,
        recover: None,
        started_at: Timestamp::from_micros(1_767_225_600_000_000 + number),
        ended_at: Some(Timestamp::from_micros(1_767_225_700_000_000)),
        task: None,
    };
    let head = store.claim(0).await.unwrap();
    let fences = vec![Fence { shard: 0, term: head.term, after: head.seq, upto: head.seq + 1 }];
    let runs = (0..=i64::try_from(EXAMINED_MAX).unwrap()).map(row).collect();
    store.commit(Batch { fences, runs, ..Batch::default() }).await.unwrap();
    store
}

pub(crate) async fn engine(store: Memory, callbacks: Callbacks, caller: CallerSettings, world: &World) -> Engine {
    builder(store, callbacks, caller, world).start().await.unwrap()
}

/// The same, before it is started.
pub(crate) fn builder(store: Memory, callbacks: Callbacks, caller: CallerSettings, world: &World) -> Builder {
    let config = steadfast_runtime::Config { callbacks, ..steadfast_runtime::Config::default() };
    let caller: Arc<dyn Caller> = Arc::new(HttpCaller::new(caller).unwrap());
    let redeliver: Arc<dyn Redeliver> = Arc::new(Post);
    let builder = Builder { config, caller: Some(caller), redeliver: Some(redeliver), ..Builder::new(Arc::new(store)) };
    let flows: [(&str, Arc<dyn Code>); 9] = [
        ("echo", Arc::new(Flow(echo))),
        ("fail", Arc::new(Flow(fail))),
        ("flaky", Arc::new(Flow(flaky))),
        ("sick", Arc::new(Flow(sick))),
        ("hold", Arc::new(Flow(hold))),
        ("approve", Arc::new(Flow(approve))),
        ("team/poison", Arc::new(Flow(poison))),
        ("stuck", Arc::new(Flow(stuck))),
        ("strict", Arc::new(Strict)),
    ];
    for (name, code) in flows {
        builder.registry.insert(WorkflowName::new(name).unwrap(), Registered::new(code));
    }
    world.register(&builder.registry);
    builder
}

/// A configuration for a free port.
pub(crate) fn config() -> Config {
    Config { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Config::default() }
}

/// A server, its engine, and a client.
pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) store: Memory,
    /// What the stages of plans do.
    pub(crate) world: World,
    pub(crate) addr: SocketAddr,
    pub(crate) http: reqwest::Client,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) served: JoinHandle<()>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {:?}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The code of the problem that it is.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        let code = problem["code"].as_str().unwrap().to_string();
        assert_eq!((problem["status"].as_u64(), problem["type"].as_str()), (Some(status.into()), Some(&*format!("docs/errors/{code}"))));
        assert!(!problem["title"].as_str().unwrap().is_empty() && !problem["detail"].as_str().unwrap().is_empty());
        code
    }
}

impl Site {
    pub(crate) async fn new() -> Self {
        Site::with(config(), Parts::default()).await
    }

    pub(crate) async fn with(config: Config, parts: Parts) -> Self {
        Site::calling(config, parts, Callbacks::default(), CallerSettings::default()).await
    }

    /// One that tells of expiries so.
    pub(crate) async fn calling(config: Config, parts: Parts, callbacks: Callbacks, caller: CallerSettings) -> Self {
        let (store, world) = (Memory::new(), World::default());
        let engine = engine(store.clone(), callbacks, caller, &world).await;
        Site::before(engine, store, world, config, parts).await
    }

    /// Its process dies, and another one has its store.
    pub(crate) async fn restarted(self) -> Self {
        self.engine.abort();
        let (store, world) = (self.store.reopen(), self.world.clone());
        drop(self);
        let engine = engine(store.clone(), Callbacks::default(), CallerSettings::default(), &world).await;
        Site::before(engine, store, world, config(), Parts::default()).await
    }

    pub(crate) async fn before(engine: Engine, store: Memory, world: World, config: Config, parts: Parts) -> Self {
        let server = Server::bind(config, engine.clone(), parts).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let addr = server.addr();
        let served = tokio::spawn(server.serve(async move { drop(stopped.await) }));
        steadfast_tls::install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Site { engine, store, world, addr, http, stop: Some(stop), served }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Got {
        let answer = tokio::time::timeout(PATIENCE, request.send()).await.expect("an answer").unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert!(headers.contains_key("x-request-id"));
        let bytes = tokio::time::timeout(PATIENCE, answer.bytes()).await.expect("the end of the answer").unwrap();
        Got { status, headers, text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.url(path))
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Got {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    /// Puts a key.
    pub(crate) async fn put(&self, key: &str, body: Value) -> Got {
        self.send(self.request(Method::PUT, &format!("/v1/keys/{key}")).json(&body)).await
    }

    /// Starts a run and waits for its end, if it comes to one within a while.
    pub(crate) async fn run(&self, body: Value) -> Value {
        let got = self.post("/v1/runs", body).await;
        assert!(got.status.is_success(), "{}", got.text);
        got.json()
    }

    /// Waits until a run is in that status.
    pub(crate) async fn until(&self, run: &str, status: &str) -> Value {
        let look = async {
            loop {
                let seen = self.get(&format!("/v1/runs/{run}")).await.json();
                if seen["status"] == status {
                    return seen;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("{run} is never {status}"))
    }
}

/// Sends bytes and reads all that comes back.
pub(crate) async fn raw(site: &Site, request: &str) -> String {
    let mut stream = TcpStream::connect(site.addr).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .expect("the end of the answer")
        .unwrap();
    String::from_utf8(answer).unwrap()
}

/// Waits for a fact, with a bound.
pub(crate) async fn until(what: &str, mut fact: impl AsyncFnMut() -> bool) {
    let come = async {
        while !fact().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, come)
        .await
        .unwrap_or_else(|_| panic!("it never came to this: {what}"));
}
