//! Telling those who answer at an address that a key has expired.
//!
//! The engine decides when, how often and in which lane (`steadfast_runtime`'s callbacks); here is one call: `address.rs` says whom this server may call at all; an
//! answer means what it means for `http` steps. Neither the value of a key nor the path and query of an address get into messages or logs: both may hold secrets.
//!
//! Tested by `crates/cli/tests/it/callbacks.rs`.

mod address;

use crate::error::Error;
use crate::shapes::{Data, Time};
use address::Hosts;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderName};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde::Serialize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast_definitions::answered::{refused, unreachable};
use steadfast_kernel::{Code, Failure};
use steadfast_runtime::clock::{Clock, SystemClock};
use steadfast_runtime::{Call, Caller};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How much of an answer is read, and for how long, so that its connection can be used again. It is thrown away.
const DRAINED_MAX: usize = 64 << 10;
const DRAIN_WITHIN: Duration = Duration::from_secs(1);

/// Whom this server may call, and what it calls itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerSettings {
    /// The hosts that may be called: names, or `*.example.com` for all below one. All of them if there is none.
    pub hosts: Vec<String>,
    /// What the server calls itself; `steadfast/VERSION` unless it is told otherwise.
    pub user_agent: Option<String>,
}

/// Tells of expiries over HTTP.
pub struct HttpCaller {
    hosts: Hosts,
    user_agent: String,
    client: Arc<OnceLock<Client>>,
}

/// What is said.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    key: String,
    value: Data,
    owner: Option<String>,
    revision: u64,
    expired_at: Time,
    attempt: u32,
}

impl HttpCaller {
    /// One who may call these hosts.
    ///
    /// # Errors
    /// If a host cannot be one, or the name cannot stand in a header.
    pub fn new(settings: CallerSettings) -> Result<Self, Error> {
        let user_agent = settings.user_agent.unwrap_or_else(|| concat!("steadfast/", env!("CARGO_PKG_VERSION")).into());
        if http::HeaderValue::from_str(&user_agent).is_err() {
            return Err(Error::CallerUnusable { why: "its name (user_agent) has characters that a header cannot have".into() });
        }
        let hosts = Hosts::new(&settings.hosts).map_err(|why| Error::CallerUnusable { why })?;
        Ok(HttpCaller { hosts, user_agent, client: Arc::default() })
    }

    /// The client, made when it is needed first, and beside everything else: reading the certificates of the machine takes a while.
    fn client(&self) -> impl Future<Output = Result<Client, Failure>> + Send + 'static {
        let (client, user_agent) = (Arc::clone(&self.client), self.user_agent.clone());
        async move {
            if let Some(client) = client.get() {
                return Ok(client.clone());
            }
            let made = tokio::task::spawn_blocking(move || make_client(&user_agent)).await;
            let made = made.map_err(|error| Failure::transient("the HTTP client cannot be made").cause(error))??;
            Ok(client.get_or_init(|| made).clone())
        }
    }
}

fn make_client(user_agent: &str) -> Result<Client, Failure> {
    steadfast_tls::install_default();
    Client::builder()
        .redirect(Policy::none()) // nobody else is to say whom this server calls next
        .referer(false)
        .user_agent(user_agent)
        .build()
        .map_err(|error| Failure::new(Code::Unavailable, "the HTTP client cannot be made").cause(error))
}

impl Caller for HttpCaller {
    fn check(&self, url: &str) -> Result<(), String> {
        self.hosts.check(url).map(drop)
    }

    fn target(&self, url: &str) -> String {
        Url::parse(url).map_or_else(|_| url.into(), |url| origin(&url))
    }

    fn call(&self, url: &str, call: Call) -> BoxFuture<'static, Result<(), Failure>> {
        // who may be called may have changed since the key was put
        let url = self
            .hosts
            .check(url)
            .map_err(|why| Failure::permanent(format!("it may not be called any more: {why}")));
        let client = self.client();
        async move { tell(client.await?, url?, call).await }.boxed()
    }
}

async fn tell(client: Client, url: Url, call: Call) -> Result<(), Failure> {
    let (target, idempotency_key) = (origin(&url), call.idempotency_key());
    let told = Told {
        key: call.key.to_string(),
        value: (&call.value).into(),
        owner: call.owner,
        revision: call.revision,
        expired_at: Time(call.expired_at),
        attempt: call.attempt,
    };
    let body = serde_json::to_vec(&told).map_err(|error| Failure::permanent("it cannot be written as JSON").cause(error))?;
    let request = client.post(url).header(CONTENT_TYPE, "application/json").header(IDEMPOTENCY_KEY, idempotency_key);
    let response = request.body(body).send().await.map_err(|error| unreachable(&target, &error))?;
    let outcome = outcome(&target, &response);
    tokio::spawn(drain(response)); // what was answered counts from here on, however long the rest of it takes
    outcome
}

/// What came of a call: any 2xx is told. Nothing of the answer but its status is said: it may be anything.
fn outcome(target: &str, response: &Response) -> Result<(), Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let mut failure = refused(target, status, response.headers(), SystemClock.now());
    if status.is_redirection() {
        failure.message.push_str("; redirects are not followed, so give the address that it leads to");
    }
    Err(failure)
}

/// Scheme, host and port: those that share them also share their fate.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

async fn drain(mut response: Response) {
    let all = async {
        let mut bytes = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes += chunk.len();
            if bytes > DRAINED_MAX {
                return;
            }
        }
    };
    let _its_connection_is_closed = tokio::time::timeout(DRAIN_WITHIN, all).await;
}
