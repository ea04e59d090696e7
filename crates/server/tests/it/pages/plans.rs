//! Plans and locks in the console: what is on their pages, and what their forms do.

use super::flows::HOSTILE;
use super::site::Site;
use std::time::Duration;

fn escaped() -> String {
    HOSTILE.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The address of a link that leads on.
fn next(page: &str) -> String {
    let link = page.split("rel=\"next\" href=\"").nth(1).expect("a link that leads on");
    link.split('"').next().unwrap().replace("&amp;", "&")
}

#[tokio::test]
async fn plans_are_listed_newest_first_with_how_far_they_are() {
    let site = Site::new().await;
    let none = site.page("/plans").await;
    none.has("<code>steadfast plan apply eu/switch --tenant acme --tenant globex</code>");
    none.has("href=\"/plans\" aria-current=\"page\"");
    site.plan("first", &["ok-1", "bad-1"]).await;
    site.task_is("bad-1", "FAILED").await;
    site.task_is("ok-1", "COMPLETED").await;
    for number in 0..3 {
        site.create(&format!("eu/later-{number}"), &["ok-2"]).await;
    }
    let all = site.page("/plans").await;
    all.has("1 of 2 completed · 1 failed");
    all.has("<rect class=\"part good\" x=\"0.00\" width=\"50.00\"");
    all.has("0 of 1 completed · 1 pending");
    all.has("href=\"/plans/eu/later-0\"");
    let places: Vec<_> = ["plan eu/later-2", "plan eu/later-0", "plan first"].map(|key| all.text.find(key)).into();
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    let ready = site.page("/plans?status=READY&limit=2").await;
    assert_eq!(ready.text.matches("data-status=\"READY\"").count(), 2);
    let rest = site.page(&next(&ready.text)).await;
    assert_eq!(rest.text.matches("data-status=\"READY\"").count(), 1);
    rest.has("Newest");
    rest.has_not("rel=\"next\"");
    site.page("/plans?definition=eu%2Fswitch").await.has("of eu/switch ×");
    site.page("/plans?status=CANCELLED").await.has("No such plans");
    assert_eq!(site.page("/plans?status=gone").await.status, 400);
}

#[tokio::test]
async fn a_plan_is_a_grid_of_tenants_and_stages() {
    let site = Site::new().await;
    site.plan("eu/switch-17", &["ok-1", "bad-1", "slow-1", "asks-1", "ails-1", "stuck-1"]).await;
    for (tenant, status) in
        [("ok-1", "COMPLETED"), ("bad-1", "FAILED"), ("slow-1", "RUNNING"), ("asks-1", "WAITING"), ("ails-1", "WAITING")]
    {
        site.task_is(tenant, status).await;
    }
    site.task_is("stuck-1", "COMPLETED").await;
    site.post("/v1/tenants/stuck-1/rollback", serde_json::json!({"reason": "back"})).await;
    site.task_is("stuck-1", "ROLLBACK_FAILED").await;
    let page = site.page("/plans/eu/switch-17").await;
    page.has("data-follows=\"/v1/events?plan=eu%2Fswitch-17\"");
    page.has("It is under way.");
    page.has("by api: <span class=\"message\">the night has begun</span>");
    page.has("by api: <span class=\"message\">&lt;b&gt;new&lt;/b&gt; gateway</span>");
    page.has("&lt;img src=x onerror=y()&gt;");
    page.has(&escaped());
    page.has_not("<img");
    page.has_not("<script>");
    for cell in [
        "<td class=\"cell\" title=\"copy: failed\"><svg class=\"mark bad\" role=\"img\" aria-label=\"failed\">",
        "title=\"drain: waits\"><svg class=\"mark wait\"",
        "title=\"copy: under way\"><svg class=\"mark busy\"",
        "title=\"snapshot: done, and perhaps not undone\"><svg class=\"mark doubt\"",
        "title=\"switch: not begun\"><svg class=\"mark none\"",
    ] {
        page.has(cell);
    }
    page.has("tried again later: <span class=\"message\">the gateway does not answer (503)");
    page.has("an approval");
    page.has("3 tenants need a person");
    let stuck = site.page("/plans/eu/switch-17?show=person").await;
    for tenant in ["bad-1", "asks-1", "stuck-1"] {
        stuck.has(&format!("data-key=\"task {tenant}\""));
    }
    stuck.has_not("data-key=\"task ok-1\"");
    site.page("/plans/eu/switch-17?show=COMPLETED").await.has_not("data-key=\"task bad-1\"");
    site.page("/plans/eu/switch-17?show=PAUSED").await.has("None of them now.");
    assert_eq!(site.page("/plans/eu/switch-17?show=gone").await.status, 400);
    assert_eq!(site.page("/plans/eu%2Fswitch-17").await.status, 200);
    let none = site.page("/plans/none").await;
    assert_eq!(none.status, 404);
    none.has("SF01");
}

#[tokio::test]
async fn a_plan_offers_what_its_status_allows_and_does_it_by_form() {
    let site = Site::new().await;
    let offers = async |page: &str| {
        let page = site.page(page).await;
        let verbs = ["start", "pause", "resume", "cancel", "rollback"];
        verbs
            .into_iter()
            .filter(|verb| page.text.contains(&format!("name=\"verb\" value=\"{verb}\"")))
            .collect::<Vec<_>>()
    };
    site.create("eu/p", &["slow-1", "ok-1"]).await;
    assert_eq!(offers("/plans/eu/p").await, ["start", "cancel"]);
    let started = site.form("/plans/eu/p", &[("verb", "start"), ("reason", " <i>go</i> ")]).await;
    assert_eq!((started.status.as_u16(), started.header("location")), (303, "/plans/eu/p"));
    site.task_is("slow-1", "RUNNING").await;
    site.task_is("ok-1", "COMPLETED").await;
    assert_eq!(offers("/plans/eu/p").await, ["pause", "cancel", "rollback"]);
    assert_eq!(site.form("/plans/eu/p", &[("verb", "pause"), ("reason", "")]).await.status, 303);
    site.plan_is("eu/p", "PAUSED").await;
    assert_eq!(offers("/plans/eu/p").await, ["resume", "cancel", "rollback"]);
    let page = site.page("/plans/eu/p").await;
    page.has("by console");
    page.has("by console: <span class=\"message\">&lt;i&gt;go&lt;/i&gt;</span>");
    page.has("Paused <time");
    page.has("PLAN_PAUSED");
    page.has("<code>steadfast plan resume eu/p --reason '…'</code>");
    assert_eq!(site.form("/plans/eu/p", &[("verb", "resume")]).await.status, 303);
    let unsure = site.form("/plans/eu/p", &[("verb", "cancel"), ("reason", "x")]).await;
    assert_eq!(unsure.status, 400);
    unsure.has("tick the box");
    assert_eq!(site.form("/plans/eu/p", &[("verb", "cancel"), ("sure", "yes")]).await.status, 303);
    site.plan_is("eu/p", "CANCELLED").await;
    assert_eq!(offers("/plans/eu/p").await, ["rollback"]);
    let twice = site.form("/plans/eu/p", &[("verb", "pause")]).await;
    assert_eq!(twice.status, 409);
    twice.has("it has ended");
    assert_eq!(site.form("/plans/eu/p", &[("verb", "rollback"), ("sure", "yes")]).await.status, 303);
    site.task_is("ok-1", "ROLLED_BACK").await;
}

#[tokio::test]
async fn only_pages_of_ours_can_send_forms() {
    let site = Site::new().await;
    site.create("p", &["ok-1"]).await;
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        for (path, verb) in [("/plans/p", "start"), ("/tenants/ok-1", "cancel"), ("/locks", "break")] {
            let got = site.form_of(origin, path, &[("verb", verb), ("sure", "yes")]).await;
            assert_eq!(got.status, 403, "{origin} {path}");
        }
    }
    for fields in
        [&[("verb", "start"), ("more", "1")][..], &[("verb", "destroy")], &[("reason", "x")], &[("verb", "start"), ("verb", "start")]]
    {
        assert_eq!(site.form("/plans/p", fields).await.status, 400, "{fields:?}");
    }
    let long = "x".repeat(5000);
    assert_eq!(site.form("/plans/p", &[("verb", "start"), ("reason", &long)]).await.status, 400);
    steadfast_tls::install_default();
    let json = reqwest::Client::builder()
        .no_proxy()
        .build()
        .unwrap()
        .post(site.url("/plans/p"))
        .body("{\"verb\":\"start\"}");
    assert_eq!(json.send().await.unwrap().status(), 415);
    site.page("/plans/p").await.has("It waits to be started.");
}

