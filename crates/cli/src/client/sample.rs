//! A run as the API shows it, for tests.

use serde_json::{Value, json};
use steadfast_server::shapes::Run;

/// A run called `r`, with these fields instead of the usual ones.
pub(crate) fn run(fields: Value) -> Run {
    let mut run = json!({"id": "r", "workflow": "w", "status": "WAITING", "epoch": 1, "waits": [], "input": null, "startedAt": "2026-01-01T11:00:00Z",
        "recovery": "automatic", "children": [], "events": 1, "steps": []});
    if let (Value::Object(run), Value::Object(fields)) = (&mut run, fields) {
        run.extend(fields);
    }
    serde_json::from_value(run).unwrap_or_else(|error| panic!("{error}"))
}

/// A failure with that message, code and number of attempts.
pub(crate) fn failure(message: &str, code: &str, attempts: u32) -> Value {
    json!({"class": "permanent", "code": code, "message": message, "causes": [], "attempts": attempts})
}
