//! What a server tells those who watch over it: metrics, and traces that go on in the services it calls.
//!
//! Subject: `crates/server/src/metrics.rs`.
//! Subject: `crates/server/src/traces/mod.rs`.

use crate::served::Served;
use crate::steadfast::until;
use crate::world::World;
use rustix::process::Signal;

const DEFINITION: &str = "workflow: call
steps:
  - name: call
    http: { method: POST, url: \"{{ vars.world }}/fail-twice\", body: { secret: \"{{ input.secret }}\" } }
    retry: { max_attempts: 3, backoff: constant, base: 10ms }
";

fn serve(dir: &std::path::Path, world: &World, more: &[&str]) -> Served {
    std::fs::create_dir_all(dir.join("definitions")).unwrap();
    std::fs::write(dir.join("definitions/call.yaml"), DEFINITION).unwrap();
    let var = format!("world={}", world.url);
    let args = [&["--listen", "127.0.0.1:0", "--var", &var], more].concat();
    let served = Served::start(dir, &args);
    served
        .call(&["run", "start", "call", "--id", "c", "--input", "{\"secret\":\"hunter2hunter2\"}", "--wait"])
        .ends_with(0);
    served
}

/// The value of a metric, with its labels as they are written.
fn metric(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[test]
fn metrics_count_runs_and_attempts_by_how_they_ended() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let served = serve(dir.path(), &world, &[]);
    let text = served.get("/metrics");
    for (name, value) in [
        ("steadfast_runs_started_total", 1.0),
        ("steadfast_runs_ended_total{status=\"COMPLETED\"}", 1.0),
        ("steadfast_attempts_total{outcome=\"success\"}", 1.0),
        ("steadfast_attempts_total{outcome=\"transient\"}", 2.0),
        ("steadfast_retry_lateness_seconds_count", 2.0),
    ] {
        assert_eq!(metric(&text, name), Some(value), "{name}\n{text}");
    }
    assert!(metric(&text, "steadfast_commit_seconds_count").is_some_and(|commits| commits >= 4.0), "{text}");
    assert!(text.contains("# HELP steadfast_runs_started_total Runs that were started."), "{text}");
    assert!(text.contains("steadfast_commit_seconds_bucket{le=\"0.01\"}"), "{text}");
    assert!(!text.contains("\"c\"") && !text.contains("hunter2"), "{text}");
}

#[test]
fn a_trace_per_run_has_a_span_per_attempt_and_goes_on_in_who_is_called() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::open());
    let mut served = serve(dir.path(), &world, &["--set", &format!("otlp.endpoint={}", world.url)]);
    let called = world.traces("/fail-twice");
    assert_eq!(called.len(), 3);
    served.tell(Signal::TERM);
    assert_eq!(served.ended().code(), Some(0));
    let sent = until("traces are sent", || Some(world.bodies("/v1/traces")).filter(|sent| !sent.is_empty()));
    let spans: Vec<serde_json::Value> = sent
        .iter()
        .map(|body| serde_json::from_str::<serde_json::Value>(body).unwrap())
        .flat_map(|document| document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone())
        .collect();
    let (roots, attempts): (Vec<_>, Vec<_>) = spans.iter().partition(|span| span["parentSpanId"].is_null());
    assert_eq!((roots.len(), attempts.len()), (1, 3), "{spans:#?}");
    let root = roots[0];
    assert_eq!(root["name"], "call");
    for (span, traceparent) in attempts.iter().zip(&called) {
        assert_eq!(span["parentSpanId"], root["spanId"]);
        let expected = format!("00-{}-{}-01", span["traceId"].as_str().unwrap(), span["spanId"].as_str().unwrap());
        assert_eq!(*traceparent, expected, "who is called hears of the span of the attempt");
        let nanos = |field: &str| span[field].as_str().unwrap().parse::<u64>().unwrap();
        assert!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"));
    }
    let codes: Vec<u64> = attempts.iter().map(|span| span["status"]["code"].as_u64().unwrap()).collect();
    assert_eq!(codes, [2, 2, 1], "two failed, one did not");
    assert!(!sent.iter().any(|body| body.contains("hunter2")), "payloads are nobody's business");
}
