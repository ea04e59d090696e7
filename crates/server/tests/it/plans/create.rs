//! Plans are created, listed and looked at.

use super::How;
use crate::support::Site;
use serde_json::{Value, json};

#[tokio::test]
async fn a_plan_is_created_with_a_task_for_every_tenant() {
    let site = Site::new().await;
    let asked = json!({"definition": "switch", "id": "night", "tenants": ["b", "a", "b"], "maxConcurrency": 1, "vars": {"to": "blue"}, "reason": "ticket 17"});
    let got = site.post("/v1/plans", asked).await;
    assert_eq!(got.status, 201, "{}", got.text);
    let plan = got.json();
    assert_eq!((&plan["id"], &plan["definition"], &plan["definitionHash"]), (&json!("night"), &json!("switch"), &json!("0123abcd")));
    assert_eq!((&plan["status"], plan.get("cause"), plan.get("why")), (&json!("READY"), None, None));
    assert_eq!((&plan["taskIds"], &plan["stages"]), (&json!(["night/b", "night/a"]), &json!(["drain", "move", "verify"])));
    let line = json!({
        "tenantId": "b", "taskId": "night/b", "status": "PENDING", "currentStage": null, "lastCompletedStageIndex": null, "hasCheckpoint": false,
        "pauseRequested": false, "wait": "PLAN", "startedAt": null, "endedAt": null, "failure": null,
    });
    assert_eq!(plan["tenants"][0], line);
    let settings = json!([1, 0, null, "refuse", "keep", 9_000_000, null]);
    let names = ["maxConcurrency", "canary", "stopWhen", "conflict", "onFailure", "leaseMs", "deadlineMs"];
    assert_eq!(Value::from(names.map(|name| plan[name].clone()).to_vec()), settings);
    assert_eq!((&plan["vars"], &plan["skipped"], &plan["startedAt"]), (&json!({"to": "blue"}), &json!([]), &Value::Null));
    assert_eq!(
        (&plan["progress"]["total"], &plan["progress"]["pending"], &plan["progress"]["completed"]),
        (&json!(2), &json!(2), &json!(0))
    );
    assert_eq!(site.get("/v1/plans/night").await.json(), plan, "nothing of it begins before it is started");
    let created = &site.get("/v1/plans/night/events").await.json()[0];
    assert_eq!((&created["eventType"], &created["payload"]["by"]), (&json!("PLAN_CREATED"), &json!("api")));
    assert_eq!((&created["payload"]["reason"], &created["payload"]["tenants"]), (&json!("ticket 17"), &json!(["b", "a"])));
}

#[tokio::test]
async fn the_same_again_is_the_same_plan_and_another_is_a_conflict() {
    let site = Site::new().await;
    let asked = json!({"definition": "switch", "id": "p", "tenants": ["a", "b"], "vars": {"to": 1}});
    assert_eq!(site.post("/v1/plans", asked.clone()).await.status, 201);
    site.verb("/v1/plans/p/start", "go").await;
    site.plan_is("p", "COMPLETED").await;
    let again = site.post("/v1/plans", asked).await;
    assert_eq!((again.status.as_u16(), &again.json()["status"]), (200, &json!("COMPLETED")));
    for other in [
        json!({"definition": "switch", "id": "p", "tenants": ["a"], "vars": {"to": 1}}),
        json!({"definition": "switch", "id": "p", "tenants": ["a", "b"], "vars": {"to": 2}}),
        json!({"definition": "switch", "id": "p", "tenants": ["a", "b"], "vars": {"to": 1}, "maxConcurrency": 1}),
        json!({"definition": "careful", "id": "p", "tenants": ["a", "b"], "vars": {"to": 1}}),
    ] {
        assert_eq!(site.post("/v1/plans", other.clone()).await.problem(409), "SF0123", "{other}");
    }
    let made = site.post("/v1/plans", json!({"definition": "switch", "tenants": ["c"]})).await.json();
    assert_eq!(made["taskIds"], json!([format!("{}/c", made["id"].as_str().unwrap())]), "an id is made");
    assert_eq!(made["vars"], json!({}));
}

