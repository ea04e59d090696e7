//! Sentinel says which server takes writes, and is asked again when that changes.

use crate::help::*;
use std::time::Duration;
use steadfast_store::{Commons, CommonsError, Wrote};
use steadfast_store_redis::{Redis, Settings};
use steadfast_test_servers::{RedisServer, Sentinel};
use tokio::time::Instant;

fn settings_of(sentinel: &Sentinel) -> Settings {
    let timeout = Duration::from_secs(2);
    Settings { connect_timeout: timeout, response_timeout: timeout, ..Settings::new(sentinel.url()) }
}

/// Sends it until it is carried out; all before that must say that Redis is away. How often it was sent.
async fn send_until_done(redis: &Redis) -> u32 {
    let (began, mut tries) = (Instant::now(), 0);
    loop {
        tries += 1;
        match redis.send(vec![take(holder("a", 1))]).await {
            Ok(wrote) => {
                assert_eq!(wrote, [Wrote::Done]);
                return tries;
            }
            Err(CommonsError::Away { .. }) => assert!(began.elapsed() < Duration::from_secs(30), "it does not come back"),
            Err(other) => panic!("{other}"),
        }
        tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await.unwrap_err();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_is_replaced_by_its_replica() {
    let mut sentinel = Sentinel::start();
    let redis = Redis::open(settings_of(&sentinel)).unwrap();
    assert_eq!(send(&redis, take(holder("a", 1))).await, Wrote::Done);
    assert_eq!(sentinel.servers[0].cli(&["WAIT", "1", "5000"]).number(), 1);
    sentinel.servers[0].kill();
    sentinel.wait_for_the_other();
    send_until_done(&redis).await;
    assert_eq!(sentinel.servers[1].keys(), ["executor:lock:tenant:acme"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_becomes_a_replica_is_left_for_the_new_one() {
    let sentinel = Sentinel::start();
    let redis = Redis::open(settings_of(&sentinel)).unwrap();
    assert_eq!(send(&redis, take(holder("a", 1))).await, Wrote::Done);
    sentinel.fail_over();
    let tries = send_until_done(&redis).await;
    assert!(tries > 1, "the connection was to a server that takes no writes any more");
    assert_eq!(sentinel.servers[1].cli(&["EXISTS", "executor:lock:tenant:acme"]).number(), 1);
}

#[tokio::test]
async fn a_service_that_sentinel_does_not_know_is_refused() {
    let sentinel = Sentinel::start();
    let url = sentinel.url().replace("/main/", "/other/");
    let error = Redis::open(Settings { url, ..settings_of(&sentinel) }).unwrap().fence(&tenant()).await.unwrap_err();
    assert!(matches!(error, CommonsError::Refused { .. }) && why(&error).contains("\"other\""), "{error}");
}

#[tokio::test]
async fn a_sentinel_that_is_gone_is_passed_over() {
    let mut gone = RedisServer::start();
    gone.kill();
    let sentinel = Sentinel::start();
    let url = format!("redis+sentinel://127.0.0.1:{},127.0.0.1:{}/main", gone.port(), sentinel.port());
    let redis = Redis::open(Settings { url, ..settings_of(&sentinel) }).unwrap();
    assert_eq!(send(&redis, take(holder("a", 1))).await, Wrote::Done);
    let url = format!("redis+sentinel://127.0.0.1:{}/main", gone.port());
    let redis = Redis::open(Settings { url, ..settings_of(&sentinel) }).unwrap();
    assert!(is_away(&redis.fence(&tenant()).await));
}

#[tokio::test]
async fn a_sentinel_with_a_password_is_asked_with_it() {
    let sentinel = Sentinel::start();
    sentinel.cli(&["ACL", "SETUSER", "default", "resetpass", ">s3cret"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "s3cret").unwrap();
    let knows = Settings { sentinel_password_file: Some(file), ..settings_of(&sentinel) };
    assert_eq!(Redis::open(knows).unwrap().fence(&tenant()).await, Ok(0));
    let error = Redis::open(settings_of(&sentinel)).unwrap().fence(&tenant()).await.unwrap_err();
    assert!(matches!(error, CommonsError::Refused { .. }) && why(&error).contains("password"), "{error}");
}
