//! What operators do with the console, in a real browser.

use super::browser::Page;
use super::site::Site;
use serde_json::json;
use std::sync::atomic::Ordering;
use steadfast_kernel::{Payload, RunId};
use steadfast_server::Config;

const LIVE: &str = "document.querySelector('#live')?.dataset.state === 'live'";

fn row(run: &str, status: &str) -> String {
    format!("document.querySelector('tr[data-key=\"run {run}\"]')?.dataset.status === '{status}'")
}

fn shows(text: &str) -> String {
    format!("document.querySelector('main').innerText.includes({text:?})")
}

#[tokio::test(flavor = "multi_thread")]
async fn new_runs_appear_and_change_without_a_reload() {
    let site = Site::new().await;
    let page = Page::new().await;
    page.open(&site.url("/")).await;
    page.until(LIVE).await;
    page.value("window.same = true").await;
    page.until(&shows("No runs yet")).await;
    site.run("hold", "first", "WAITING").await;
    page.until(&row("first", "WAITING")).await;
    site.run("away", "second", "WAITING").await;
    page.until(&row("second", "WAITING")).await;
    let order = page.value("[...document.querySelectorAll('tbody tr')].map((row) => row.dataset.key)").await;
    assert_eq!(order, json!(["run second", "run first"]), "newest first");
    site.post("/v1/runs/first/signals/go", json!({"payload": 1})).await;
    page.until(&row("first", "COMPLETED")).await;
    assert_eq!(page.value("window.same").await, true, "it was not loaded again");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_found_understood_retried_and_seen_to_finish() {
    let site = Site::new().await;
    site.run("hold", "other", "WAITING").await;
    site.run("team/poison", "mail", "FAILED").await;
    site.run("declined", "orders/17", "FAILED").await;
    let page = Page::new().await;
    page.open(&site.url("/")).await;
    page.click("a.chip[href='/?status=FAILED']").await;
    page.until("location.search === '?status=FAILED' && document.readyState === 'complete'").await;
    page.value("document.querySelector('select[name=workflow]').value = 'declined'").await;
    page.click(".filters button").await;
    page.until("location.search.includes('workflow=declined') && document.readyState === 'complete'")
        .await;
    assert_eq!(page.value("document.querySelectorAll('tbody tr').length").await, 1);
    page.click("a[href='/runs/orders/17']").await;
    page.until(LIVE).await;
    page.until(&shows("It has failed at the step charge.")).await;
    page.until(&shows("because: insufficient funds").replace("because: ", "")).await;
    page.value("document.querySelector('details[data-key=input] summary').click()").await;
    page.value("document.querySelector('details[data-key=input] summary').focus()").await;
    page.value("window.same = true").await;
    site.world.mended.store(true, Ordering::Relaxed);
    site.post("/v1/runs/orders%2F17/retry", json!({"reason": "the card is good now"})).await;
    page.until(&shows("It has completed.")).await;
    page.until(&shows("the card is good now")).await;
    assert_eq!(page.value("document.title").await, "orders/17 · Completed · Steadfast");
    let kept = "[window.same, document.querySelector('details[data-key=input]').open, document.activeElement.localName]";
    assert_eq!(page.value(kept).await, json!([true, true, "summary"]), "what the reader did is kept");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_comes_back_live_after_a_restart_of_the_server() {
    let mut site = Site::new().await;
    site.run("hold", "held", "WAITING").await;
    let page = Page::new().await;
    page.open(&site.url("/runs/held")).await;
    page.until(LIVE).await;
    site.stop().await;
    page.until("document.querySelector('#live').dataset.state === 'reconnecting'").await;
    site.engine
        .signal(&RunId::new("held").unwrap(), "go", Payload::json("1"), steadfast_kernel::Origin::default())
        .await
        .unwrap();
    site.until("held", "COMPLETED").await;
    page.complained("ERR_CONNECTION_REFUSED", 2).await;
    site.serve(Config { feed_readers_max: 0, ..Config::default() }).await;
    page.complained("429", 1).await; // the browser gives up by itself when it is sent away
    site.stop().await;
    site.serve(Config::default()).await;
    page.until(LIVE).await;
    page.until(&shows("It has completed.")).await;
    let others: Vec<String> = page.complaints().into_iter().filter(|text| !text.starts_with("\"network\"")).collect();
    assert_eq!(others, Vec::<String>::new(), "nothing but that the server was away");
}

const STATE: &str = "document.querySelector('#live').dataset.state";

/// Has the page believe that nobody looks at it, or that somebody does again.
fn hide(hidden: bool) -> String {
    format!(
        "Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }}); document.dispatchEvent(new Event('visibilitychange'))"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_paused_or_hidden_stands_still_and_catches_up() {
    let site = Site::new().await;
    let page = Page::new().await;
    page.open(&site.url("/")).await;
    page.until(LIVE).await;
    let click = "document.querySelector('#live').click()".to_string();
    for (run, stop, go_on) in [("paused", click.clone(), click), ("hidden", hide(true), hide(false))] {
        page.value(
            "window.heard = []; window.ear = new EventSource('/v1/events?kind=run'); ear.onmessage = (event) => heard.push(event.data); 1",
        )
        .await;
        page.until("ear.readyState === EventSource.OPEN").await;
        page.value(&stop).await;
        page.until(&format!("{STATE} === 'paused'")).await;
        site.run("hold", run, "WAITING").await;
        page.until(&format!("heard.some((data) => data.includes('\"{run}\"'))")).await;
        page.value("ear.close(); fetch('/').then((answer) => answer.text()).then(() => 1)").await;
        assert_eq!(page.value(&row(run, "WAITING")).await, false, "others have heard of it, the page has not");
        page.value(&go_on).await;
        page.until(&row(run, "WAITING")).await;
        page.until(LIVE).await;
    }
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_changes_is_rendered_at_a_pace() {
    let site = Site::new().await;
    let page = Page::new().await;
    page.open(&site.url("/")).await;
    page.until(LIVE).await;
    page.value("window.began = performance.now(); performance.clearResourceTimings(); performance.setResourceTimingBufferSize(9999)")
        .await;
    for number in 0..400 {
        site.post("/v1/runs", json!({"workflow": "hold", "id": format!("n-{number}"), "input": null})).await;
    }
    page.until(&row("n-399", "WAITING")).await;
    let fetched = "performance.getEntriesByType('resource').filter((entry) => entry.initiatorType === 'fetch').length";
    let most = page.value(&format!("[{fetched}, (performance.now() - window.began) / 400 + 2]")).await;
    assert!(most[0].as_f64() > Some(0.0) && most[0].as_f64() <= most[1].as_f64(), "asked for {most} times at most");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_fit_windows_of_any_width() {
    let site = Site::new().await;
    let long = "a-very-long-id/".repeat(8) + "end";
    site.run("declined", &long, "FAILED").await;
    site.run("team/poison", "mail", "FAILED").await;
    site.run("checkout", "order", "COMPLETED").await;
    let page = Page::new().await;
    for path in ["/", "/?status=FAILED", &format!("/runs/{long}"), "/runs/order", "/letters", "/messages", "/workflows", "/runs/none"] {
        page.open(&site.url(path)).await;
        for width in [360, 800, 1280] {
            page.resize(width).await;
            let wide = format!(
                "[...document.querySelectorAll('main *, header *')].filter((one) => one.getBoundingClientRect().right > {width} && !one.closest('.chips, pre, svg, thead'))"
            );
            let wide = page.value(&format!("{wide}.map((one) => one.outerHTML.slice(0, 200))")).await;
            assert_eq!((page.value("document.documentElement.scrollWidth").await, wide), (json!(width), json!([])), "{path}");
        }
    }
    let complaints: Vec<String> = page.complaints().into_iter().filter(|text| !text.contains("404")).collect();
    assert_eq!(complaints, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_can_be_copied_and_times_go_on() {
    let site = Site::new().await;
    site.run("declined", "d", "FAILED").await;
    let page = Page::new().await;
    page.open(&site.url("/runs/d")).await;
    page.until("!document.querySelector('button[data-copy]').hidden").await;
    page.click("button[data-copy]").await;
    page.until("['Copied', 'Selected'].includes(document.querySelector('button[data-copy]').textContent)")
        .await;
    let time = "document.querySelector('time[data-relative]')";
    page.until(&format!("({time}.dateTime = '2001-01-01T00:00:00Z', /^\\d+ days ago$/.test({time}.textContent))"))
        .await;
    assert_eq!(page.complaints(), Vec::<String>::new());
}
