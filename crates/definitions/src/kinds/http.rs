//! `http`: a request, and what its answer means.

mod answer;

use super::{Attempt, Tools};
use crate::answered::unreachable;
use crate::document::{Fields, Key, Node};
use crate::problem::Report;
use crate::suggest;
use crate::template::{Place, Scope, Template, invalid};
use answer::Answer;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request, Url};
use serde_json::Value as Json;
use steadfast_kernel::Failure;

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

#[derive(Clone, Debug)]
pub(crate) struct Http {
    method: Method,
    url: Template,
    headers: Vec<(HeaderName, Template)>,
    body: Option<Template>,
    expect: Expect,
}

/// What the body of an answer is taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    /// JSON if the answer says so, else text.
    #[default]
    AsItSays,
    Json,
    Text,
}

impl Http {
    pub(super) fn read(node: &Node, place: Place, report: &mut Report) -> Option<Self> {
        let mut fields = Fields::of(node, "http", report)?;
        let method = fields.take("method").map(|node| read_method(node, report));
        let url = fields.need("url", report).map(|node| read_url(node, place, report));
        let headers = fields.take("headers").and_then(|node| node.map("headers", report));
        let body = fields.take("body").map(|node| Template::read(node, place, report));
        let expect = fields.take("expect").and_then(|node| read_expect(node, report));
        fields.end(report);
        let headers = headers
            .unwrap_or_default()
            .iter()
            .filter_map(|(key, node)| read_header(key, node, place, report))
            .collect();
        Some(Http { method: method.unwrap_or(Some(Method::GET))?, url: url?, headers, body, expect: expect.unwrap_or_default() })
    }

    pub(super) async fn attempt(&self, scope: &Scope, of: &Attempt, tools: &Tools) -> Result<Json, Failure> {
        let request = self.request(scope, of)?;
        let target = shown(&request);
        let response = tools.client()?.execute(request).await.map_err(|error| unreachable(&target, &error))?;
        let answer = Answer { target, response, bytes_max: tools.settings.response_bytes_max };
        answer.output(self.expect).await
    }

    fn request(&self, scope: &Scope, of: &Attempt) -> Result<Request, Failure> {
        let step = &of.step;
        let url = self.url.text(scope, step, "http.url")?;
        let url = Url::parse(&url).map_err(|error| invalid(step, "http.url", &format!("it gave no address: {error}")))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(invalid(step, "http.url", "it gave an address that begins with neither http:// nor https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(step, "http.url", "it has a name or password in its address; use the header Authorization"));
        }
        let mut request = Request::new(self.method.clone(), url);
        *request.headers_mut() = self.headers(scope, of)?;
        match self.body.as_ref().map(|body| body.render(scope, step, "http.body")).transpose()? {
            None => {}
            Some(Json::String(text)) => *request.body_mut() = Some(text.into()),
            Some(value) => {
                request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
                *request.body_mut() = Some(value.to_string().into());
            }
        }
        Ok(request)
    }

    /// The definition's own go before ours.
    fn headers(&self, scope: &Scope, of: &Attempt) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        for (name, template) in &self.headers {
            let field = format!("http.headers.{name}");
            let text = template.text(scope, &of.step, &field)?;
            let value =
                HeaderValue::from_str(&text).map_err(|_| invalid(&of.step, &field, "it gave characters that a header cannot have"))?;
            headers.append(name, value);
        }
        for (name, value) in [(IDEMPOTENCY_KEY, Some(&of.idempotency_key)), (TRACEPARENT, of.traceparent.as_ref())] {
            if let Some(Ok(value)) = value.map(|value| HeaderValue::from_str(value)) {
                headers.entry(name).or_insert(value);
            }
        }
        Ok(headers)
    }
}

/// Method, host and path: what may stand in a message. Queries often hold secrets.
fn shown(request: &Request) -> String {
    let url = request.url();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{} {}{port}{}", request.method(), url.host_str().unwrap_or_default(), url.path())
}

fn read_method(node: &Node, report: &mut Report) -> Option<Method> {
    let name = node.text("method", report)?;
    if !METHODS.contains(&name) {
        report.add(node.at, format!("there is no method `{name}`"), suggest::help(name, METHODS));
        return None;
    }
    Method::from_bytes(name.as_bytes()).ok()
}

fn read_url(node: &Node, place: Place, report: &mut Report) -> Template {
    let url = Template::read_one(node, "url", place, report);
    match url.constant() {
        Some(Json::String(text)) if !Url::parse(&text).is_ok_and(|url| ["http", "https"].contains(&url.scheme())) => {
            report.wrong_with_help(node.at, "`url` is not an address", "write the whole address: https://host/path");
        }
        _ => {}
    }
    url
}

fn read_header(key: &Key, node: &Node, place: Place, report: &mut Report) -> Option<(HeaderName, Template)> {
    let value = Template::read_one(node, &key.name, place, report);
    match HeaderName::from_bytes(key.name.as_bytes()) {
        Ok(name) => Some((name, value)),
        Err(_) => {
            report.wrong(key.at, format!("`{}` cannot be the name of a header", key.name));
            None
        }
    }
}

fn read_expect(node: &Node, report: &mut Report) -> Option<Expect> {
    match node.text("expect", report)? {
        "json" => Some(Expect::Json),
        "text" => Some(Expect::Text),
        other => {
            report.add(node.at, format!("`expect` cannot be `{other}`"), suggest::help(other, ["json", "text"]));
            None
        }
    }
}
