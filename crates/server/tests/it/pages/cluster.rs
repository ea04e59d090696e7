//! The page of a cluster in a real browser.

use super::browser::Page;
use crate::cluster::Cluster;

const LIVE: &str = "document.querySelector('#live')?.dataset.state === 'live'";

/// How many shards instances have on the page, in the order of their letters.
fn shown(a: u32, b: u32) -> String {
    let has = |id: &str, count: u32| format!("document.querySelectorAll('.shards li[data-holder={id}]').length === {count}");
    format!("{} && {}", has("a", a), has("b", b))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_drained_and_taken_back_and_the_page_sees_its_shards_move() {
    let cluster = Cluster::default();
    let (a, _b) = cluster.two().await;
    let page = Page::new().await;
    page.open(&a.url("/")).await;
    page.click("header nav a[href='/cluster']").await;
    page.until(LIVE).await;
    page.until(&shown(4, 4)).await;
    for (state, of_a, of_b) in [("DRAINING", 8, 0), ("LIVES", 4, 4)] {
        page.click("tr[data-key='instance b'] summary").await;
        page.click("tr[data-key='instance b'] button[type=submit]").await;
        page.until(&format!("document.querySelector('tr[data-key=\"instance b\"]')?.dataset.state === '{state}'"))
            .await;
        page.until(&shown(of_a, of_b)).await;
    }
    page.resize(390).await;
    page.until("document.documentElement.scrollWidth <= 390").await;
    let places = "[...document.querySelectorAll('tr[data-key=\"instance b\"] > *')].map((cell) => cell.getBoundingClientRect())";
    page.until(&format!("{places}.every((cell, at, all) => at === 0 || cell.top >= all[at - 1].bottom)"))
        .await; // nothing lies on anything else
    assert_eq!(page.complaints(), Vec::<String>::new(), "no errors, and nothing that the content security policy refuses");
}
