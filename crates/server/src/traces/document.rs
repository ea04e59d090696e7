//! Spans as OTLP writes them in JSON. Neither payloads nor messages are in them: those may hold what is nobody's business.

use serde::Serialize;
use serde_json::{Value, json};
use steadfast_kernel::{Failure, Timestamp};
use steadfast_runtime::{Attempted, RunEnded, Span as Ids};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;

/// `STATUS_CODE_OK` and `STATUS_CODE_ERROR`.
const OK: u8 = 1;
const ERROR: u8 = 2;

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    status: Value,
}

impl Span {
    pub(super) fn of_attempt(attempted: &Attempted<'_>) -> Self {
        let step = attempted.step.as_str();
        let name = step.rsplit('/').next().and_then(|last| last.split('#').next()).unwrap_or(step);
        let attributes =
            vec![text("steadfast.run", attempted.run), text("steadfast.step", step), number("steadfast.attempt", attempted.attempt)];
        Span::new(attempted.span.clone(), name, (attempted.began_at, attempted.ended_at), attributes, attempted.failure)
    }

    pub(super) fn of_run(ended: &RunEnded<'_>) -> Self {
        let attributes = vec![
            text("steadfast.run", ended.run),
            text("steadfast.workflow", ended.workflow),
            text("steadfast.status", ended.status.as_str()),
            number("steadfast.epoch", ended.epoch),
        ];
        Span::new(Ids::of_run(ended.run), ended.workflow.as_str(), (ended.began_at, ended.ended_at), attributes, ended.failure)
    }

    fn new(ids: Ids, name: &str, (from, to): (Timestamp, Timestamp), mut attributes: Vec<Value>, failure: Option<&Failure>) -> Self {
        if let Some(failure) = failure {
            attributes.push(text("steadfast.failure.class", failure.class.as_str()));
            attributes.push(text("steadfast.failure.code", failure.code.as_str()));
        }
        Span {
            trace_id: ids.trace,
            span_id: ids.id,
            parent_span_id: ids.parent,
            name: name.into(),
            kind: INTERNAL,
            start_time_unix_nano: nanos(from),
            end_time_unix_nano: nanos(to.max(from)),
            attributes,
            status: json!({ "code": if failure.is_some() { ERROR } else { OK } }),
        }
    }
}

/// What is sent: spans, and who sends them.
pub(super) fn document(spans: &[Span]) -> Value {
    json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", "steadfast"), text("service.version", env!("CARGO_PKG_VERSION"))] },
        "scopeSpans": [{ "scope": { "name": "steadfast" }, "spans": spans }],
    }] })
}

fn text(key: &str, value: impl ToString) -> Value {
    json!({ "key": key, "value": { "stringValue": value.to_string() } })
}

/// 64-bit numbers are texts in OTLP's JSON.
fn number(key: &str, value: u32) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanos(at: Timestamp) -> String {
    (i128::from(at.as_micros()) * 1000).to_string()
}
