//! The change feed.

use crate::support::{PATIENCE, Site, config, until};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;
use steadfast_server::{Config, Parts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A reader of server-sent events.
pub(crate) struct Reader {
    answer: Response,
    text: String,
    events: VecDeque<(String, Value)>,
    /// The id that a browser would come back with.
    last: String,
    comments: usize,
}

impl Reader {
    pub(crate) async fn open(site: &Site, query: &str) -> Self {
        Self::of(site.request(Method::GET, &format!("/v1/events{query}")).send().await.unwrap()).await
    }

    async fn of(answer: Response) -> Self {
        assert_eq!((answer.status().as_u16(), &answer.headers()["content-type"]), (200, &"text/event-stream".parse().unwrap()));
        let mut reader = Reader { answer, text: String::new(), events: VecDeque::new(), last: String::new(), comments: 0 };
        while reader.last.is_empty() {
            assert!(reader.read().await); // the first word says where it begins
        }
        reader
    }

    /// Reads a piece; false at the end.
    async fn read(&mut self) -> bool {
        let Some(bytes) = tokio::time::timeout(PATIENCE, self.answer.chunk()).await.expect("something").unwrap() else { return false };
        self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        while let Some((event, rest)) = self.text.split_once("\n\n").map(|(event, rest)| (event.to_string(), rest.to_string())) {
            self.text = rest;
            for line in event.lines() {
                match line.split_once(": ") {
                    Some(("id", id)) => self.last = id.into(),
                    Some(("data", data)) => self.events.push_back((self.last.clone(), serde_json::from_str(data).unwrap())),
                    Some(("", _)) => self.comments += 1,
                    Some(("retry", _)) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        true
    }

    /// The next event, with its cursor.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        while self.events.is_empty() {
            if !self.read().await {
                return None;
            }
        }
        self.events.pop_front()
    }

    /// Events up to one of that type.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        loop {
            let next = self.next().await.expect("more");
            let last = next.1["event"]["eventType"] == kind;
            all.push(next);
            if last {
                return all;
            }
        }
    }
}

