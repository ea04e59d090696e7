//! Stopping in order.

use crate::feed::Reader;
use crate::support::{PATIENCE, Site, config, until};
use reqwest::Method;
use serde_json::json;
use steadfast_server::{Config, Parts};

#[tokio::test]
async fn those_who_wait_are_told_how_it_stands_and_streams_end() {
    let mut site = Site::with(Config { in_flight_max: 2, ..config() }, Parts::default()).await;
    site.run(json!({"workflow": "hold", "id": "h"})).await;
    let mut reader = Reader::open(&site, "").await;
    let result = tokio::spawn(site.request(Method::GET, "/v1/runs/h/result?waitMs=60000").send());
    let start = tokio::spawn(
        site.request(Method::POST, "/v1/runs")
            .json(&json!({"workflow": "hold", "id": "i", "waitMs": 60000}))
            .send(),
    );
    until("both are under way", async || site.get("/v1/runs").await.status == 429).await;
    site.stop.take().unwrap().send(()).unwrap();
    let start = start.await.unwrap().unwrap();
    assert_eq!(start.status(), 201);
    assert_ne!(start.json::<serde_json::Value>().await.unwrap()["status"], "COMPLETED");
    assert_eq!(result.await.unwrap().unwrap().status(), 202);
    while reader.next().await.is_some() {}
    tokio::time::timeout(PATIENCE, site.served).await.expect("it ends").unwrap();
    assert!(site.http.get(format!("http://{}/healthz", site.addr)).send().await.is_err(), "nobody listens any more");
}