#[tokio::test]
async fn a_thousand_tenants_are_read_page_by_page_and_fast() {
    let site = Site::new().await;
    let tenants: Vec<String> = (0..1000).map(|number| format!("ok-{number:04}")).collect();
    site.create("many", &tenants.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let soon = Duration::from_secs(5); // it takes a tenth of a second on an idle machine, not optimised
    let first = tokio::time::timeout(soon, site.page("/plans/many")).await.expect("the page comes soon");
    assert_eq!(first.text.matches("data-key=\"task ok-").count(), 200);
    first.has("1 to 200 of 1000");
    let second = site.page(&next(&first.text)).await;
    second.has("201 to 400 of 1000");
    second.has("data-key=\"task ok-0200\"");
    second.has("rel=\"prev\" href=\"/plans/many#tenants\"");
    let all = site.page("/plans/many?limit=1000").await;
    assert_eq!(all.text.matches("data-key=\"task ok-").count(), 1000);
    site.page("/plans/many?from=5000").await.has("801 to 1000 of 1000");
    assert_eq!(site.page("/plans/many?limit=1001").await.status, 400);
    let history = site.page("/plans/many").await;
    history.has("PLAN_CREATED");
    history.has_not("TASK_CHANGED");
    let everything = site.page("/plans/many?journal=all").await;
    assert_eq!(everything.text.matches("TASK_CHANGED").count(), 50);
    everything.has("href=\"/plans/many?journal=all&amp;before=952#journal\"");
    let earlier = site.page("/plans/many?journal=all&before=3").await;
    earlier.has("data-key=\"event 2\"");
    earlier.has("PLAN_CREATED");
    earlier.has_not("data-key=\"event 3\"");
}

#[tokio::test]
async fn locks_are_listed_and_broken_for_a_reason() {
    let site = Site::new().await;
    site.page("/locks").await.has("No locks");
    site.plan("p", &["slow-1", "slow/b", "bad-1"]).await;
    for (tenant, status) in [("slow-1", "RUNNING"), ("slow%2Fb", "RUNNING"), ("bad-1", "FAILED")] {
        site.task_is(tenant, status).await;
    }
    let page = site.page("/locks").await;
    page.has("data-key=\"lock slow/b\" data-fence=\"1\"");
    page.has("href=\"/runs/p/slow/b\"");
    page.has("href=\"/tenants/slow/b\"");
    let some = site.page("/locks?limit=2").await;
    assert_eq!(some.text.matches("data-key=\"lock ").count(), 2);
    site.page(&next(&some.text)).await.has("data-key=\"lock slow/b\"");
    let breaks = |fence: &'static str, reason: &'static str, sure: &'static str| {
        [("verb", "break"), ("tenant", "slow/b"), ("fence", fence), ("reason", reason), ("sure", sure)]
    };
    assert_eq!(site.form("/locks", &breaks("1", "", "yes")).await.status, 400);
    assert_eq!(site.form("/locks", &breaks("1", "gone", "")).await.status, 400);
    assert_eq!(site.form("/locks", &breaks("7", "gone", "yes")).await.status, 409, "somebody else has it");
    let done = site.form("/locks", &breaks("1", "the machine is <b>gone</b>", "yes")).await;
    assert_eq!((done.status.as_u16(), done.header("location")), (303, "/locks"));
    site.task_is("slow%2Fb", "INTERRUPTED").await;
    site.page("/locks").await.has_not("data-key=\"lock slow/b\"");
    site.page("/tenants/slow/b").await.has("the machine is &lt;b&gt;gone&lt;/b&gt;");
    assert_eq!(site.form("/locks", &breaks("1", "gone", "yes")).await.status, 404, "nobody has it any more");
}
