//! What is on the pages, without a browser.

use super::flows::HOSTILE;
use super::site::{Got, Site};
use crate::support::many_runs;
use serde_json::json;
use std::io::Write;
use steadfast_server::Config;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

#[tokio::test]
async fn every_page_has_the_strict_policy_and_nothing_inline() {
    let site = Site::new().await;
    site.run("declined", "a/b/c", "FAILED").await;
    site.run("team/poison", "mail", "FAILED").await;
    site.put("a:b/c", json!({"value": 1, "ttlMs": 3_600_000, "onExpire": {"url": site.url("/?secret")}}))
        .await;
    site.plan("eu/p", &["bad/x"]).await;
    site.task_is("bad%2Fx", "FAILED").await;
    for path in [
        "/",
        "/runs/a/b/c",
        "/runs/a%2Fb%2Fc",
        "/keys",
        "/keys/a:b/c",
        "/keys/a:b%2Fc",
        "/callbacks",
        "/keys/none",
        "/letters",
        "/messages",
        "/workflows",
        "/plans",
        "/plans/eu/p",
        "/plans/eu%2Fp?show=person&journal=all",
        "/tenants/bad/x",
        "/locks",
        "/plans/none",
        "/nowhere",
        "/runs/none",
    ] {
        let page = site.page(path).await;
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(page.header("content-security-policy"), POLICY, "{path}");
        assert_eq!((page.header("referrer-policy"), page.header("x-content-type-options")), ("same-origin", "nosniff"), "{path}");
        assert_eq!(page.header("cache-control"), "no-store", "{path}");
        for inline in ["style=", "<style", "onclick", "<script>", "javascript:", "http://", "https://"] {
            page.has_not(inline);
        }
    }
}

#[tokio::test]
async fn texts_of_users_stay_texts() {
    let site = Site::new().await;
    site.post(
        "/v1/runs",
        json!({"workflow": "declined", "id": "evil", "input": {"</script><script>x()</script>": "<img src=x onerror=y()>"}}),
    )
    .await;
    site.until("evil", "FAILED").await;
    let escaped = HOSTILE.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    for path in ["/", "/runs/evil"] {
        let page = site.page(path).await;
        page.has(&escaped);
        page.has_not("<script>");
        page.has_not("<img");
    }
    site.page("/runs/evil").await.has("&lt;/script&gt;&lt;script&gt;x()&lt;/script&gt;");
    let asked = site.page("/?q=%22%3E%3Cscript%3Ex()%3C/script%3E").await;
    asked.has("value=\"&quot;&gt;&lt;script&gt;x()&lt;/script&gt;\"");
    asked.has_not("<script>");
}

#[tokio::test]
async fn a_failed_run_says_why_and_what_can_be_done() {
    let site = Site::new().await;
    site.run("declined", "order/7", "FAILED").await;
    let page = site.page("/runs/order/7").await;
    page.has("It has failed at the step <code title=\"charge#1\">charge</code>.");
    page.has("<li>the bank said no</li><li>insufficient funds</li>");
    page.has("permanent");
    page.has("<code>steadfast run retry order/7 --reason '…'</code>");
    page.has("data-follows=\"/v1/events?kind=run&amp;id=order%2F7\"");
    page.has("/v1/runs/order%2F7/events");
    page.has("RUN_FAILED");
    page.has("aria-label=\"charge, Failed: attempt 1 failed: card declined");
}

#[tokio::test]
async fn waiting_runs_say_what_for() {
    let site = Site::new().await;
    for (workflow, says) in [
        ("hold", "It waits for the signal <code>go</code>."),
        ("approve", "One who is operator has to approve <code>release</code>; that lapses <time"),
        ("nap", "It sleeps; it goes on <time"),
        ("family", "It waits for the end of <a href=\"/runs/family/hold.1\">family/hold.1</a>."),
        ("away", "</span>) and is tried again <time"),
    ] {
        site.run(workflow, workflow, "WAITING").await;
        site.page(&format!("/runs/{workflow}")).await.has(says);
    }
    site.page("/runs/approve")
        .await
        .has("steadfast run signal approve release --payload '{&quot;approved&quot;:true}' --reason '…'");
    site.page("/runs/family/hold.1")
        .await
        .has("<dt>Started by</dt><dd><a href=\"/runs/family\">family</a></dd>");
    let list = site.page("/?wait=SIGNAL").await;
    list.has("data-key=\"run hold\"");
    list.has_not("data-key=\"run nap\"");
}

#[tokio::test]
async fn lists_are_filtered_and_paged_by_links() {
    let site = Site::new().await;
    for number in 0..5 {
        site.run("hold", &format!("h-{number}"), "WAITING").await;
    }
    site.run("declined", "d-1", "FAILED").await;
    let failed = site.page("/?status=FAILED&workflow=&tenant=&wait=&q=").await;
    failed.has("data-key=\"run d-1\"");
    failed.has_not("data-key=\"run h-0\"");
    failed.has("<option value=\"declined\">declined</option>");
    let first = site.page("/?workflow=hold&limit=3").await;
    assert_eq!(first.text.matches("data-key=\"run h-").count(), 3);
    let next = first
        .text
        .split("rel=\"next\" href=\"")
        .nth(1)
        .expect("a link")
        .split('"')
        .next()
        .unwrap()
        .replace("&amp;", "&");
    let second = site.page(&next).await;
    second.has("data-key=\"run h-1\"");
    second.has("data-key=\"run h-0\"");
    second.has_not("data-key=\"run h-2\"");
    second.has_not("rel=\"next\"");
    second.has("Newest");
    let wrong = site.page("/?status=failed").await;
    assert_eq!(wrong.status, 400);
    wrong.has("did you mean FAILED?");
}