#[tokio::test]
async fn what_cannot_be_a_plan_is_refused() {
    let site = Site::new().await;
    let many: Vec<String> = (0..10_001).map(|number| format!("t{number}")).collect();
    for (asked, status, code, says) in [
        (json!({"definition": "none", "tenants": ["a"]}), 404, "SF0131", "switch"),
        (json!({"definition": "echo", "tenants": ["a"]}), 404, "SF0131", "careful, switch, team/picky"),
        (json!({"definition": "switch", "tenants": []}), 422, "SF0130", "at least one tenant"),
        (json!({"definition": "switch", "tenants": many}), 422, "SF0130", "10000 tenants"),
        (json!({"definition": "switch", "tenants": ["a"], "maxConcurrency": 0}), 422, "SF0130", "at least 1"),
        (json!({"definition": "team/picky", "tenants": ["a"]}), 422, "SF0116", "need a `to`"),
        (json!({"definition": "switch", "tenants": ["a b"]}), 400, "SF0101", "A-Z"),
        (json!({"definition": "switch", "tenants": ["a"], "id": "a:b"}), 400, "SF0101", "A-Z"),
        (json!({"definition": "switch", "tenants": ["a"], "vars": [1]}), 400, "SF0501", "an object"),
        (json!({"definition": "switch", "tenants": ["a"], "vars": 7}), 400, "SF0501", "an object"),
        (json!({"definition": "switch", "tenants": ["a"], "maxConcurency": 2}), 400, "SF0501", "maxConcurrency"),
        (json!({"definition": "switch", "tenants": "a"}), 400, "SF0501", "a sequence"),
        (json!({"tenants": ["a"]}), 400, "SF0501", "definition"),
        (json!({"definition": "switch", "tenants": ["a"], "reason": "x".repeat(5000)}), 400, "SF0501", "reason"),
    ] {
        let got = site.post("/v1/plans", asked).await;
        assert_eq!(got.problem(status), code, "{says}");
        assert!(got.json()["detail"].as_str().unwrap().contains(says), "{}", got.text);
    }
    assert_eq!(site.get("/v1/plans").await.json()["items"], json!([]), "nothing is left of any of them");
    assert_eq!(site.get("/v1/plans/none").await.problem(404), "SF0124");
    assert_eq!(site.get("/v1/plans/none/events").await.problem(404), "SF0124");
    assert_eq!(site.get("/v1/plans/a%20b").await.problem(400), "SF0101");
}

#[tokio::test]
async fn tenants_that_others_have_locked_are_all_named() {
    let site = Site::new().await;
    let tenants: Vec<String> = (10..22).map(|number| format!("t{number}")).collect();
    tenants.iter().for_each(|tenant| site.world.script(&format!("{tenant}/move"), &[How::Fails]));
    let names: Vec<&str> = tenants.iter().map(String::as_str).collect();
    site.switch("first", &names).await;
    site.plan_is("first", "FAILED").await;
    let got = site.post("/v1/plans", json!({"definition": "switch", "id": "second", "tenants": tenants})).await;
    assert_eq!(got.problem(409), "SF0126");
    let problem = got.json();
    assert!(problem["detail"].as_str().unwrap().contains("and 2 more"), "{problem}");
    let locked: Vec<Value> = tenants
        .iter()
        .map(|tenant| json!({"tenantId": tenant, "holder": format!("first:first/{tenant}")}))
        .collect();
    assert_eq!(problem["locked"], json!(locked));
    assert_eq!(site.get("/v1/plans/none").await.json().get("locked"), None, "of other problems it is no part");

    let skips = site.post("/v1/plans", json!({"definition": "careful", "tenants": ["t10", "free"]})).await.json();
    assert_eq!(skips["skipped"], json!([{"tenantId": "t10", "holder": "first:first/t10"}]));
    assert_eq!((&skips["progress"]["total"], &skips["tenants"][0]["tenantId"]), (&json!(1), &json!("free")));
    assert_eq!(
        (&skips["conflict"], &skips["stopWhen"], &skips["deadlineMs"]),
        (&json!("skip"), &json!({"failedPercent": 50}), &json!(7_200_000))
    );
}

