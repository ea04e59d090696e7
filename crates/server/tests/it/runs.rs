//! Runs over HTTP.

use crate::plans::World;
use crate::support::{Site, config, engine, many_runs, until};
use reqwest::Method;
use serde_json::{Value, json};
use steadfast_runtime::Callbacks;
use steadfast_server::{CallerSettings, Parts};

#[tokio::test]
async fn a_run_is_started_and_waited_for_in_one_request() {
    let site = Site::new().await;
    let got = site
        .post("/v1/runs", json!({"workflow": "echo", "input": {"a": 1}, "id": "one", "tenant": "acme", "waitMs": 30000}))
        .await;
    assert_eq!(got.status, 201, "{}", got.text);
    let run = got.json();
    assert_eq!((&run["id"], &run["status"], &run["tenant"]), (&json!("one"), &json!("COMPLETED"), &json!("acme")));
    assert_eq!((&run["result"], &run["input"], &run["epoch"]), (&json!({"a": 1}), &json!({"a": 1}), &json!(1)));
    assert!(run["endedAt"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn the_same_start_again_is_the_same_run_and_another_one_is_a_conflict() {
    let site = Site::new().await;
    let start = json!({"workflow": "echo", "input": 1, "id": "one", "waitMs": 30000});
    assert_eq!(site.post("/v1/runs", start.clone()).await.status, 201);
    let again = site.post("/v1/runs", start).await;
    assert_eq!((again.status.as_u16(), &again.json()["status"]), (200, &json!("COMPLETED")));
    let other = site.post("/v1/runs", json!({"workflow": "echo", "input": 2, "id": "one"})).await;
    assert_eq!(other.problem(409), "SF0103");
}

#[tokio::test]
async fn numbers_are_kept_to_the_last_digit() {
    let site = Site::new().await;
    let body = r#"{"workflow":"echo","input":{"b":1.10,"a":123456789012345678901234567890},"waitMs":30000}"#;
    let got = site
        .send(site.request(Method::POST, "/v1/runs").header("content-type", "application/json").body(body))
        .await;
    assert!(got.text.contains(r#""result":{"b":1.10,"a":123456789012345678901234567890}"#), "{}", got.text);
}

#[tokio::test]
async fn a_run_that_goes_on_is_answered_when_the_wait_is_over() {
    let site = Site::new().await;
    let run = site.run(json!({"workflow": "hold", "id": "held", "waitMs": 1})).await;
    assert!(run["status"] != "COMPLETED" && run["result"] == Value::Null, "{run}");
    let got = site.get("/v1/runs/held/result?waitMs=1").await;
    assert_eq!((got.status.as_u16(), &got.json()["id"]), (202, &json!("held")));
}

#[tokio::test]
async fn a_result_can_be_waited_for_and_is_a_failure_if_the_run_failed() {
    let site = Site::new().await;
    site.run(json!({"workflow": "fail", "id": "f"})).await;
    let got = site.get("/v1/runs/f/result?waitMs=30000").await;
    let result = got.json();
    assert_eq!((got.status.as_u16(), &result["status"], result.get("result")), (200, &json!("FAILED"), None));
    let failure = &result["failure"];
    assert_eq!((&failure["class"], &failure["message"]), (&json!("permanent"), &json!("card declined")));
}

#[tokio::test]
async fn a_wait_is_shown_with_its_reason() {
    let site = Site::new().await;
    site.run(json!({"workflow": "sick", "id": "s"})).await;
    let run = site.until("s", "WAITING").await;
    let wait = &run["wait"];
    assert_eq!((&wait["reason"], &wait["attempt"], &wait["failure"]["message"]), (&json!("BACKOFF"), &json!(2), &json!("no answer")));
    assert_eq!((&run["waits"][0], &run["retryContext"]["currentAttempt"]), (wait, &json!(2)));
    assert_eq!(run["retryContext"]["lastBackoff"], 3_600_000);
    let step = &run["steps"][0];
    assert_eq!((&step["name"], &step["path"], &step["status"]), (&json!("charge"), &json!("charge#1"), &json!("BACKOFF")));
    assert_eq!((&step["nextAttemptAt"], &step["attempts"], &step["tries"][0]["backoffMs"]), (&wait["dueAt"], &json!(1), &json!(3_600_000)));
}

#[tokio::test]
async fn the_journal_can_be_asked_for_by_attempt_and_from_a_place_on() {
    let site = Site::new().await;
    site.run(json!({"workflow": "flaky", "id": "f", "waitMs": 30000})).await;
    let types = |events: &Value| {
        events
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["eventType"].as_str().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    let all = site.get("/v1/runs/f/events").await.json();
    assert_eq!(types(&all), ["RUN_STARTED", "RETRY_SCHEDULED", "STEP_COMPLETED", "RUN_COMPLETED"]);
    assert_eq!(
        (&all[1]["payload"]["taskId"], &all[1]["failureReason"], &all[1]["backoffDelayMs"]),
        (&json!("charge"), &json!("try again"), &json!(1))
    );
    let second = site.get("/v1/runs/f/events?attempt=2").await.json();
    assert_eq!(types(&second), ["RETRY_SCHEDULED", "STEP_COMPLETED"]);
    let rest = site.get("/v1/runs/f/events?after=2&limit=1").await.json();
    assert_eq!(types(&rest), ["STEP_COMPLETED"]);
}

#[tokio::test]
async fn lists_are_filtered_and_paged_newest_first() {
    let site = Site::new().await;
    for id in ["a", "b", "c"] {
        site.run(json!({"workflow": "echo", "id": id, "tenant": "acme", "waitMs": 30000})).await;
    }
    site.run(json!({"workflow": "fail", "id": "d", "waitMs": 30000})).await;
    let ids = |page: &Value| {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["id"].as_str().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    let first = site.get("/v1/runs?limit=2&workflow=echo").await.json();
    assert_eq!(ids(&first), ["c", "b"]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = site.get(&format!("/v1/runs?limit=2&workflow=echo&cursor={cursor}")).await.json();
    assert_eq!((ids(&second), &second["nextCursor"]), (vec!["a".to_string()], &Value::Null));
    assert_eq!(ids(&site.get("/v1/runs?status=FAILED").await.json()), ["d"]);
    assert_eq!(ids(&site.get("/v1/runs?q=declined").await.json()), ["d"]);
    assert_eq!(ids(&site.get("/v1/runs?tenant=acme&limit=1").await.json()), ["c"]);
}

#[tokio::test]
async fn a_search_looks_at_so_many_runs_and_says_where_it_goes_on() {
    let (store, world) = (many_runs().await, World::default());
    let engine = engine(store.clone(), Callbacks::default(), CallerSettings::default(), &world).await;
    let site = Site::before(engine, store, world, config(), Parts::default()).await;
    let mut page = site.get("/v1/runs?q=needle").await.json();
    assert_eq!(page["items"], json!([]), "it is further away than an answer looks");
    while let Some(next) = page["nextCursor"].as_str() {
        assert_eq!(page["items"], json!([]));
        page = site.get(&format!("/v1/runs?q=needle&cursor={next}")).await.json();
    }
    assert_eq!(page["items"][0]["id"], json!("needle"));
    let narrow = site.get("/v1/runs?q=needle&status=CANCELLED").await.json();
    assert_eq!((&narrow["items"][0]["id"], &narrow["nextCursor"]), (&json!("needle"), &Value::Null), "of those there are few");
}

#[tokio::test]
async fn runs_are_paused_resumed_told_and_called_off() {
    let site = Site::new().await;
    site.run(json!({"workflow": "hold", "id": "h"})).await;
    let paused = site.post("/v1/runs/h/pause", json!({"reason": "lunch"})).await;
    assert_eq!((paused.status.as_u16(), &paused.json()["status"]), (200, &json!("PAUSED")));
    assert_eq!((&paused.json()["wait"]["by"], &paused.json()["wait"]["why"]), (&json!("api"), &json!("lunch")));
    assert_eq!(site.post("/v1/runs/h/resume", json!({})).await.status, 200);
    let told = site.post("/v1/runs/h/signals/go", json!({"payload": {"n": 5}, "signalId": "s1"})).await;
    assert_eq!((told.status.as_u16(), told.json()), (200, json!({"received": true})));
    assert_eq!(site.until("h", "COMPLETED").await["result"], json!({"n": 5}));
    assert_eq!(site.post("/v1/runs/h/cancel", json!({})).await.problem(409), "SF0105");

    site.run(json!({"workflow": "hold", "id": "i"})).await;
    assert_eq!(site.send(site.request(Method::POST, "/v1/runs/i/cancel")).await.status, 200, "a body may be left out");
    site.until("i", "CANCELLED").await;
    site.run(json!({"workflow": "hold", "id": "j"})).await;
    let ended = site.post("/v1/runs/j/cancel", json!({"terminate": true})).await;
    assert_eq!(ended.json()["status"], "CANCELLED");
    let requested = async |run: &str| {
        let events = site.get(&format!("/v1/runs/{run}/events")).await.json();
        events
            .as_array()
            .unwrap()
            .iter()
            .find(|event| event["eventType"] == "RUN_CANCEL_REQUESTED")
            .unwrap()["payload"]
            .clone()
    };
    assert_eq!((requested("j").await["terminate"].clone(), requested("i").await.get("terminate")), (json!(true), None));
}

#[tokio::test]
async fn a_command_that_is_sent_again_is_one() {
    let site = Site::new().await;
    site.run(json!({"workflow": "fail", "id": "f", "waitMs": 30000})).await;
    for _ in 0..2 {
        let retry = site.request(Method::POST, "/v1/runs/f/retry").header("idempotency-key", "k1");
        assert_eq!(site.send(retry).await.status, 200);
        site.until("f", "FAILED").await;
    }
    assert_eq!(site.get("/v1/runs/f").await.json()["epoch"], 2);
    let events = site.get("/v1/runs/f/events").await.json();
    let retried = events.as_array().unwrap().iter().find(|event| event["eventType"] == "RUN_RETRIED").unwrap();
    assert_eq!((&retried["payload"]["command"], &retried["payload"]["by"]), (&json!("k1"), &json!("api")));
}

#[tokio::test]
async fn signals_with_the_same_id_are_one() {
    let site = Site::new().await;
    site.run(json!({"workflow": "hold", "id": "h"})).await;
    let signal = json!({"payload": 1, "signalId": "once"});
    assert_eq!(site.post("/v1/runs/h/signals/other", signal.clone()).await.json(), json!({"received": true}));
    assert_eq!(site.post("/v1/runs/h/signals/other", signal).await.json(), json!({"received": false}));
}

#[tokio::test]
async fn an_approval_is_a_signal_with_the_name_of_the_step() {
    let site = Site::new().await;
    site.run(json!({"workflow": "approve", "id": "a"})).await;
    let wait = site.until("a", "WAITING").await["wait"].clone();
    assert_eq!((&wait["reason"], &wait["name"], &wait["roles"]), (&json!("APPROVAL"), &json!("ok"), &json!(["operator"])));
    site.post("/v1/runs/a/signals/ok", json!({"payload": {"approved": true}, "reason": "looks good"}))
        .await;
    assert_eq!(site.until("a", "COMPLETED").await["result"], json!({"approved": true}));
}

#[tokio::test]
async fn a_retry_can_be_looked_at_before_it_is_made() {
    let site = Site::new().await;
    site.run(json!({"workflow": "fail", "id": "f", "waitMs": 30000})).await;
    let preview = site.post("/v1/runs/f/retry", json!({"dryRun": true, "fromStep": "reserve"})).await.json();
    assert_eq!((&preview["epoch"], &preview["runsAgain"], &preview["kept"]), (&json!(2), &json!(["charge#1", "reserve#1"]), &json!([])));
    assert_eq!(site.get("/v1/runs/f").await.json()["epoch"], 1, "nothing has changed");
    let supplied = site
        .post("/v1/runs/f/retry", json!({"outputs": {"charge": {"paid": true}}, "reason": "paid in cash"}))
        .await;
    assert_eq!(supplied.json()["epoch"], 2);
    assert_eq!(site.until("f", "COMPLETED").await["result"], json!({"paid": true}));
    assert_eq!(site.post("/v1/runs/f/retry", json!({"fromStep": "nowhere"})).await.problem(422), "SF0114");
}

#[tokio::test]
async fn a_journal_is_replayed_against_the_code() {
    let site = Site::new().await;
    site.run(json!({"workflow": "echo", "id": "e", "waitMs": 30000})).await;
    let replayed = site.send(site.request(Method::POST, "/v1/runs/e/replay")).await;
    assert_eq!(replayed.json(), json!({"consistent": true, "events": 3}));
}

#[tokio::test]
async fn ids_with_slashes_are_reached_either_way() {
    let site = Site::new().await;
    for id in ["team/eu/one", "team/pause"] {
        site.run(json!({"workflow": "hold", "id": id})).await;
    }
    for path in ["/v1/runs/team/eu/one", "/v1/runs/team%2Feu%2Fone", "/v1/runs/team%2Feu/one"] {
        assert_eq!(site.get(path).await.json()["id"], "team/eu/one", "{path}");
    }
    assert_eq!(site.post("/v1/runs/team/eu/one/pause", json!({})).await.json()["status"], "PAUSED");
    assert_eq!(site.post("/v1/runs/team%2Feu%2Fone/resume", json!({})).await.status, 200);
    assert_eq!(site.post("/v1/runs/team/eu/one/signals/go", json!({})).await.json(), json!({"received": true}));
    assert_eq!(site.get("/v1/runs/team/pause").await.problem(405), "SF0505", "the last part is the verb");
    assert_eq!(site.get("/v1/runs/team%2Fpause").await.json()["id"], "team/pause");
}

#[tokio::test]
async fn dead_letters_are_listed_redriven_and_dropped() {
    let site = Site::new().await;
    site.run(json!({"workflow": "team/poison", "id": "p", "waitMs": 30000})).await;
    let letters = async || site.get("/v1/letters").await.json()["items"].as_array().unwrap().clone();
    until("it is there", async || !letters().await.is_empty()).await;
    let letter = letters().await.remove(0);
    assert_eq!((&letter["run"], &letter["step"], &letter["failure"]["class"]), (&json!("p"), &json!("read"), &json!("poison")));
    let id = letter["id"].as_str().unwrap();
    assert_eq!(id, "team/poison.1");
    assert_eq!(site.get(&format!("/v1/letters/{id}")).await.json()["attempt"], 1);
    assert_eq!(site.post(&format!("/v1/letters/{id}/redrive"), json!({"reason": "fixed"})).await.status, 204);
    until("it fails again, and is another letter", async || letters().await.iter().any(|letter| letter["id"] == "team/poison.3")).await;
    let dropped = site.send(site.request(Method::DELETE, "/v1/letters/team%2Fpoison.3?reason=done")).await;
    assert_eq!(dropped.status, 204);
    assert_eq!(site.get("/v1/letters/team/poison.3").await.problem(404), "SF0115");
}

#[tokio::test]
async fn workflows_are_listed() {
    let site = Site::new().await;
    let workflows = site.get("/v1/workflows").await.json();
    let echo = workflows["items"].as_array().unwrap().iter().find(|workflow| workflow["name"] == "echo").unwrap();
    assert_eq!((&echo["name"], &echo["source"], &echo["recovery"]), (&json!("echo"), &json!("code"), &json!("automatic")));
}

#[tokio::test]
async fn large_answers_are_compressed_for_those_who_want_it() {
    let site = Site::new().await;
    let got = site.send(site.request(Method::GET, "/openapi.json").header("accept-encoding", "gzip")).await;
    assert_eq!((got.status.as_u16(), got.header("content-encoding")), (200, "gzip"));
    assert_eq!(site.get("/openapi.json").await.header("content-encoding"), "");
}