pub(crate) fn types(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(_, change)| change["event"]["eventType"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_happens_is_told_in_order() {
    let site = Site::new().await;
    let mut reader = Reader::open(&site, "").await;
    site.run(json!({"workflow": "flaky", "id": "f", "waitMs": 30000})).await;
    let events = reader.until("RUN_COMPLETED").await;
    assert_eq!(types(&events), ["RUN_STARTED", "RETRY_SCHEDULED", "STEP_COMPLETED", "RUN_COMPLETED"]);
    let change = &events[1].1;
    assert_eq!((&change["kind"], &change["id"], &change["event"]["workflowId"]), (&json!("run"), &json!("f"), &json!("f")));
    assert_eq!(change["event"]["sequence"], 2);
}

#[tokio::test]
async fn a_reader_that_comes_back_misses_nothing() {
    let site = Site::new().await;
    let mut reader = Reader::open(&site, "").await;
    site.run(json!({"workflow": "flaky", "id": "f", "waitMs": 30000})).await;
    let (cursor, _) = reader.next().await.unwrap();
    drop(reader);
    site.run(json!({"workflow": "echo", "id": "g", "waitMs": 30000})).await;
    let request = site.request(Method::GET, "/v1/events?after=0").header("last-event-id", &cursor);
    let mut again = Reader::of(request.send().await.unwrap()).await;
    let events = again.until("RUN_COMPLETED").await;
    assert_eq!(types(&events), ["RETRY_SCHEDULED", "STEP_COMPLETED", "RUN_COMPLETED"], "the header goes before the parameter");
    assert_eq!(again.until("RUN_COMPLETED").await[0].1["id"], "g");
    let mut after = Reader::open(&site, &format!("?after={cursor}")).await;
    assert_eq!(after.next().await.unwrap().1["event"]["eventType"], "RETRY_SCHEDULED");
    let mut all = Reader::open(&site, "?after=0").await;
    assert_eq!(all.next().await.unwrap().1["event"]["eventType"], "RUN_STARTED");
}

#[tokio::test]
async fn a_feed_can_be_filtered() {
    let site = Site::new().await;
    site.run(json!({"workflow": "echo", "id": "b", "waitMs": 30000})).await;
    site.run(json!({"workflow": "echo", "id": "b/c", "waitMs": 30000})).await;
    site.run(json!({"workflow": "echo", "id": "a", "tenant": "acme", "waitMs": 30000})).await;
    site.run(json!({"workflow": "team/poison", "id": "p", "waitMs": 30000})).await;
    let first = async |query: &str| Reader::open(&site, &format!("?after=0&{query}")).await.next().await.unwrap().1;
    assert_eq!(first("types=RUN_COMPLETED,RUN_FAILED").await["event"]["eventType"], "RUN_COMPLETED");
    assert_eq!(first("id=b/c").await["id"], "b/c");
    assert_eq!(first("tenant=acme&types=RUN_COMPLETED").await["id"], "a");
    let letter = first("kind=letter").await;
    assert_eq!((&letter["kind"], &letter["id"]), (&json!("letter"), &json!("team/poison.1")));
    assert_eq!((&letter["event"]["eventType"], &letter["event"]["workflowId"]), (&json!("LETTER_ADDED"), &json!("p")));
    assert_eq!(first("kind=letter&id=team/poison.1").await["id"], "team/poison.1");
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused() {
    let site = Site::new().await;
    for query in ["after=nonsense", "after=cjE3LmE", "types=RUN_COMPLETD", "kind=runs", "id=a%20b", "kind=letter&id=x", "x=1"] {
        assert!(["SF0501", "SF0101"].contains(&&*site.get(&format!("/v1/events?{query}")).await.problem(400)), "{query}");
    }
    let request = site.request(Method::GET, "/v1/events").header("last-event-id", "nonsense");
    assert_eq!(site.send(request).await.problem(400), "SF0501");
}

#[tokio::test]
async fn a_quiet_feed_says_that_it_is_there_and_how_far_it_is() {
    let site = Site::with(Config { feed_keep_alive: Duration::from_millis(20), ..config() }, Parts::default()).await;
    let mut reader = Reader::open(&site, "?types=PLAN_CREATED").await;
    let began = reader.last.clone();
    site.run(json!({"workflow": "echo", "waitMs": 30000})).await;
    while reader.last == began {
        assert!(reader.read().await);
    }
    assert!(reader.comments > 0 && reader.events.is_empty());
}

/// Also while much happens that the reader does not want to hear of: else it would read all of that again when it comes back.
#[tokio::test]
async fn a_filtered_feed_says_how_far_it_is_however_much_happens() {
    let site = Site::with(Config { feed_keep_alive: Duration::from_millis(50), ..config() }, Parts::default()).await;
    let mut reader = Reader::open(&site, "?types=RUN_CANCELLED").await;
    let first = reader.last.clone();
    let busy = async {
        loop {
            site.post("/v1/runs", json!({"workflow": "echo", "input": 1, "waitMs": 10_000})).await;
        }
    };
    let heard = async {
        while reader.comments < 3 || reader.last == first {
            assert!(reader.read().await);
        }
    };
    tokio::select! {
        biased;
        () = busy => {}
        () = heard => {}
    }
}

#[tokio::test]
async fn a_cursor_of_another_store_is_refused() {
    let (site, other) = (Site::new().await, Site::new().await);
    site.run(json!({"workflow": "echo", "waitMs": 30000})).await;
    let last = Reader::open(&site, "").await.last;
    for (site, status) in [(&site, 200), (&other, 400)] {
        let answer = site.request(Method::GET, &format!("/v1/events?after={last}")).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status);
    }
}

#[tokio::test]
async fn only_so_many_may_follow() {
    let site = Site::with(Config { feed_readers_max: 1, ..config() }, Parts::default()).await;
    let first = Reader::open(&site, "").await;
    let refused = site.get("/v1/events").await;
    assert_eq!((refused.problem(429).as_str(), refused.header("retry-after")), ("SF0507", "1"));
    drop(first);
    until("another one may follow", async || site.request(Method::GET, "/v1/events").send().await.unwrap().status() == 200).await;
}

/// A site on which one may follow, and not for long without reading.
async fn impatient() -> Site {
    Site::with(Config { stall_time: Duration::from_millis(200), feed_readers_max: 1, ..config() }, Parts::default()).await
}

/// Has more happen than is kept for a reader on its way, and waits until the reader has lost its place.
async fn cut_off(site: &Site) {
    let large = "x".repeat(1 << 20);
    for number in 0..32 {
        site.run(json!({"workflow": "echo", "id": format!("r{number}"), "input": large, "waitMs": 30000}))
            .await;
    }
    until("its place is free", async || site.request(Method::GET, "/v1/events").send().await.unwrap().status() == 200).await;
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_cut_off_and_can_come_back() {
    let site = impatient().await;
    let mut stream = TcpStream::connect(site.addr).await.unwrap();
    stream.write_all(b"GET /v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut first = [0; 4096];
    let begun = stream.read(&mut first).await.unwrap();
    assert!(std::str::from_utf8(&first[..begun]).unwrap().starts_with("HTTP/1.1 200"));
    cut_off(&site).await;
    let mut back = Reader::open(&site, "?after=0").await;
    assert_eq!(back.next().await.unwrap().1["id"], "r0");
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the connection is cut");
    assert!(ended.is_err() || !rest.is_empty());
}

#[tokio::test]
async fn a_reader_that_does_not_read_over_http_2_loses_its_place() {
    let site = impatient().await;
    steadfast_tls::install_default();
    let http = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let unread = http.get(site.url("/v1/events?after=0")).send().await.unwrap();
    assert_eq!((unread.status().as_u16(), unread.version()), (200, reqwest::Version::HTTP_2));
    cut_off(&site).await;
    drop(unread);
}

#[tokio::test]
async fn a_feed_is_never_compressed() {
    let site = Site::new().await;
    let request = site.request(Method::GET, "/v1/events?after=0").header("accept-encoding", "gzip");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers().get("content-encoding"), None);
    assert_eq!(answer.headers()["cache-control"], "no-store");
}
