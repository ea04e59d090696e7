use crate::served::Served;
use crate::steadfast::{steadfast, until};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_start_prints_the_id_and_a_wait_prints_the_result() {
    let served = Served::new();
    let called = served.call(&["run", "start", "greet", "--input", r#"{"name":"Ada"}"#, "--id", "a/1"]).ends_with(0);
    assert_eq!(called.out, "a/1\n");
    let called = served.call(&["run", "start", "greet", "--input", r#"{"name":"Ada"}"#, "--wait"]).ends_with(0);
    assert_eq!(called.out, "{\"text\":\"Hello, Ada\"}\n");
    std::fs::write(served.dir.join("in.json"), r#"{"name":"Bob"}"#).unwrap();
    let json = served
        .call(&["run", "start", "greet", "--input", "@in.json", "--wait=30s", "--json", "--tenant", "acme"])
        .ends_with(0)
        .json();
    assert_eq!((&json["status"], &json["result"]["text"], &json["tenant"]), (&"COMPLETED".into(), &"Hello, Bob".into(), &"acme".into()));
}

#[test]
fn the_same_start_again_is_the_same_run_and_another_is_refused() {
    let served = Served::new();
    for _again in 0..2 {
        served.call(&["run", "start", "ask", "--id", "one", "--input", "1"]).ends_with(0);
    }
    served
        .call(&["run", "start", "ask", "--id", "one", "--input", "2"])
        .ends_with(1)
        .says(&["SF0103", "docs/errors/SF0103.md"]);
    served.call(&["run", "start", "nowhere"]).ends_with(1).says(&["SF0102", "greet"]);
    served.call(&["run", "show", "nobody"]).ends_with(1).says(&["SF0104"]);
    assert_eq!(served.call(&["run", "list", "--json"]).json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_failed_run_is_understood_mended_and_retried() {
    let served = Served::new();
    served.call(&["run", "start", "mend", "--id", "m", "--wait"]).ends_with(1).says(&[
        "look: failed",
        "m failed: ",
        "steadfast run show m",
    ]);
    served
        .call(&["run", "start", "mend", "--id", "m", "--wait", "--json"])
        .ends_with(1)
        .prints(&["\"FAILED\""]);
    served.call(&["run", "why", "m"]).ends_with(0).prints(&["it failed", "steadfast run retry m"]);
    served
        .call(&["run", "show", "m"])
        .ends_with(0)
        .prints(&["m  mend  FAILED", "✗", "look", "TIMELINE"]);
    served.call(&["run", "list", "--status", "failed"]).ends_with(0).prints(&["m  ", "FAILED"]);
    std::fs::write(served.dir.join("definitions/mended"), "").unwrap();
    served
        .call(&["run", "retry", "m", "--dry-run"])
        .ends_with(0)
        .prints(&["life 2 would begin", "done again", "look#1"]);
    served
        .call(&["run", "retry", "m", "--reason", "the file is there"])
        .ends_with(0)
        .says(&["m begins another life"]);
    served.until_status("m", "COMPLETED");
    served
        .call(&["run", "events", "m"])
        .ends_with(0)
        .prints(&["RUN_RETRIED", "the file is there", "RUN_COMPLETED"]);
    served.call(&["run", "replay", "m"]).ends_with(0).prints(&["consistent"]);
}

#[test]
fn a_step_can_be_supplied_and_a_run_begun_from_the_start() {
    let served = Served::new();
    served.call(&["run", "start", "mend", "--id", "m", "--wait"]).ends_with(1);
    served.call(&["run", "retry", "m", "--output", r#"look={"exitCode":0}"#]).ends_with(0);
    served.until_status("m", "COMPLETED");
    served
        .call(&["run", "start", "greet", "--id", "g", "--input", r#"{"name":"Ada"}"#, "--wait"])
        .ends_with(0);
    served.call(&["run", "retry", "g", "--input", r#"{"name":"Eve"}"#]).ends_with(0);
    until("it greets Eve", || (served.run("g")["result"]["text"] == "Hello, Eve").then_some(()));
    served
        .call(&["run", "retry", "g", "--from-start", "--dry-run", "--json"])
        .ends_with(0)
        .prints(&["\"runsAgain\""]);
}

#[test]
fn pause_resume_and_cancel_are_kept_with_their_reason() {
    let served = Served::new();
    served.call(&["run", "start", "again", "--id", "r"]).ends_with(0);
    served.until_status("r", "WAITING");
    served
        .call(&["run", "why", "r"])
        .ends_with(0)
        .prints(&["step look is tried again in 59 min, attempt 2 of 3"]);
    served
        .call(&["run", "pause", "r", "--reason", "hold on"])
        .ends_with(0)
        .says(&["steadfast run resume r"]);
    served.call(&["run", "why", "r"]).prints(&["it was paused", "hold on"]);
    served.call(&["run", "list", "--status", "PAUSED", "--json"]).prints(&["\"r\""]);
    served.call(&["run", "resume", "r", "--json"]).ends_with(0).prints(&["\"WAITING\""]);
    for _again in 0..2 {
        served.call(&["run", "cancel", "r", "--reason", "enough", "--idempotency-key", "k1"]).ends_with(0);
    }
    served.until_status("r", "CANCELLED");
    served.call(&["run", "cancel", "r"]).ends_with(1).says(&["SF0"]);
    let events = served.call(&["run", "events", "r", "--json"]).json();
    let asked = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["eventType"] == "RUN_CANCEL_REQUESTED")
        .count();
    assert_eq!(asked, 1, "{events}");
}

#[test]
fn an_approval_is_a_signal_and_counts_once() {
    let served = Served::new();
    served.call(&["run", "start", "ask", "--id", "q"]).ends_with(0);
    served.until_status("q", "WAITING");
    served
        .call(&["run", "why", "q"])
        .prints(&["it waits for operator to approve ok", "steadfast run signal q ok"]);
    served.call(&["run", "list", "--wait", "approval"]).prints(&["q  "]);
    served.call(&["run", "pause", "q"]).ends_with(0);
    let approve = ["run", "signal", "q", "ok", "--payload", r#"{"approved":true}"#, "--id", "s1", "--reason", "looks right"];
    served.call(&approve).ends_with(0).says(&["q was told ok"]);
    served.call(&approve).ends_with(0).says(&["told before"]);
    served.call(&["run", "resume", "q"]).ends_with(0);
    served.until_status("q", "COMPLETED");
    assert_eq!(served.run("q")["result"]["approved"], true);
}

#[test]
fn lists_are_filtered_and_come_page_by_page() {
    let served = Served::new();
    for id in ["a", "b", "c"] {
        served
            .call(&["run", "start", "ask", "--id", id, "--tenant", if id == "c" { "x" } else { "y" }])
            .ends_with(0);
    }
    let ids = |args: &[&str]| {
        let json = served.call(args).ends_with(0).json();
        let ids: Vec<String> = json["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().into()).collect();
        (ids, json["nextCursor"].as_str().map(ToOwned::to_owned))
    };
    let (first, cursor) = ids(&["run", "list", "--limit", "2", "--json"]);
    assert_eq!(first, ["c", "b"]);
    assert_eq!(ids(&["run", "list", "--limit", "2", "--json", "--cursor", &cursor.unwrap()]), (vec!["a".into()], None));
    assert_eq!(ids(&["run", "list", "--limit", "1", "--all", "--json"]).0, ["c", "b", "a"]);
    assert_eq!(ids(&["run", "list", "--tenant", "y", "--json"]).0, ["b", "a"]);
    assert_eq!(ids(&["run", "list", "--workflow", "greet", "--json"]).0, Vec::<String>::new());
    served.call(&["run", "list", "--workflow", "greet"]).ends_with(0).says(&["no runs"]);
    served.call(&["run", "list", "--wait", "NOTHING"]).ends_with(2).says(&["APPROVAL"]);
}

/// Takes requests for lists, of which no answer is full, and has an item only in the third.
fn sparse() -> (String, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (server, count) = (format!("http://{}", listener.local_addr().unwrap()), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _request = stream.read(&mut [0; 4096]);
            let items = match counted.fetch_add(1, Ordering::SeqCst) {
                2 => r#"{"id":"found","workflow":"w","status":"FAILED","startedAt":"2026-01-01T00:00:00Z"}"#,
                _ => "",
            };
            let body = format!(r#"{{"items":[{items}],"nextCursor":"c"}}"#);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let _unheard = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    (server, count)
}

#[test]
fn a_search_goes_on_until_it_has_enough() {
    let (dir, (server, count)) = (tempfile::tempdir().unwrap(), sparse());
    let found = steadfast(dir.path(), &["run", "list", "-q", "x", "--limit", "1", "--json", "--server", &server])
        .ends_with(0)
        .json();
    assert_eq!((&found["items"][0]["id"], &found["nextCursor"], count.load(Ordering::SeqCst)), (&"found".into(), &"c".into(), 3));
}

#[test]
fn a_search_that_finds_too_little_stops_and_says_so() {
    let (dir, (server, count)) = (tempfile::tempdir().unwrap(), sparse());
    let stopped = steadfast(dir.path(), &["run", "list", "-q", "x", "--server", &server]).ends_with(0);
    stopped.prints(&["found"]).says(&["the search stops here, before its end; go on with --cursor c"]);
    assert_eq!(count.load(Ordering::SeqCst), 100);
}
