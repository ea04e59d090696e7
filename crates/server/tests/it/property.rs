//! Requests made from the OpenAPI document, valid and not, against the real server: it never breaks, and does as it says.

use crate::plans::How;
use crate::schema::Document;
use crate::support::{Got, Site, config};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use steadfast_server::{Config, Parts};

/// How many requests are made; `STEADFAST_CASES` says otherwise.
const CASES: u32 = 1500;

/// One operation of the document.
#[derive(Clone, Debug)]
struct Operation {
    method: String,
    path: String,
    params: Vec<String>,
    /// The schema of its body.
    body: Option<Value>,
}

/// One request.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    path: String,
    ids: Vec<String>,
    query: Vec<(String, String)>,
    key: Option<String>,
    kind: Option<&'static str>,
    body: Option<Said>,
}

/// What a body says.
#[derive(Clone, Debug)]
enum Said {
    Json(Value),
    Bytes(Vec<u8>),
}

fn operations(document: &Document) -> Vec<Operation> {
    let operation = |(method, path, said): (&str, &str, &Value)| Operation {
        method: method.into(),
        path: path.into(),
        params: said["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|param| param["in"] == "query")
            .map(|param| param["name"].as_str().unwrap().into())
            .collect(),
        body: said["requestBody"]["content"]["application/json"].get("schema").cloned(),
    };
    document.operations().map(operation).collect()
}

/// Text that somebody might send: what is there, what could be, and what cannot.
fn text() -> BoxedStrategy<String> {
    prop_oneof![
        4 => select(vec!["done", "failed", "held", "told", "stuck", "team/poison.1", "stuck.1", "go", "ok", "echo", "a/pause", "charge#1", "reserve", "kept", "kept:a/b", "plan", "plan/acme", "acme", "calm", "switch"]).prop_map(String::from),
        2 => "[A-Za-z0-9._/-]{1,20}",
        1 => "[0-9]{1,25}",
        1 => select(vec!["", ".", "..", "/", "a//b", "%", "%2F", "a%2Fb", " ", "\u{0}", "null", "-1", "0", "1", "50", "1e3", "FAILED", "SIGNAL", "RUN_COMPLETED,RUN_FAILED", "TASK_CREATED", "READY"]).prop_map(String::from),
        1 => "\\PC{0,12}",
        1 => any::<String>(),
        1 => Just("x".repeat(200)),
    ]
    .boxed()
}

fn number() -> BoxedStrategy<Value> {
    prop_oneof![
        (0u64..100).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(1e300)),
    ]
    .boxed()
}

fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number(), text().prop_map(Value::from)];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let object = btree_map(text(), inner.clone(), 0..4).prop_map(|map| Value::Object(map.into_iter().collect()));
        prop_oneof![vec(inner, 0..4).prop_map(Value::Array), object]
    })
    .boxed()
}

/// What a schema describes, for the most part.
fn described(document: &Value, schema: &Value) -> BoxedStrategy<Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(|at| at.rsplit('/').next()) {
        return described(document, &document["components"]["schemas"][name]);
    }
    if let Some(one) = schema["oneOf"].as_array() {
        return proptest::strategy::Union::new(one.iter().map(|schema| described(document, schema))).boxed();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("null") => Just(Value::Null).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => {
            prop_oneof![(1u64..1000).prop_map(Value::from), any::<u32>().prop_map(|n| Value::from(u64::from(n) + 1))].boxed()
        }
        Some("string") if schema.get("pattern").is_some() => prop_oneof![
            select(vec!["echo", "fail", "hold", "strict", "done", "switch", "careful", "plan", "acme"]).prop_map(Value::from),
            "[A-Za-z0-9_-]{1,20}".prop_map(Value::from)
        ]
        .boxed(),
        Some("string") => "\\PC{1,12}".prop_map(Value::from).boxed(),
        Some("array") => vec(described(document, &schema["items"]), 0..4).prop_map(Value::Array).boxed(),
        Some("object") => object(document, schema),
        _ => anything(),
    }
}

