//! What an operator does with the pages and the command line of the real binary, side by side.
//!
//! Subject: `crates/server/src/pages/mod.rs`.

#[expect(dead_code, reason = "the journeys beside it need more than this one does")]
#[path = "../../../server/tests/it/pages/browser.rs"]
mod browser;

use crate::served::Served;
use browser::Page;
use serde_json::json;

const LIVE: &str = "document.querySelector('#live')?.dataset.state === 'live'";
const ROWS: &str = "[...document.querySelectorAll('tbody tr')].map((row) => [row.dataset.key, row.dataset.status])";

/// That text can be read in that place.
fn shows(place: &str, text: &str) -> String {
    format!("document.querySelector({place:?})?.innerText.includes({text:?})")
}

/// The list is there, with these filters in its address.
fn listed(filters: &str) -> String {
    format!("location.pathname === '/' && location.search === {filters:?} && document.readyState === 'complete'")
}

/// Starts runs, and waits until each stands where it ends or waits.
fn begin(served: &Served) {
    let runs = [("mend", "orders/17", "FAILED"), ("poison", "mail", "FAILED"), ("ask", "held", "WAITING"), ("greet", "hello", "COMPLETED")];
    for (workflow, id, status) in runs {
        let start = ["run", "start", workflow, "--id", id, "--input", r#"{"name":"Ada"}"#];
        served.call(&start).ends_with(0);
        served.until_status(id, status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_found_on_the_pages_retried_by_command_and_seen_to_finish() {
    let served = Served::new();
    begin(&served);
    let page = Page::new().await;
    page.open(&served.url).await;

    // It is found: by its status, then by its workflow.
    page.click("a.chip[href='/?status=FAILED']").await;
    page.until(&listed("?status=FAILED")).await;
    assert_eq!(page.value(ROWS).await, json!([["run mail", "FAILED"], ["run orders/17", "FAILED"]]));
    page.value("document.querySelector('select[name=workflow]').value = 'mend'").await;
    page.click(".filters button").await;
    page.until(&listed("?status=FAILED&q=&workflow=mend&wait=&tenant=")).await;
    assert_eq!(page.value(ROWS).await, json!([["run orders/17", "FAILED"]]));

    // It is understood.
    page.click("a[href='/runs/orders/17']").await;
    page.until(LIVE).await;
    page.until(&shows(".why", "It has failed at the step look.")).await;
    page.until(&shows(".why", "the command ended with exit code 1")).await;

    // It is mended and retried, and the page that stands open sees it finish.
    page.value("window.same = true").await;
    std::fs::write(served.dir.join("definitions/mended"), "").unwrap();
    served.call(&["run", "retry", "orders/17", "--reason", "the file is there"]).ends_with(0);
    page.until(&shows(".why", "It has completed.")).await;
    page.until(&shows("main", "the file is there")).await;
    page.until("document.title === 'orders/17 · Completed · Steadfast'").await;
    assert_eq!(page.value("window.same").await, true, "it was not loaded again");

    // The list has it among the completed ones.
    page.click("header nav a[href='/']").await;
    page.until(&listed("")).await;
    let all = [["run hello", "COMPLETED"], ["run held", "WAITING"], ["run mail", "FAILED"], ["run orders/17", "COMPLETED"]];
    assert_eq!(page.value(ROWS).await, json!(all));
    assert_eq!(page.complaints(), Vec::<String>::new(), "no errors, and nothing that the content security policy refuses");
}
