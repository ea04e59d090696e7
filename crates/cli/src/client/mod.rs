//! The command line as a client of the server's HTTP API.

mod body;
mod feed;
mod problem;
#[cfg(test)]
pub(crate) mod sample;

pub(crate) use body::{Body, file_or_stdin, fresh_key, json_argument, value_argument};
pub(crate) use feed::Feed;

use crate::config::{Config, settings};
use crate::error::{Error, chain};
use crate::output::time;
use problem::Problem;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How long a connection may take. A server that is there answers at once.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long an answer may take beyond what the request asks the server to wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How often a request is sent whose answer got lost or which was turned away for a moment.
const TRIES: u32 = 4;
/// How long a server may ask to be left alone before it is not worth waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server, and how to ask it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// Without a slash at the end.
    pub(crate) server: String,
    token: Option<String>,
}

/// What a request says.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Body>,
    /// Makes a repetition of the same request the same request.
    pub(crate) key: Option<String>,
    /// How long the server was asked to wait.
    pub(crate) wait: Duration,
    /// It is not sent again after its answer got lost: the second time it would be answered otherwise.
    pub(crate) once: bool,
}

/// An answer that is no problem.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The body as it came.
    pub(crate) text: String,
    /// What the server says the time is.
    pub(crate) date: Option<String>,
}

impl Answer {
    /// The body as what it is expected to be.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let confused = |error| Error::failed("the server's answer cannot be understood; is it a Steadfast server of this version?", &error);
        serde_json::from_str(&self.text).map_err(confused)
    }
}

impl Client {
    /// A client for the server that the configuration names.
    ///
    /// # Errors
    /// If the token file cannot be read.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let server = config.text(settings::SERVER).unwrap_or(settings::SERVER.default).to_owned();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .user_agent(concat!("steadfast/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&server) {
            builder = builder.no_proxy(); // a proxy would look for the server on its own machine
        }
        let http = builder.build().map_err(|error| Error::failed("cannot make an HTTP client", &error))?;
        Ok(Client { http, server, token: token(config)? })
    }

    pub(crate) async fn get(&self, path: &str, query: Vec<(&'static str, String)>) -> Result<Answer, Error> {
        self.send(Method::GET, path, Ask { query, ..Ask::default() }).await
    }

    pub(crate) async fn post(&self, path: &str, ask: Ask) -> Result<Answer, Error> {
        self.send(Method::POST, path, ask).await
    }

    pub(crate) async fn put(&self, path: &str, ask: Ask) -> Result<Answer, Error> {
        self.send(Method::PUT, path, ask).await
    }

    pub(crate) async fn delete(&self, path: &str, ask: Ask) -> Result<Answer, Error> {
        self.send(Method::DELETE, path, ask).await
    }

    /// Sends a request until it is answered. Nearly all that the command line sends may be repeated: starts have an id, verbs have a key.
    async fn send(&self, method: Method, path: &str, ask: Ask) -> Result<Answer, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let sent = self.request(method.clone(), path, &ask).timeout(ask.wait + ANSWER_WITHIN).send().await;
            let pause = match sent {
                Ok(response) => match turned_away(&response).filter(|_| tries < TRIES) {
                    Some(pause) => pause,
                    None => match answer(response).await {
                        Ok(answer) => return answer,
                        Err(lost) if tries == TRIES || ask.once => return Err(self.unreachable(&lost)),
                        Err(_) => Duration::from_millis(100),
                    },
                },
                Err(error) if error.is_connect() || error.is_timeout() || tries == TRIES || ask.once => {
                    return Err(self.unreachable(&error));
                }
                Err(_) => Duration::from_millis(100),
            };
            time::pass(pause).await;
        }
    }

    fn request(&self, method: Method, path: &str, ask: &Ask) -> RequestBuilder {
        let mut url = format!("{}{path}", self.server);
        for (at, (name, value)) in ask.query.iter().enumerate() {
            url += &format!("{}{name}={}", if at == 0 { '?' } else { '&' }, encoded(value));
        }
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(key) = &ask.key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(body) = &ask.body {
            request = request.header("Content-Type", "application/json").body(body.to_text());
        }
        request
    }

    fn unreachable(&self, error: &reqwest::Error) -> Error {
        let why = if error.is_timeout() { "it did not answer in time".into() } else { root_of(error) };
        Error::Unreachable(format!(
            "no Steadfast server answers at {}: {why}\n  start one with `steadfast serve`, or name another with --server or STEADFAST_SERVER",
            self.server
        ))
    }
}

/// The last cause is the one that people know: "connection refused".
fn root_of(error: &reqwest::Error) -> String {
    let whole = chain(error);
    let mut source: &dyn std::error::Error = error;
    while let Some(next) = source.source() {
        source = next;
    }
    let root = source.to_string();
    let root = root.split(" (os error").next().unwrap_or_default().to_lowercase();
    if root.is_empty() { whole } else { root }
}

/// How long to wait before the same request is sent again, if the server asked for that.
fn turned_away(response: &Response) -> Option<Duration> {
    if ![StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&response.status()) {
        return None;
    }
    let seconds = response.headers().get("retry-after")?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|pause| *pause <= PATIENCE)
}

/// The answer, or the problem that it tells. The outer error means that it got lost on its way.
async fn answer(response: Response) -> Result<Result<Answer, Error>, reqwest::Error> {
    let status = response.status();
    let date = response.headers().get("date").and_then(|date| date.to_str().ok()).map(Into::into);
    let text = response.text().await?;
    Ok(if status.is_success() { Ok(Answer { status, text, date }) } else { Err(Problem::read(status, &text).into_error()) })
}

/// The token by the layer that wins; of the same layer, the one that stands there itself.
pub(crate) fn token(config: &Config) -> Result<Option<String>, Error> {
    let (token, file) = (config.text(settings::TOKEN), config.path(settings::TOKEN_FILE));
    let file_wins = config.origin(settings::TOKEN_FILE).rank() > config.origin(settings::TOKEN).rank();
    match (token, file) {
        (Some(token), None) => Ok(Some(token.into())),
        (Some(token), Some(_)) if !file_wins => Ok(Some(token.into())),
        (_, None) => Ok(None),
        (_, Some(path)) => match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().into())),
            Err(error) => Err(Error::Usage(format!("cannot read the token file {}: {error}", path.display()))),
        },
    }
}

fn is_loopback(server: &str) -> bool {
    let host = reqwest::Url::parse(server)
        .ok()
        .and_then(|url| url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned()));
    host.is_some_and(|host| host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()))
}

/// A part of a path or of a query, with everything that has a meaning there taken out.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_slashes_are_one_part_of_a_path() {
        assert_eq!(encoded("orders/17 ü"), "orders%2F17%20%C3%BC");
    }

    #[test]
    fn a_server_on_this_machine_is_recognised() {
        for (server, is) in [
            ("http://127.0.0.1:7373", true),
            ("http://localhost:1", true),
            ("http://[::1]:7373", true),
            ("https://example.com", false),
            ("http://127.example.com", false),
        ] {
            assert_eq!(is_loopback(server), is, "{server}");
        }
    }
}