fn object(document: &Value, schema: &Value) -> BoxedStrategy<Value> {
    let Some(properties) = schema["properties"].as_object() else {
        let values = described(document, &schema["additionalProperties"]);
        return btree_map("[a-z]{1,8}(#[0-9])?", values, 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
            .boxed();
    };
    let required = |name: &str| schema["required"].as_array().is_some_and(|required| required.iter().any(|one| one == name));
    let fields: Vec<_> = properties
        .iter()
        .map(|(name, schema)| {
            let value = described(document, schema);
            let field = if required(name) { value.prop_map(Some).boxed() } else { option::weighted(0.4, value).boxed() };
            (Just(name.clone()), field)
        })
        .collect();
    let whole =
        |fields: Vec<(String, Option<Value>)>| Value::Object(fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect());
    fields.prop_map(whole).boxed()
}

/// A body: as described, nearly so, or not at all.
fn body(document: &Value, schema: &Value) -> BoxedStrategy<Said> {
    let good = described(document, schema);
    let changed = (described(document, schema), any::<prop::sample::Index>(), anything()).prop_map(|(mut body, at, value)| {
        if let Some((_, field)) = body.as_object_mut().filter(|fields| !fields.is_empty()).map(|fields| at_index(fields, at)) {
            *field = value;
        }
        body
    });
    let more = (described(document, schema), "[a-zA-Z]{1,10}", anything()).prop_map(|(mut body, name, value)| {
        if let Some(fields) = body.as_object_mut() {
            fields.insert(name, value);
        }
        body
    });
    prop_oneof![
        5 => good.prop_map(Said::Json),
        3 => changed.prop_map(Said::Json),
        2 => more.prop_map(Said::Json),
        1 => anything().prop_map(Said::Json),
        1 => vec(any::<u8>(), 0..40).prop_map(Said::Bytes),
    ]
    .boxed()
}

fn at_index(fields: &mut Map<String, Value>, at: prop::sample::Index) -> (&String, &mut Value) {
    let index = at.index(fields.len());
    fields.iter_mut().nth(index).expect("it has one")
}

fn asked(document: &Value, operation: &Operation) -> BoxedStrategy<Asked> {
    let (method, path) = (operation.method.clone(), operation.path.clone());
    let ids = vec(text(), path.matches('{').count());
    let names = operation.params.iter().cloned().chain(["nonsense".to_string()]).collect::<Vec<_>>();
    let query = prop_oneof![Just(Vec::new()), vec((select(names), text()), 0..4)];
    let key = option::weighted(0.3, prop_oneof!["[ -~]{1,40}".boxed(), Just("x".repeat(300)).boxed()]);
    let kind = prop_oneof![
        8 => Just(Some("application/json")),
        1 => select(vec![None, Some("text/plain"), Some("application/json; charset=utf-8"), Some("application/x-www-form-urlencoded"), Some("json")]),
    ];
    let body = match &operation.body {
        Some(schema) => option::weighted(0.9, body(document, schema)).boxed(),
        None => Just(None).boxed(),
    };
    (ids, query, key, kind, body)
        .prop_map(move |(ids, query, key, kind, body)| Asked { method: method.clone(), path: path.clone(), ids, query, key, kind, body })
        .boxed()
}

impl Asked {
    /// A client takes `.` and `..` away before it asks, however they are written; three dots are sent.
    fn url(&self) -> String {
        let mut path = self.path.clone();
        for id in &self.ids {
            let id = if [".", ".."].contains(&&**id) { "..." } else { id };
            let (start, end) = (path.find('{').expect("a place"), path.find('}').expect("a place"));
            let encoded: String = id
                .bytes()
                .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
                .collect();
            path.replace_range(start..=end, &encoded);
        }
        let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        if query.is_empty() { path } else { format!("{path}?{query}") }
    }

    async fn send(&self, site: &Site) -> Got {
        let mut request = site.request(Method::from_bytes(self.method.to_uppercase().as_bytes()).expect("a method"), &self.url());
        for (name, value) in [("idempotency-key", self.key.as_deref()), ("content-type", self.kind)] {
            if let Some(value) = value.filter(|_| name != "content-type" || self.body.is_some()) {
                request = request.header(name, value);
            }
        }
        request = match &self.body {
            Some(Said::Json(value)) => request.body(value.to_string()),
            Some(Said::Bytes(bytes)) => request.body(bytes.clone()),
            None => request,
        };
        if self.path != "/v1/events" {
            return site.send(request).await;
        }
        let answer = request.send().await.expect("an answer");
        let (status, headers) = (answer.status(), answer.headers().clone());
        let text = if status == 200 { String::new() } else { answer.text().await.expect("a body") };
        Got { status, headers, text }
    }

    fn says_json(&self) -> bool {
        self.kind.is_some_and(|kind| kind.starts_with("application/json"))
    }
}

/// The server does as its document says.
fn judge(document: &mut Document, operation: &Operation, asked: &Asked, got: &Got) -> Result<(), TestCaseError> {
    let status = got.status.as_u16();
    prop_assert!(status < 500 && status != 429, "{status}: {}", got.text);
    if status >= 400 {
        let code = got.problem(status);
        if ["SF0504", "SF0505"].contains(&&*code) {
            return Ok(()); // the id was none, so it was another path
        }
    }
    document.check(&asked.method, &asked.path, got);
    if asked.query.iter().any(|(name, _)| name == "nonsense") && operation_takes_parameters(document, operation) {
        prop_assert!((400..500).contains(&status), "a parameter that is not known was taken: {status}");
    }
    if let (Some(schema), Some(Said::Json(body)), true) = (&operation.body, &asked.body, asked.says_json()) {
        let fits = document.validator(schema).is_valid(body);
        prop_assert!(fits || (400..500).contains(&status), "a body that is not as described was taken: {status} {body}");
    }
    if let (Some(_), Some(Said::Bytes(bytes)), 200..300) = (&operation.body, &asked.body, status) {
        prop_assert!(bytes.is_empty() || serde_json::from_slice::<Value>(bytes).is_ok(), "bytes that are not JSON were taken");
    }
    Ok(())
}

fn operation_takes_parameters(document: &Document, operation: &Operation) -> bool {
    document.json["paths"][&operation.path][&operation.method]["responses"].get("400").is_some()
}

#[test]
fn the_server_does_as_its_document_says() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let seed = number("STEADFAST_SEED").unwrap_or_else(|| RandomState::new().hash_one(()));
    println!("seed {seed}; again with STEADFAST_SEED={seed} cargo test -p steadfast-server property");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let site = runtime.block_on(async {
        let config = Config { wait_max: Duration::from_millis(2), ..config() };
        let site = Site::with(config, Parts::default()).await;
        for (workflow, id) in
            [("echo", "done"), ("fail", "failed"), ("hold", "held"), ("hold", "told"), ("stuck", "stuck"), ("team/poison", "p")]
        {
            site.run(json!({"workflow": workflow, "id": id})).await;
        }
        for key in ["kept", "kept:a/b"] {
            site.put(key, json!({"value": key, "ttlMs": 3_600_000})).await;
        }
        site.world.script("calm/move", &[How::Ails]);
        site.switch("plan", &["acme", "calm"]).await;
        site
    });
    let document = RefCell::new(Document::new());
    let operations = operations(&document.borrow());
    let json = document.borrow().json.clone();
    let one = (0..operations.len()).prop_flat_map(|index| (Just(index), asked(&json, &operations[index])));
    let cases = number("STEADFAST_CASES").map_or(CASES, |cases| cases as u32);
    let bytes: Vec<u8> = (0..4u64).flat_map(|part| (seed ^ part).to_le_bytes()).collect();
    let settings = Cases { cases, failure_persistence: None, max_shrink_iters: 200, ..Cases::default() };
    let mut runner = TestRunner::new_with_rng(settings, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let outcome = runner.run(&one, |(index, asked)| {
        let got = runtime.block_on(asked.send(&site));
        judge(&mut document.borrow_mut(), &operations[index], &asked, &got)
    });
    if let Err(failed) = outcome {
        panic!("{failed}\nseed {seed}");
    }
}
