//! The task of a tenant, and what operators do to it.

use super::{How, one, types};
use crate::support::{Site, until};
use serde_json::{Value, json};

#[tokio::test]
async fn a_task_that_is_under_way_is_shown_with_its_lock_and_its_last_sign_of_life() {
    let site = Site::new().await;
    site.world.script("acme/move", &[How::Hangs]);
    site.switch("p", &["acme"]).await;
    until("it moves", async || site.world.times("acme/move") == 1).await;
    let task = site.task_is("acme", "RUNNING").await;
    assert_eq!((&task["tenantId"], &task["planId"], &task["definition"]), (&json!("acme"), &json!("p"), &json!("switch")));
    assert_eq!((&task["taskId"], &task["runId"]), (&json!("p/acme"), &json!("p/acme")));
    assert_eq!((&task["currentStage"], &task["totalStages"]), (&json!({"index": 1, "name": "move"}), &json!(3)));
    assert_eq!(
        (&task["lastCompletedStageIndex"], &task["hasCheckpoint"], &task["pauseRequested"]),
        (&json!(0), &json!(true), &json!(false))
    );
    assert_eq!((&task["lock"]["holder"], &task["lock"]["fence"]), (&json!("p:p/acme"), &json!(1)));
    assert!(task["lock"]["expiresAt"].as_str() > task["startedAt"].as_str(), "{task}");
    assert!(task["createdAt"].as_str() < task["startedAt"].as_str() && task["endedAt"].is_null(), "{task}");
    let events = site.get("/v1/runs/p/acme/events").await.json();
    assert_eq!(task["heartbeatAt"], events.as_array().unwrap().last().unwrap()["timestamp"]);
    let checkpoint = site.get("/v1/tenants/acme/checkpoint").await.json();
    let saved = one(&events, "CHECKPOINT_SAVED");
    let expected = json!({
        "taskId": "p/acme", "tenantId": "acme", "lastCompletedStageIndex": 0, "completedStages": ["drain"], "contextData": {"last": "drain"},
        "savedAt": saved["timestamp"], "version": saved["sequence"],
    });
    assert_eq!(checkpoint, expected);
    let run = site.get("/v1/runs/p/acme").await.json();
    let small = json!({
        "planId": "p", "tenantId": "acme", "status": "RUNNING", "pauseRequested": false, "currentStage": {"index": 1, "name": "move"},
        "totalStages": 3, "lastCompletedStageIndex": 0, "hasCheckpoint": true,
    });
    assert_eq!(run["task"], small);
    site.run(json!({"workflow": "echo", "id": "e", "waitMs": 30000})).await;
    assert_eq!(site.get("/v1/runs/e").await.json().get("task"), None, "a run that is no task");
}

#[tokio::test]
async fn a_tenant_without_a_task_is_not_found() {
    let site = Site::new().await;
    site.create("p", &["acme"]).await;
    assert_eq!(site.get("/v1/tenants/acme/checkpoint").await.problem(404), "SF0129");
    for what in ["task", "checkpoint"] {
        assert_eq!(site.get(&format!("/v1/tenants/nobody/{what}")).await.problem(404), "SF0128", "{what}");
        assert_eq!(site.get(&format!("/v1/tenants/a%20b/{what}")).await.problem(400), "SF0101", "{what}");
        assert_eq!(site.get(&format!("/v1/tenants/acme/{what}?x=1")).await.problem(400), "SF0501", "{what}");
    }
    for verb in ["retry", "pause", "resume", "cancel", "rollback"] {
        assert_eq!(site.post(&format!("/v1/tenants/nobody/{verb}"), json!({})).await.problem(404), "SF0128", "{verb}");
        assert_eq!(site.post(&format!("/v1/tenants/acme/{verb}"), json!({"why": "x"})).await.problem(400), "SF0501", "{verb}");
        let long = json!({"reason": "x".repeat(5000)});
        assert_eq!(site.post(&format!("/v1/tenants/acme/{verb}"), long).await.problem(400), "SF0501", "{verb}");
    }
    assert_eq!(site.get("/v1/tenants/acme").await.problem(404), "SF0504");
}

