//! What the change feed tells of plans, tasks and locks.

use super::How;
use crate::feed::{Reader, types};
use crate::support::{Site, until};
use serde_json::{Value, json};

/// What the feed tells of a task up to an event of that type, all of it.
async fn told(site: &Site, task: &str, last: &str) -> Vec<(String, Value)> {
    let mut reader = Reader::open(site, &format!("?after=0&kind=task&id={task}")).await;
    reader.until(last).await
}

/// Those of them that are a task's own.
fn of_tasks(events: &[(String, Value)]) -> Vec<&str> {
    types(events)
        .into_iter()
        .filter(|kind| kind.starts_with("TASK_") && *kind != "TASK_PROGRESS")
        .collect()
}

#[tokio::test]
async fn a_task_is_told_of_in_order_and_by_its_own_names() {
    let site = Site::new().await;
    let mut all = Reader::open(&site, "").await;
    site.switch("p", &["a", "b"]).await;
    let events = all.until("PLAN_COMPLETED").await;
    let mine: Vec<(String, Value)> = events.into_iter().filter(|(_, change)| change["id"] == "p/a").collect();
    let stage = |name: &'static str| ["STAGE_STARTED", "TASK_PROGRESS", name, "STAGE_COMPLETED"];
    let expected = [
        &["TASK_CREATED", "TASK_ADMITTED", "LOCK_ACQUIRED", "TASK_STARTED"][..],
        &stage("STEP_COMPLETED"),
        &["CHECKPOINT_SAVED"],
        &stage("STEP_COMPLETED"),
        &["CHECKPOINT_SAVED"],
        &stage("STEP_COMPLETED"),
        &["TASK_COMPLETED"],
    ]
    .concat();
    assert_eq!(types(&mine), expected);
    let sequences: Vec<u64> = mine.iter().map(|(_, change)| change["event"]["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=expected.len() as u64).collect::<Vec<_>>());
    assert!(mine.iter().all(|(_, change)| change["kind"] == "task" && change["event"]["workflowId"] == "p/a"), "{mine:?}");
    let created = &mine[0].1["event"]["payload"];
    assert_eq!((&created["plan"], &created["tenant"], &created["stages"][0]), (&json!("p"), &json!("a"), &json!("drain")));
    let started = &mine[4].1["event"]["payload"];
    assert_eq!((&started["stage"], &started["index"], &started["taskId"]), (&json!("drain"), &json!(0), &json!("drain")));
    assert_eq!(mine[8].1["event"]["payload"]["contextData"], json!({"last": "drain"}));
    let own = site.get("/v1/runs/p/a/events").await.json();
    assert_eq!(
        (super::types(&own)[0], super::types(&own).last()),
        ("RUN_STARTED", Some(&"RUN_COMPLETED")),
        "a run's journal keeps its names"
    );
}

#[tokio::test]
async fn what_is_done_to_a_task_has_a_name_of_its_own() {
    let site = Site::new().await;
    site.world.script("a/move", &[How::Ails, How::Fails]);
    site.switch("p", &["a"]).await;
    site.task_is("a", "WAITING").await;
    site.verb("/v1/tenants/a/pause", "x").await;
    site.verb("/v1/tenants/a/resume", "x").await;
    site.task_is("a", "WAITING").await;
    site.verb("/v1/tenants/a/retry", "now").await; // the attempt to come is made now
    site.task_is("a", "FAILED").await;
    site.verb("/v1/tenants/a/retry", "x").await;
    site.task_is("a", "COMPLETED").await;
    let events = told(&site, "p/a", "TASK_COMPLETED").await;
    let expected = [
        &["TASK_CREATED", "TASK_ADMITTED", "TASK_STARTED", "TASK_PAUSED", "TASK_RESUMED"][..],
        &["TASK_RETRY_STARTED", "TASK_ADMITTED", "TASK_STARTED", "TASK_FAILED"],
        &["TASK_RETRY_STARTED", "TASK_ADMITTED", "TASK_STARTED", "TASK_COMPLETED"],
    ]
    .concat();
    assert_eq!(of_tasks(&events), expected);
    let failed = events.iter().find(|(_, change)| change["event"]["eventType"] == "STAGE_FAILED").unwrap();
    assert_eq!((&failed.1["event"]["failureReason"], &failed.1["event"]["payload"]["stage"]), (&json!("a/move is broken"), &json!("move")));
}

#[tokio::test]
async fn a_task_that_is_called_off_is_told_from_one_that_is_rolled_back() {
    let site = Site::new().await;
    site.world.script("off/move", &[How::Hangs]);
    site.world.script("failed/move", &[How::Fails]);
    site.world.script("broken/drain/undo", &[How::Fails]);
    site.switch("p", &["off", "failed", "back", "broken"]).await;
    until("one moves", async || site.world.times("off/move") == 1).await;
    site.verb("/v1/tenants/off/cancel", "x").await;
    site.plan_is("p", "FAILED").await;
    site.verb("/v1/tenants/failed/cancel", "x").await;
    site.verb("/v1/tenants/back/rollback", "x").await;
    site.verb("/v1/tenants/broken/rollback", "x").await;
    site.task_is("back", "ROLLED_BACK").await;
    site.task_is("broken", "ROLLBACK_FAILED").await;
    let begun = ["TASK_CREATED", "TASK_ADMITTED", "TASK_STARTED"];
    let undone = ["TASK_COMPLETED", "TASK_RETRY_STARTED", "TASK_ROLLING_BACK", "TASK_ADMITTED", "TASK_STARTED"];
    for (tenant, then, last) in [
        ("off", &[][..], "TASK_CANCELLED"),
        ("failed", &["TASK_FAILED"], "TASK_CANCELLED"),
        ("back", &undone, "TASK_ROLLED_BACK"),
        ("broken", &undone, "TASK_ROLLBACK_FAILED"),
    ] {
        let events = told(&site, &format!("p/{tenant}"), last).await;
        assert_eq!(of_tasks(&events), [&begun[..], then, &[last]].concat(), "{tenant}");
    }
    // what came of it stays what it was, whatever comes after it
    site.verb("/v1/tenants/broken/cancel", "by hand").await;
    let events = told(&site, "p/broken", "TASK_CANCELLED").await;
    assert_eq!(of_tasks(&events)[3..], [&undone[..], &["TASK_ROLLBACK_FAILED", "TASK_CANCELLED"]].concat());
}

#[tokio::test]
async fn an_interrupted_task_is_told_of() {
    let site = Site::new().await;
    site.world.script("a/move", &[How::Hangs]);
    site.switch("p", &["a"]).await;
    until("it moves", async || site.world.times("a/move") == 1).await;
    let site = site.restarted().await;
    site.task_is("a", "INTERRUPTED").await;
    told(&site, "p/a", "TASK_INTERRUPTED").await;
    let mut plan = Reader::open(&site, "?after=0&kind=plan&id=p").await;
    let paused = plan.until("PLAN_PAUSED").await.pop().unwrap().1;
    assert_eq!((&paused["id"], &paused["event"]["payload"]["cause"]), (&json!("p"), &json!("RESTART")));
}

#[tokio::test]
async fn plans_tasks_and_locks_can_be_filtered() {
    let site = Site::new().await;
    site.run(json!({"workflow": "echo", "id": "e", "tenant": "a", "waitMs": 30000})).await;
    site.switch("p", &["a", "b"]).await;
    site.plan_is("p", "COMPLETED").await;
    site.switch("q", &["a"]).await;
    site.plan_is("q", "COMPLETED").await;
    site.lock_is("a", None).await;
    site.lock_is("b", None).await;
    let first = async |query: &str| Reader::open(&site, &format!("?after=0&{query}")).await.next().await.unwrap().1;
    let says = |change: &Value| format!("{} {} {}", change["kind"], change["id"], change["event"]["eventType"]).replace('"', "");
    for (query, change) in [
        ("kind=plan", "plan p PLAN_CREATED"),
        ("kind=plan&id=q", "plan q PLAN_CREATED"),
        ("kind=plan&types=PLAN_STARTED", "plan p PLAN_STARTED"),
        ("kind=task", "task p/a TASK_CREATED"),
        ("kind=task&id=p/b", "task p/b TASK_CREATED"),
        ("id=p/b", "task p/b TASK_CREATED"),
        ("kind=run", "run e RUN_STARTED"),
        ("kind=task&tenant=b&types=TASK_COMPLETED,TASK_FAILED", "task p/b TASK_COMPLETED"),
        ("types=TASK_CREATED&plan=q", "task q/a TASK_CREATED"),
        ("plan=q", "plan q PLAN_CREATED"),
        ("kind=lock&types=LOCK_RELEASED&tenant=b", "lock b LOCK_RELEASED"),
        ("kind=lock&id=b&types=LOCK_ACQUIRED", "lock b LOCK_ACQUIRED"),
        ("tenant=a", "run e RUN_STARTED"),
        ("tenant=b", "task p/b TASK_CREATED"),
    ] {
        assert_eq!(says(&first(query).await), change, "{query}");
    }
    // nothing else gets through
    let mut reader = Reader::open(&site, "?after=0&kind=run").await;
    site.run(json!({"workflow": "echo", "id": "f", "waitMs": 30000})).await;
    while let Some((_, change)) = reader.next().await {
        assert_eq!(change["kind"], "run", "a task is none");
        if (&change["id"], &change["event"]["eventType"]) == (&json!("f"), &json!("RUN_COMPLETED")) {
            break;
        }
    }
    let acquired = first("kind=lock&id=a&types=LOCK_ACQUIRED").await["event"]["payload"].clone();
    assert_eq!((&acquired["holder"], &acquired["fence"], &acquired["plan"]), (&json!("p:p/a"), &json!(1), &json!("p")));
    for query in ["kind=plan&id=a%20b", "kind=lock&id=a%20b", "kind=task&id=a%20b", "plan=a%20b", "types=TASK_DONE"] {
        assert!(["SF0501", "SF0101"].contains(&&*site.get(&format!("/v1/events?{query}")).await.problem(400)), "{query}");
    }
}