#[tokio::test]
async fn a_search_that_has_not_seen_everything_says_so() {
    let site = Site::before(many_runs().await, Config::default()).await;
    let next = |got: &Got| {
        got.text
            .split("rel=\"next\" href=\"")
            .nth(1)
            .map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"))
    };
    let first = site.page("/?q=needle").await;
    first.has("Nothing found yet among the newest runs");
    first.has("Search older runs");
    first.has_not("No such runs");
    let mut page = first;
    while let Some(older) = next(&page) {
        page.has_not("data-key");
        page = site.page(&older).await;
    }
    page.has("data-key=\"run needle\"");
    site.page("/?q=needle&status=FAILED").await.has("No such runs");
}

#[tokio::test]
async fn empty_lists_say_what_to_do() {
    let site = Site::new().await;
    site.page("/").await.has("<code>steadfast run start approve --input '{}'</code>");
    site.page("/?status=FAILED").await.has("No such runs");
    site.page("/letters").await.has("No dead letters");
}

#[tokio::test]
async fn letters_and_workflows_are_listed() {
    let site = Site::new().await;
    site.run("team/poison", "mail", "FAILED").await;
    let letters = site.page("/letters").await;
    letters.has("steadfast letter redrive team/poison.1 --reason '…'");
    letters.has("not a letter: unexpected end of file");
    let workflows = site.page("/workflows").await;
    workflows.has("href=\"/?workflow=team%2Fpoison\"");
    workflows.has("href=\"/plans?definition=eu%2Fswitch\"");
    workflows.has("<code>steadfast plan apply eu/switch --tenant TENANT</code>");
    workflows.has_not("steadfast run start eu/switch");
}

#[tokio::test]
async fn long_journals_are_read_page_by_page() {
    let site = Site::new().await;
    site.run("hold", "long", "WAITING").await;
    for _ in 0..60 {
        site.post("/v1/runs/long/signals/aside", json!({"payload": 1})).await;
    }
    let last = site.page("/runs/long").await;
    last.has("62 events");
    last.has("data-key=\"event 62\"");
    last.has_not("data-key=\"event 12\"");
    last.has("href=\"/runs/long?before=13#journal\"");
    let earlier = site.page("/runs/long?before=13").await;
    earlier.has("data-key=\"event 1\"");
    earlier.has("data-key=\"event 12\"");
    earlier.has_not("data-key=\"event 13\"");
    earlier.has_not("Load earlier");
    site.page("/runs/long?before=1").await.has_not("data-key=\"event ");
}

#[tokio::test]
async fn errors_are_pages_for_people_and_documents_for_programs() {
    let site = Site::new().await;
    let page = site.page("/runs/none").await;
    assert_eq!(page.status, 404);
    page.has("<h1>");
    page.has("404 · SF0");
    let api = site.page("/v1/runs/none").await;
    assert_eq!((api.status.as_u16(), api.header("content-type")), (404, "application/problem+json"));
    assert_eq!(site.page("/runs/no%20run").await.status, 400);
}

#[tokio::test]
async fn without_the_token_there_is_a_page_that_says_so() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"stf_q8Zt0m3n5Yw1vK7xPfR2sLhJdC4bGaUeT6iOoNyQwEk").unwrap();
    let site = Site::with(Config { token_file: Some(file.path().into()), ..Config::default() }).await;
    let page = site.page("/").await;
    assert_eq!(page.status, 401);
    page.has("This server asks for a token");
    let style = page.text.split("rel=\"stylesheet\" href=\"").nth(1).unwrap().split('"').next().unwrap().to_string();
    assert_eq!(site.page(&style).await.status, 200, "the page has its style");
}

#[tokio::test]
async fn assets_can_be_kept_for_ever_under_their_own_address() {
    let site = Site::new().await;
    let page = site.page("/").await;
    let address = |kind: &str| page.text.split(kind).nth(1).unwrap().split('"').next().unwrap().to_string();
    let (script, style) = (address("type=\"module\" src=\""), address("rel=\"stylesheet\" href=\""));
    for (path, kind) in [(&script, "text/javascript; charset=utf-8"), (&style, "text/css")] {
        let asset = site.page(path).await;
        assert_eq!((asset.status.as_u16(), asset.header("content-type")), (200, kind));
        assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
    }
    let other = site.page("/assets/0123456789ab/console.js").await;
    assert_eq!((other.status.as_u16(), other.header("cache-control")), (200, "no-cache"));
    assert_eq!(site.page("/assets/0123456789ab/..%2FCargo.toml").await.status, 404);
}
