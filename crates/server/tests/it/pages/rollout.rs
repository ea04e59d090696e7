//! What operators do with plans in a real browser.

use super::browser::Page;
use super::site::Site;
use serde_json::json;
use std::sync::atomic::Ordering;

const LIVE: &str = "document.querySelector('#live')?.dataset.state === 'live'";

fn shows(text: &str) -> String {
    format!("document.querySelector('main').innerText.includes({text:?})")
}

fn row(tenant: &str, status: &str) -> String {
    format!("document.querySelector('tr[data-key=\"task {tenant}\"]')?.dataset.status === '{status}'")
}

/// Opens what a deed needs to be told.
async fn open(page: &Page, verb: &str) -> String {
    let form = format!("details[data-key^='deed {verb}'] form");
    page.click(&format!("details[data-key^='deed {verb}'] summary")).await;
    form
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_started_paused_mended_and_finished_with_buttons() {
    let site = Site::new().await;
    site.create("eu/p", &["ok-1", "bad-1", "slow-1"]).await;
    let page = Page::new().await;
    page.open(&site.url("/")).await;
    page.click("nav a[href='/plans']").await;
    page.click("a[href='/plans/eu/p']").await;
    page.until(&format!("location.pathname === '/plans/eu/p' && {LIVE}")).await;
    let form = open(&page, "start").await;
    page.value(&format!("document.querySelector({:?}).value = '<i>tonight</i>'", format!("{form} input[name=reason]")))
        .await;
    page.click(&format!("{form} button[type=submit]")).await;
    page.until(&row("bad-1", "FAILED")).await;
    page.until(LIVE).await;
    page.until(&row("slow-1", "RUNNING")).await;
    page.until(&shows("by console: <i>tonight</i>")).await;
    page.value("window.same = true").await;
    let form = open(&page, "cancel").await;
    page.value(&format!("document.querySelector({:?}).value = 'half a sentence'", format!("{form} input[name=reason]")))
        .await;
    page.click(&format!("{form} button[type=submit]")).await; // nobody has said that they are sure
    site.post("/v1/plans/eu%2Fp/pause", json!({"reason": "a look at it"})).await;
    page.until(&shows("a look at it")).await;
    let kept = format!(
        "[window.same, document.querySelector({form:?}).parentElement.open, document.querySelector({:?}).value]",
        format!("{form} input[name=reason]")
    );
    assert_eq!(page.value(&kept).await, json!([true, true, "half a sentence"]), "it was neither sent nor lost");
    page.click("a.chip[href='/plans/eu/p?show=person']").await;
    page.until(&format!("location.search === '?show=person' && {LIVE}")).await;
    assert_eq!(page.value("document.querySelectorAll('.matrix tbody tr').length").await, 1);
    page.click("a[href='/tenants/bad-1']").await;
    page.until(&format!("location.pathname === '/tenants/bad-1' && {LIVE}")).await;
    page.until(&shows("It has failed at the stage copy.")).await;
    site.world.mended.store(true, Ordering::Relaxed);
    let form = open(&page, "retry").await;
    page.click(&format!("{form} button[type=submit]")).await;
    page.until(&shows("All of its stages are done.")).await;
    page.open(&site.url("/tenants/slow-1")).await;
    page.until(LIVE).await;
    let form = open(&page, "break").await;
    page.value(&format!("document.querySelector({:?}).value = 'the machine is gone'", format!("{form} input[name=reason]")))
        .await;
    page.click(&format!("{form} input[name=sure]")).await;
    page.click(&format!("{form} button[type=submit]")).await;
    page.until(&shows("It was interrupted at the stage copy")).await;
    assert_eq!(page.value("document.title").await, "slow-1 · Interrupted · Steadfast");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grid_and_the_run_of_a_task_change_while_somebody_looks() {
    let site = Site::new().await;
    site.plan("p", &["asks-1", "ok-1"]).await;
    site.task_is("asks-1", "WAITING").await;
    let page = Page::new().await;
    page.open(&site.url("/plans/p")).await;
    page.until(LIVE).await;
    page.value("window.same = true; window.line = document.querySelector('tr[data-key=\"task asks-1\"]')")
        .await;
    page.until(&row("asks-1", "WAITING")).await;
    site.post("/v1/runs/p%2Fasks-1/signals/go-live", json!({"payload": {"approved": true}})).await;
    page.until(&row("asks-1", "COMPLETED")).await;
    page.until(&shows("It has completed.")).await;
    let same = "[window.same, window.line === document.querySelector('tr[data-key=\"task asks-1\"]')]";
    assert_eq!(page.value(same).await, json!([true, true]), "neither the page nor the line is another one");
    page.open(&site.url("/runs/p/asks-1")).await;
    page.until(LIVE).await;
    page.value("window.same = true").await;
    site.post("/v1/tenants/asks-1/rollback", json!({"reason": "back to what was"})).await;
    page.until(&shows("back to what was")).await;
    assert_eq!(page.value("window.same").await, true);
    page.open(&site.url("/plans")).await;
    page.until(LIVE).await;
    site.create("later", &["ok-9"]).await;
    page.until("document.querySelector('tr[data-key=\"plan later\"]')?.dataset.status === 'READY'")
        .await;
    site.post("/v1/plans/later/start", json!({})).await;
    page.until("document.querySelector('tr[data-key=\"plan later\"]')?.dataset.status === 'COMPLETED'")
        .await;
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_plans_fit_windows_of_any_width() {
    let site = Site::new().await;
    let (long, tenant) = ("a-very-long-name/".repeat(3) + "end", format!("bad-{}", "long-".repeat(12)));
    site.plan(&long, &[&tenant, "slow-1", "ok-1"]).await;
    site.task_is(&tenant, "FAILED").await;
    site.task_is("slow-1", "RUNNING").await;
    let page = Page::new().await;
    for path in ["/plans", &format!("/plans/{long}"), &format!("/tenants/{tenant}"), "/locks", "/tenants/nobody"] {
        page.open(&site.url(path)).await;
        page.value("document.querySelectorAll('.deed').forEach((deed) => (deed.open = true))").await;
        for width in [360, 800, 1280] {
            page.resize(width).await;
            let wide = format!(
                "[...document.querySelectorAll('main *, header *')].filter((one) => one.getBoundingClientRect().right > {width} && !one.closest('.chips, pre, svg, thead, .wide'))"
            );
            let wide = page.value(&format!("{wide}.map((one) => one.outerHTML.slice(0, 200))")).await;
            assert_eq!((page.value("document.documentElement.scrollWidth").await, wide), (json!(width), json!([])), "{path}");
        }
    }
    let complaints: Vec<String> = page.complaints().into_iter().filter(|text| !text.contains("404")).collect();
    assert_eq!(complaints, Vec::<String>::new());
}
