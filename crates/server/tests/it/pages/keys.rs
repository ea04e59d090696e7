//! Keys in the console: what is on their pages, and what operators do with them in a real browser.

use super::browser::Page;
use super::site::Site;
use serde_json::json;

const HOUR: u64 = 3_600_000;
const LIVE: &str = "document.querySelector('#live')?.dataset.state === 'live'";

/// An address where nobody answers.
const NOBODY: &str = "http://127.0.0.1:9/gone?token=of-the-query";

fn shows(text: &str) -> String {
    format!("document.querySelector('main').innerText.includes({text:?})")
}

async fn until(what: &str, mut fact: impl AsyncFnMut() -> bool) {
    let come = async {
        while !fact().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::browser::PATIENCE, come)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

/// Puts a key whose end nobody can be told of for now, and waits until that was tried.
async fn untold(site: &Site, key: &str) -> u64 {
    let revision = site.put(key, json!({"value": 1, "ttlMs": 1, "onExpire": {"url": NOBODY}})).await;
    until("it was tried", async || {
        let rows = site.engine.callbacks(key, None, 10).await.unwrap();
        rows.iter().any(|row| row.failure.is_some())
    })
    .await;
    revision
}

/// Puts a key of whose end nobody will be told, and waits until it is a dead letter.
async fn dead(site: &Site, key: &str) -> u64 {
    let before = site.engine.letters(&steadfast_store::LetterFilter::default(), None, 100).await.unwrap().len();
    let revision = site.put(key, json!({"value": 1, "ttlMs": 1, "onExpire": {"url": site.url("/v1/nothing")}})).await;
    until("it is a letter", async || {
        site.engine.letters(&steadfast_store::LetterFilter::default(), None, 100).await.unwrap().len() > before
    })
    .await;
    revision
}

#[tokio::test]
async fn keys_are_listed_by_name_and_prefix() {
    let site = Site::new().await;
    site.page("/keys").await.has("steadfast key put session:42");
    for number in 0..5 {
        let told = json!({"url": "https://hooks.example.com/gone?token=of-the-query"});
        site.put(&format!("session:{number}"), json!({"value": {"user": number}, "ttlMs": HOUR, "owner": "web", "onExpire": told}))
            .await;
    }
    let revision = site
        .put("upload", json!({"value": "<img src=x onerror=y()>", "ttlMs": HOUR, "directory": true}))
        .await;
    let all = site.page("/keys").await;
    all.has("href=\"/keys/session:0\"");
    all.has("&lt;img src=x onerror=y()&gt;");
    all.has_not("<img");
    all.has(&format!("data-key=\"key upload\" data-revision=\"{revision}\""));
    all.has("href=\"/keys?prefix=upload%2F\"");
    all.has("hooks.example.com/gone");
    all.has_not("of-the-query");
    let some = site.page("/keys?prefix=session:&limit=3").await;
    assert_eq!(some.text.matches("data-key=\"key session:").count(), 3);
    some.has_not("data-key=\"key upload\"");
    some.has("data-follows=\"/v1/events?prefix=session%3A\"");
    let next = some
        .text
        .split("rel=\"next\" href=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .replace("&amp;", "&");
    let more = site.page(&next).await;
    assert_eq!(more.text.matches("data-key=\"key session:").count(), 2);
    more.has_not("rel=\"next\"");
    site.page("/keys?prefix=nobody").await.has("No such keys");
    assert_eq!(site.page("/keys?prefix=a%20b").await.status, 400);
}

#[tokio::test]
async fn one_key_says_what_it_holds_and_what_can_be_done() {
    let site = Site::new().await;
    let told = json!({"startRun": {"workflow": "hold"}});
    let revision = site
        .put("a:b/c", json!({"value": {"x": "<b>"}, "ttlMs": HOUR, "owner": "it's me", "onExpire": told, "directory": true}))
        .await;
    let page = site.page("/keys/a:b/c").await;
    page.has("It is there, and ends <time");
    page.has(&format!("<dt>Revision</dt><dd>{revision}</dd>"));
    page.has("<dt>Owner</dt><dd>it's me</dd>");
    page.has("&lt;b&gt;");
    page.has("<code>steadfast key renew a:b/c --ttl 30m --owner 'it'\\''s me'</code>");
    page.has("KEY_PUT");
    page.has("href=\"/keys?prefix=a%3Ab%2F\"");
    let none = site.page("/keys/none").await;
    assert_eq!(none.status, 404);
    none.has("SF0117");
    assert_eq!(site.page("/keys/a%20b").await.status, 400);
}

#[tokio::test]
async fn a_key_that_is_gone_says_how_and_what_is_still_to_be_told() {
    let site = Site::new().await;
    let revision = untold(&site, "session:1").await;
    untold(&site, "session:12").await;
    let page = site.page("/keys/session:1").await;
    page.has("It is gone: it has expired <time");
    page.has(&format!("Revision {revision} ended"));
    page.has("attempt 2 of 5, <time");
    page.has("http://127.0.0.1:9 cannot be reached");
    page.has("CALLBACK_FAILED");
    page.has_not("of-the-query");
    assert_eq!(page.text.matches("data-attempt=").count(), 1, "those of keys that only begin so are left out");
    let all = site.page("/callbacks").await;
    let places: Vec<Option<usize>> = ["data-key=\"callback session:1 ", "data-key=\"callback session:12 "]
        .map(|key| all.text.find(key))
        .into();
    assert!(places[0].is_some() && places[0] < places[1], "oldest first: {places:?}");
    site.page("/callbacks?prefix=session:12").await.has_not("data-key=\"callback session:1 ");
    site.page("/callbacks?prefix=x").await.has("Nothing is to be told");
}

#[tokio::test]
async fn letters_of_keys_can_be_redriven_and_dropped() {
    let site = Site::new().await;
    let revision = dead(&site, "session:1").await;
    let letters = site.page("/letters").await;
    letters.has(&format!("has expired (revision {revision})"));
    letters.has("href=\"/keys/session:1\"");
    letters.has("<code>steadfast letter redrive key:session:1.3 --reason '…'</code>");
    letters.has("<code>steadfast letter drop key:session:1.3 --reason '…'</code>");
    let key = site.page("/keys/session:1").await;
    key.has("<code>steadfast letter redrive key:session:1.3 --reason '…'</code>");
    key.has("LETTER_ADDED");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_come_change_and_go_while_somebody_looks() {
    let site = Site::new().await;
    let page = Page::new().await;
    page.open(&site.url("/")).await;
    page.click("nav a[href='/keys']").await;
    page.until(&format!("location.pathname === '/keys' && {LIVE}")).await;
    page.value("document.querySelector('input[name=prefix]').value = 'session:'").await;
    page.click(".filters button").await;
    page.until(&format!("location.search === '?prefix=session%3A' && {LIVE}")).await;
    page.value("window.same = true").await;
    page.until(&shows("No such keys")).await;
    let revision = site.put("session:7", json!({"value": {"user": "ada"}, "ttlMs": HOUR})).await;
    site.put("other:7", json!({"value": 1, "ttlMs": HOUR})).await;
    let row = |revision: u64| format!("document.querySelector('tr[data-key=\"key session:7\"]')?.dataset.revision === '{revision}'");
    page.until(&row(revision)).await;
    page.until(&shows("in 59 min")).await;
    let renewed = site.post("/v1/keys/session:7/renew", json!({"ttlMs": 3 * HOUR})).await["revision"]
        .as_u64()
        .unwrap();
    page.until(&format!("{} && {}", row(renewed), shows("in 2 h"))).await;
    assert_eq!(page.value("document.querySelectorAll('tbody tr').length").await, 1);
    assert_eq!(page.value("window.same").await, true, "it was not loaded again");
    page.click("a[href='/keys/session:7']").await;
    page.until(&format!("location.pathname === '/keys/session:7' && {LIVE}")).await;
    page.until(&shows("It is there, and ends in 2 h")).await;
    page.value("document.querySelector('details[data-key=value] summary').click()").await;
    page.value("window.same = true").await;
    site.put("session:7", json!({"value": {"user": "grace"}, "ttlMs": 1, "onExpire": {"url": NOBODY}}))
        .await;
    page.until(&shows("It is gone: it has expired")).await;
    page.until(&shows("attempt 2 of 5")).await;
    page.until(&shows("cannot be reached")).await;
    page.click("a[href='/callbacks']").await;
    page.until(&format!("location.pathname === '/callbacks' && {LIVE}")).await;
    page.until("document.querySelector('li[data-key^=\"callback session:7 \"]')?.dataset.attempt === '2'")
        .await;
    dead(&site, "session:8").await;
    page.click("nav a[href='/letters']").await;
    page.until(&shows("steadfast letter redrive key:session:8.3")).await;
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_keys_fit_windows_of_any_width() {
    let site = Site::new().await;
    let long = "a-very-long-name/".repeat(7) + "end";
    let told = json!({"url": format!("https://hooks.example.com/{}", "long".repeat(100))});
    site.put(&long, json!({"value": "x".repeat(5000), "ttlMs": HOUR, "owner": "o".repeat(256), "directory": true, "onExpire": told}))
        .await;
    untold(&site, &format!("{long}/b")).await;
    dead(&site, &format!("{long}/c")).await;
    let page = Page::new().await;
    let paths = ["/keys", "/callbacks", "/letters", &format!("/keys/{long}"), &format!("/keys/{long}/b"), &format!("/keys/{long}/c")];
    for path in paths {
        page.open(&site.url(path)).await;
        for width in [360, 800, 1280] {
            page.resize(width).await;
            let wide = format!(
                "[...document.querySelectorAll('main *, header *')].filter((one) => one.getBoundingClientRect().right > {width} && !one.closest('.chips, pre, svg, thead, td code'))"
            );
            let wide = page.value(&format!("{wide}.map((one) => one.outerHTML.slice(0, 200))")).await;
            assert_eq!((page.value("document.documentElement.scrollWidth").await, wide), (json!(width), json!([])), "{path}");
        }
    }
    assert_eq!(page.complaints(), Vec::<String>::new());
}