#[tokio::test]
async fn a_failed_task_is_retried_from_its_checkpoint_or_from_the_start() {
    let site = Site::new().await;
    site.world.script("a/verify", &[How::Fails, How::Fails]);
    site.switch("p", &["a"]).await;
    let task = site.task_is("a", "FAILED").await;
    assert_eq!((&task["failure"]["message"], &task["currentStage"]["name"]), (&json!("a/verify is broken"), &json!("verify")));
    assert_eq!((&task["lock"]["holder"], &task["heartbeatAt"]), (&json!("p:p/a"), &Value::Null), "the lock is kept");
    let plan = site.plan_is("p", "FAILED").await;
    assert_eq!((&plan["tenants"][0]["failure"], &plan["why"]), (&json!("a/verify is broken"), &json!("1 of 1 tasks have failed")));
    let task = site.verb("/v1/tenants/a/retry", "again").await;
    assert_eq!((&task["epoch"], &task["failure"]), (&json!(2), &Value::Null));
    until("it has failed again", async || {
        let task = site.get("/v1/tenants/a/task").await.json();
        (&task["status"], &task["epoch"]) == (&json!("FAILED"), &json!(2))
    })
    .await;
    assert_eq!(["drain", "move", "verify"].map(|stage| site.world.times(&format!("a/{stage}"))), [1, 1, 2]);
    assert_eq!(
        site.post("/v1/tenants/a/retry", json!({"fromCheckpoint": false, "reason": "all of it"}))
            .await
            .status,
        200
    );
    site.task_is("a", "COMPLETED").await;
    assert_eq!(["drain", "move", "verify"].map(|stage| site.world.times(&format!("a/{stage}"))), [2, 2, 3]);
    let retried = site.get("/v1/runs/p/a/events").await.json();
    let payload = &one(&retried, "RUN_RETRIED")["payload"];
    assert_eq!((&payload["by"], &payload["reason"]), (&json!("api"), &json!("again")));
    assert_eq!(site.post("/v1/tenants/a/retry", json!({})).await.problem(409), "SF0113", "it has completed");
    site.plan_is("p", "COMPLETED").await;
}

#[tokio::test]
async fn a_task_is_paused_resumed_called_off_and_rolled_back() {
    let site = Site::new().await;
    site.world.script("a/move", &[How::Ails]);
    site.switch("p", &["a", "b"]).await;
    site.task_is("a", "WAITING").await;
    let task = site.verb("/v1/tenants/a/pause", "wait").await;
    assert_eq!((&task["status"], &task["pauseRequested"], &task["wait"]["why"]), (&json!("PAUSED"), &json!(true), &json!("wait")));
    assert_eq!(site.verb("/v1/tenants/a/resume", "go on").await["status"], "WAITING");
    site.task_is("b", "COMPLETED").await;
    let task = site.verb("/v1/tenants/a/cancel", "not this one").await;
    assert_eq!((&task["status"], &task["failure"]), (&json!("CANCELLED"), &Value::Null));
    assert!(task["endedAt"].is_string(), "{task}");
    site.plan_is("p", "COMPLETED").await;
    for verb in ["pause", "resume", "cancel"] {
        assert_eq!(site.post(&format!("/v1/tenants/a/{verb}"), json!({})).await.problem(409), "SF0113", "{verb}");
    }
    site.verb("/v1/tenants/b/rollback", "and not this one either").await;
    site.task_is("b", "ROLLED_BACK").await;
    assert_eq!(["drain", "move", "verify"].map(|stage| site.world.times(&format!("b/{stage}/undo"))), [1, 1, 1]);
    assert_eq!(site.post("/v1/tenants/b/rollback", json!({})).await.problem(409), "SF0113");
}

#[tokio::test]
async fn a_command_to_a_task_that_is_sent_again_is_one() {
    let site = Site::new().await;
    site.world.script("a/drain", &[How::Fails, How::Fails, How::Fails]);
    site.switch("p", &["a"]).await;
    site.task_is("a", "FAILED").await;
    for _ in 0..2 {
        assert_eq!(site.keyed("/v1/tenants/a/retry", "k1", json!({})).await.status, 200);
        site.task_is("a", "FAILED").await;
    }
    assert_eq!((site.get("/v1/tenants/a/task").await.json()["epoch"].clone(), site.world.times("a/drain")), (json!(2), 2));
}