#[tokio::test]
async fn lists_are_newest_first_and_come_in_pages() {
    let site = Site::new().await;
    for (definition, id) in [("switch", "a"), ("careful", "b"), ("switch", "c"), ("switch", "d/e.5")] {
        let got = site.post("/v1/plans", json!({"definition": definition, "id": id, "tenants": ["x", "y"]})).await;
        assert_eq!(got.status, 201, "{}", got.text);
    }
    site.world.script("y/move", &[How::Fails]);
    site.verb("/v1/plans/c/start", "go").await;
    site.plan_is("c", "FAILED").await;
    let ids = |page: &Value| {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|plan| plan["id"].as_str().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    let all = site.get("/v1/plans").await.json();
    assert_eq!((ids(&all), &all["nextCursor"]), (vec!["d/e.5".into(), "c".into(), "b".into(), "a".into()], &Value::Null));
    let failed = &all["items"][1];
    assert_eq!((&failed["status"], &failed["why"]), (&json!("FAILED"), &json!("1 of 2 tasks have failed")));
    assert_eq!((&failed["progress"]["completed"], &failed["progress"]["failed"]), (&json!(1), &json!(1)));
    assert_eq!((&failed["progress"]["total"], &all["items"][0]["progress"]["pending"]), (&json!(2), &json!(2)));
    let mut seen = Vec::new();
    let mut next = "/v1/plans?limit=1".to_string();
    loop {
        let page = site.get(&next).await.json();
        seen.extend(ids(&page));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        next = format!("/v1/plans?limit=1&cursor={cursor}");
    }
    assert_eq!(seen, ids(&all));
    assert_eq!(ids(&site.get("/v1/plans?status=READY&definition=switch").await.json()), ["d/e.5", "a"]);
    assert_eq!(ids(&site.get("/v1/plans?definition=nothing").await.json()), [""; 0]);
    let runs = site.get("/v1/runs?limit=1").await.json()["nextCursor"].as_str().unwrap().to_string();
    for query in ["limit=0", "limit=1001", "status=ready", "definition=a%20b", "cursor=abc", &format!("cursor={runs}"), "tenant=x"] {
        assert!(["SF0501", "SF0101"].contains(&&*site.get(&format!("/v1/plans?{query}")).await.problem(400)), "{query}");
    }
}

#[tokio::test]
async fn ids_with_slashes_are_reached_as_they_are() {
    let site = Site::new().await;
    site.world.script("acme/eu/verify", &[How::Fails]);
    site.switch("eu/night", &["acme/eu", "acme/task"]).await;
    let plan = site.plan_is("eu/night", "FAILED").await;
    assert_eq!(plan["taskIds"], json!(["eu/night/acme/eu", "eu/night/acme/task"]));
    assert_eq!(site.get("/v1/plans/eu%2Fnight").await.json(), plan);
    let task = site.get("/v1/tenants/acme/eu/task").await.json();
    assert_eq!((&task["taskId"], &task["status"]), (&json!("eu/night/acme/eu"), &json!("FAILED")));
    assert_eq!(site.get("/v1/tenants/acme%2Feu/task").await.json(), task);
    assert_eq!(site.get("/v1/tenants/acme/task/task").await.json()["status"], "COMPLETED");
    assert_eq!(site.get("/v1/tenants/acme/eu/checkpoint").await.json()["lastCompletedStageIndex"], 1);
    assert_eq!(site.get("/v1/runs/eu/night/acme/eu").await.json()["task"]["tenantId"], "acme/eu");
    let events = site.get("/v1/plans/eu/night/events").await.json();
    assert_eq!(events[0]["workflowId"], "eu/night");
    site.verb("/v1/tenants/acme/eu/retry", "again").await;
    site.plan_is("eu/night", "COMPLETED").await;
}

#[tokio::test]
async fn plans_are_told_from_workflows() {
    let site = Site::new().await;
    let all = site.get("/v1/workflows").await.json();
    let named = |name: &str| all["items"].as_array().unwrap().iter().find(|item| item["name"] == name).unwrap().clone();
    assert_eq!((&named("echo")["kind"], named("echo").get("plan")), (&json!("workflow"), None));
    let careful = named("careful");
    assert_eq!(
        (&careful["kind"], &careful["recovery"], &careful["plan"]["stages"][2]),
        (&json!("plan"), &json!("manual"), &json!("verify"))
    );
    assert_eq!((&careful["plan"]["canary"], &careful["plan"]["onFailure"]), (&json!(1), &json!("release")));
    let picky = named("team/picky");
    assert_eq!((&picky["kind"], &picky["plan"]["stages"][0]), (&json!("plan"), &json!("drain")), "whatever its vars have to be");
    let got = site.post("/v1/runs", json!({"workflow": "switch"})).await;
    assert_eq!(got.problem(422), "SF0116", "a plan is not started like a workflow");
}
