//! Tenants in the console: their latest task, its checkpoint and lock, and what the forms do.

use super::flows::HOSTILE;
use super::site::Site;
use serde_json::json;
use std::sync::atomic::Ordering;

const VERBS: [&str; 7] = ["retry", "restart", "pause", "resume", "cancel", "rollback", "break"];

async fn offers(site: &Site, tenant: &str) -> Vec<&'static str> {
    let page = site.page(&format!("/tenants/{tenant}")).await;
    assert_eq!(page.status, 200);
    let offered = |verb: &&str| page.text.contains(&format!("name=\"verb\" value=\"{verb}\""));
    VERBS.into_iter().filter(offered).collect()
}

#[tokio::test]
async fn a_tenant_shows_its_task_with_checkpoint_and_lock() {
    let site = Site::new().await;
    site.plan("eu/p", &["bad/x"]).await;
    site.task_is("bad%2Fx", "FAILED").await;
    let page = site.page("/tenants/bad/x").await;
    page.has("It has failed at the stage <code>copy</code>.");
    page.has(&HOSTILE.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"));
    page.has("<dt>Stage</dt><dd>2 of 5 done</dd>");
    page.has("<dt>Last stage that is done</dt><dd>1 (drain)</dd>");
    page.has("<dt>Version</dt><dd>12</dd>");
    page.has("<li><code>snapshot</code></li><li><code>drain</code></li>");
    page.has("&lt;script&gt;document.title='owned'&lt;/script&gt;");
    page.has_not("<script>");
    page.has_not("<img");
    page.has("href=\"/plans/eu/p\"");
    page.has("href=\"/runs/eu/p/bad/x\"");
    page.has("<dt>Fence</dt><dd>1</dd>");
    page.has(", this task");
    for kind in ["TASK_CREATED", "TASK_STARTED", "STAGE_FAILED", "CHECKPOINT_SAVED", "TASK_FAILED"] {
        page.has(kind);
    }
    page.has_not(">RUN_FAILED<");
    page.has("data-follows=\"/v1/events?tenant=bad%2Fx\"");
    let run = site.page("/runs/eu/p/bad/x").await;
    run.has("A task of the plan <a href=\"/plans/eu/p\">eu/p</a> for the tenant <a href=\"/tenants/bad/x\">bad/x</a>.");
    run.has("data-follows=\"/v1/events?kind=task&amp;id=eu%2Fp%2Fbad%2Fx\"");
    run.has_not("steadfast run retry");
    let none = site.page("/tenants/nobody").await;
    assert_eq!(none.status, 404);
}

#[tokio::test]
async fn a_tenant_offers_what_the_status_of_its_task_allows() {
    let site = Site::new().await;
    let tenants = ["ok-1", "bad-1", "slow-1", "asks-1", "ails-1", "stuck-1", "early-1"];
    site.create("p", &tenants).await;
    assert_eq!(offers(&site, "ok-1").await, ["pause", "cancel"], "it has not begun");
    site.post("/v1/plans/p/start", json!({})).await;
    for (tenant, status, verbs) in [
        ("ok-1", "COMPLETED", &["rollback"][..]),
        ("bad-1", "FAILED", &["retry", "restart", "cancel", "rollback", "break"]),
        ("slow-1", "RUNNING", &["pause", "cancel", "rollback", "break"]),
        ("asks-1", "WAITING", &["pause", "cancel", "rollback", "break"]),
        ("ails-1", "WAITING", &["retry", "pause", "cancel", "rollback", "break"]),
    ] {
        site.task_is(tenant, status).await;
        assert_eq!(offers(&site, tenant).await, verbs, "{tenant}");
    }
    let page = site.page("/tenants/asks-1").await;
    page.has("One who is operator has to approve <code>go-live</code>");
    page.has("steadfast run signal p/asks-1 go-live");
    site.page("/tenants/ails-1").await.has("the gateway does not answer (503)");
    site.post("/v1/tenants/slow-1/pause", json!({"reason": "on <b>air</b>"})).await;
    assert_eq!(offers(&site, "slow-1").await, ["resume", "cancel", "rollback", "break"], "it pauses");
    let page = site.page("/tenants/slow-1").await;
    page.has("and pauses at the end of it.");
    page.has("on &lt;b&gt;air&lt;/b&gt;");
    site.task_is("stuck-1", "COMPLETED").await;
    site.post("/v1/tenants/stuck-1/rollback", json!({})).await;
    site.task_is("stuck-1", "ROLLBACK_FAILED").await;
    assert_eq!(offers(&site, "stuck-1").await, ["cancel", "rollback", "break"]);
    site.page("/tenants/stuck-1").await.has("TASK_ROLLBACK_FAILED");
    site.post("/v1/tenants/early-1/cancel", json!({})).await;
    assert_eq!(offers(&site, "early-1").await, ["retry", "restart", "rollback"]);
}

#[tokio::test]
async fn what_a_tenant_offers_is_done_by_form() {
    let site = Site::new().await;
    site.plan("p", &["bad-1", "asks-1"]).await;
    site.task_is("bad-1", "FAILED").await;
    let send = async |verb: &str, task: &str, sure: &str| {
        let tenant = task.split('/').nth(1).unwrap_or("bad-1");
        site.form(&format!("/tenants/{tenant}"), &[("verb", verb), ("task", task), ("reason", "the disk has room"), ("sure", sure)])
            .await
    };
    assert_eq!(send("retry", "older/bad-1", "").await.status, 409, "it is about another task");
    assert_eq!(send("restart", "p/bad-1", "").await.status, 400, "nobody is sure");
    let again = send("retry", "p/bad-1", "").await;
    assert_eq!((again.status.as_u16(), again.header("location")), (303, "/tenants/bad-1"));
    site.task_is("bad-1", "FAILED").await;
    site.world.mended.store(true, Ordering::Relaxed);
    assert_eq!(send("retry", "p/bad-1", "").await.status, 303);
    site.task_is("bad-1", "COMPLETED").await;
    let page = site.page("/tenants/bad-1").await;
    page.has("TASK_RETRY_STARTED");
    page.has("by console: <span class=\"message\">the disk has room</span>");
    page.has("<dt>Life</dt><dd>3</dd>");
    assert_eq!(page.text.matches("STAGE_COMPLETED").count(), 5, "stages that were done were not done again");
    assert_eq!(send("pause", "p/bad-1", "").await.status, 409);
    assert_eq!(send("rollback", "p/bad-1", "yes").await.status, 303);
    site.task_is("bad-1", "ROLLED_BACK").await;
    let page = site.page("/tenants/bad-1").await;
    page.has("What it did is undone.");
    page.has("TASK_ROLLING_BACK");
    page.has("TASK_ROLLED_BACK");
    site.task_is("asks-1", "WAITING").await;
    assert_eq!(send("pause", "p/asks-1", "").await.status, 303);
    site.task_is("asks-1", "PAUSED").await;
    assert_eq!(send("resume", "p/asks-1", "").await.status, 303);
    site.task_is("asks-1", "WAITING").await;
    assert_eq!(send("cancel", "p/asks-1", "yes").await.status, 303);
    site.task_is("asks-1", "CANCELLED").await;
    assert_eq!(send("restart", "p/asks-1", "yes").await.status, 303);
    site.task_is("asks-1", "WAITING").await;
    let page = site.page("/tenants/asks-1").await;
    assert_eq!(page.text.matches(">STAGE_STARTED<").count(), 8, "all stages were begun again");
}

#[tokio::test]
async fn the_lock_of_a_tenant_can_be_broken_on_its_page() {
    let site = Site::new().await;
    site.plan("p", &["slow-1"]).await;
    site.task_is("slow-1", "RUNNING").await;
    let page = site.page("/tenants/slow-1").await;
    page.has("name=\"fence\" value=\"1\"");
    page.has("name=\"page\" value=\"tenant\"");
    let fields = [("verb", "break"), ("tenant", "slow-1"), ("fence", "1"), ("page", "tenant"), ("reason", "gone"), ("sure", "yes")];
    let done = site.form("/locks", &fields).await;
    assert_eq!((done.status.as_u16(), done.header("location")), (303, "/tenants/slow-1"));
    site.task_is("slow-1", "INTERRUPTED").await;
    let page = site.page("/tenants/slow-1").await;
    page.has("It was interrupted at the stage <code>copy</code>");
    page.has("Nobody has it.");
    page.has("LOCK_LOST");
    assert_eq!(offers(&site, "slow-1").await, ["retry", "restart", "cancel", "rollback"]);
}

#[tokio::test]
async fn earlier_tasks_of_a_tenant_are_listed() {
    let site = Site::new().await;
    site.plan("first", &["ok-1"]).await;
    site.task_is("ok-1", "COMPLETED").await;
    site.page("/tenants/ok-1").await.has_not("Earlier tasks");
    site.plan("second", &["ok-1"]).await;
    let page = site.page("/tenants/ok-1").await;
    page.has("data-key=\"earlier first/ok-1\"");
    page.has_not("data-key=\"earlier second/ok-1\"");
    page.has("href=\"/plans/first\"");
}