#[tokio::test]
async fn a_task_whose_turn_has_not_come_waits_for_its_plan() {
    let site = Site::new().await;
    site.create("p", &["a", "b"]).await;
    let run = site.get("/v1/runs/p/a").await.json();
    assert_eq!((&run["status"], &run["wait"]), (&json!("READY"), &json!({"reason": "PLAN", "planId": "p"})));
    assert_eq!(site.get("/v1/tenants/a/task").await.json()["wait"], run["wait"]);
    assert_eq!(site.get("/v1/runs?wait=PLAN").await.json()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_holder_of_the_lock_that_a_task_waits_for_is_named() {
    let site = Site::new().await;
    site.world.script("x/drain", &[How::Ails]);
    site.world.script("a/drain", &[How::Hangs]);
    site.create("first", &["a"]).await;
    let second = json!({"definition": "switch", "id": "second", "tenants": ["x", "a"], "maxConcurrency": 1});
    assert_eq!(site.post("/v1/plans", second).await.status, 201);
    site.verb("/v1/plans/second/start", "go").await;
    site.task_is("x", "WAITING").await;
    site.verb("/v1/plans/first/start", "go").await;
    site.lock_is("a", Some("first:first/a")).await;
    site.verb("/v1/tenants/x/cancel", "it is the turn of the next one").await;
    let task = site.task_is("a", "WAITING").await;
    assert_eq!((&task["planId"], &task["lock"]["holder"]), (&json!("second"), &json!("first:first/a")));
    assert_eq!(task["wait"], json!({"reason": "LOCK", "tenantId": "a", "holder": "first:first/a"}));
    until("it is in line", async || site.get("/v1/locks").await.json()["items"][0]["waiting"] == 1).await;
    assert_eq!(site.get("/v1/plans/second").await.json()["tenants"][1]["wait"], "LOCK");
    assert_eq!(site.get("/v1/runs?wait=LOCK").await.json()["items"][0]["id"], "second/a");
    assert_eq!(site.send(site.request(reqwest::Method::DELETE, "/v1/locks/a?reason=stuck")).await.status, 204);
    site.task_is("a", "COMPLETED").await;
    site.plan_is("second", "COMPLETED").await;
    assert_eq!(site.get("/v1/runs/first/a").await.json()["status"], "INTERRUPTED", "who had it is told");
}

#[tokio::test]
async fn after_a_restart_a_task_is_interrupted_and_its_plan_is_paused() {
    let site = Site::new().await;
    site.world.script("a/move", &[How::Hangs]);
    site.switch("p", &["a", "b"]).await;
    until("a moves", async || site.world.times("a/move") == 1).await;
    site.task_is("b", "COMPLETED").await;
    let site = site.restarted().await;
    let task = site.task_is("a", "INTERRUPTED").await;
    assert_eq!(
        (&task["currentStage"]["name"], &task["hasCheckpoint"], &task["pauseRequested"]),
        (&json!("move"), &json!(true), &json!(false))
    );
    assert_eq!((&task["lock"]["holder"], &task["heartbeatAt"]), (&json!("p:p/a"), &Value::Null));
    let plan = site.plan_is("p", "PAUSED").await;
    assert_eq!((&plan["cause"], &plan["by"], &plan["progress"]["interrupted"]), (&json!("RESTART"), &json!("the engine"), &json!(1)));
    assert!(plan["why"].as_str().unwrap().contains("has ended"), "{plan}");
    site.verb("/v1/tenants/a/retry", "go on").await;
    site.task_is("a", "COMPLETED").await;
    assert_eq!((site.world.times("a/drain"), site.world.times("a/move")), (1, 2), "only what was not done");
    assert_eq!(
        types(&site.get("/v1/runs/p/a/events").await.json())
            .iter()
            .filter(|kind| **kind == "RUN_INTERRUPTED")
            .count(),
        1
    );
}
