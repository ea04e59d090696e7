//! Redis is away, or does not answer, and comes back.

use crate::help::*;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::{Commons, CommonsError, Wrote};
use steadfast_store_redis::{Redis, Settings};
use steadfast_test_servers::{Proxy, RedisOptions, RedisServer};
use tokio::time::Instant;

fn impatient(server: &RedisServer) -> Settings {
    Settings { connect_timeout: Duration::from_millis(500), response_timeout: Duration::from_millis(500), ..Settings::new(server.url()) }
}

/// Asks until there is an answer; all before it must say that Redis is away.
async fn healthy(redis: &Redis) {
    let began = Instant::now();
    loop {
        match redis.fence(&tenant()).await {
            Ok(_) => return,
            Err(CommonsError::Away { .. }) => assert!(began.elapsed() < Duration::from_secs(30), "it does not come back"),
            Err(other) => panic!("{other}"),
        }
        tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await.unwrap_err();
    }
}

#[tokio::test]
async fn opening_needs_no_server() {
    let mut server = RedisServer::start();
    server.kill();
    let redis = Redis::open(impatient(&server)).unwrap();
    let error = redis.send(one_of_each()).await.unwrap_err();
    assert!(matches!(error, CommonsError::Away { .. }));
    assert!(why(&error).contains("cannot be reached") && why(&error).contains(&server.port().to_string()), "{error}");
    server.restart();
    healthy(&redis).await;
}

#[tokio::test]
async fn a_server_that_stands_still_is_away_within_the_response_timeout() {
    let server = RedisServer::start();
    let redis = Redis::open(impatient(&server)).unwrap();
    redis.send(one_of_each()).await.unwrap();
    server.pause();
    let began = Instant::now();
    let error = redis.fence(&tenant()).await.unwrap_err();
    assert!(why(&error).contains("does not answer in time"), "{error}");
    assert!(matches!(error, CommonsError::Away { .. }));
    assert!((Duration::from_millis(450)..Duration::from_secs(3)).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert!(is_away(&redis.fence(&tenant()).await), "a new connection gets no answer either");
    server.go_on();
    healthy(&redis).await;
    assert_eq!(redis.fence(&tenant()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_server_that_was_killed_is_found_again_with_what_it_has_kept() {
    let mut server = RedisServer::start_with(RedisOptions { append_only: true, ..RedisOptions::default() });
    let redis = Redis::open(impatient(&server)).unwrap();
    redis.send(one_of_each()).await.unwrap();
    server.kill();
    assert!(is_away(&redis.fence(&tenant()).await));
    server.restart();
    healthy(&redis).await;
    assert_eq!(redis.fence(&tenant()).await.unwrap(), 1);
    assert_eq!(send(&redis, take(holder("b", 2))).await, Wrote::Held(holder("a", 1)), "scripts are there again");
}

#[tokio::test]
async fn a_connection_that_was_cut_is_made_again_by_the_next_call() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port());
    let redis = Redis::open(Settings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..impatient(&server) }).unwrap();
    redis.fence(&tenant()).await.unwrap();
    proxy.cut();
    assert!(is_away(&redis.fence(&tenant()).await));
    redis.fence(&tenant()).await.unwrap();
    assert_eq!(proxy.connections(), 2);
}

#[tokio::test]
async fn many_callers_make_one_connection() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port());
    let redis = Arc::new(Redis::open(Settings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..settings(&server) }).unwrap());
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let redis = redis.clone();
            tokio::spawn(async move { redis.fence(&tenant()).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(0));
    }
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn a_server_that_is_away_is_not_stormed() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port());
    proxy.refuse(true);
    let redis = Redis::open(Settings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..impatient(&server) }).unwrap();
    let (began, mut calls) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(1500) {
        assert!(is_away(&redis.fence(&tenant()).await));
        calls += 1;
        tokio::task::yield_now().await;
    }
    // Tries that are at least 100, 200, 400, 800 ms apart, but for chance, which takes up to half.
    assert!((2..=7).contains(&proxy.connections()), "{} connections for {calls} calls", proxy.connections());
    assert!(calls > 100, "calls in between fail at once: {calls}");
    proxy.refuse(false);
    healthy(&redis).await;
}

#[tokio::test]
async fn callers_that_give_up_do_not_storm_the_server_either() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port());
    proxy.hold_answers();
    let redis = Redis::open(Settings { url: format!("redis://127.0.0.1:{}", proxy.port()), ..settings(&server) }).unwrap();
    let began = Instant::now();
    for _ in 0..50 {
        let asked = tokio::time::timeout(Duration::from_millis(5), redis.fence(&tenant())).await;
        assert!(asked.is_err() || is_away(&asked.unwrap()));
    }
    let most = 1 + began.elapsed().as_millis() / 100;
    assert!(u128::from(proxy.connections()) <= most, "{} connections, and there may be {most}", proxy.connections());
    proxy.let_go();
    healthy(&redis).await;
}

#[tokio::test]
async fn a_server_that_a_script_keeps_busy_is_away() {
    let server = RedisServer::start_with(RedisOptions { more: vec![("lua-time-limit".into(), "50".into())], ..RedisOptions::default() });
    let redis = open(&server);
    redis.fence(&tenant()).await.unwrap();
    let port = server.port();
    let endless = std::thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        std::io::Write::write_all(&mut stream, b"EVAL \"while true do end\" 0\r\n").unwrap();
        let mut answer = [0; 1];
        std::io::Read::read_exact(&mut stream, &mut answer).unwrap();
    });
    steadfast_test_servers::wait_until(
        "the script runs for too long",
        Duration::from_secs(10),
        || matches!(server.cli(&["GET", "x"]), steadfast_test_servers::Reply::Error(text) if text.starts_with("BUSY")),
    );
    let error = redis.fence(&tenant()).await.unwrap_err();
    assert!(matches!(error, CommonsError::Away { .. }) && why(&error).contains("busy"), "{error}");
    server.cli(&["SCRIPT", "KILL"]);
    endless.join().unwrap();
    redis.fence(&tenant()).await.unwrap();
}

#[tokio::test]
async fn a_server_without_memory_is_refused_with_what_to_do() {
    let server = RedisServer::start();
    let redis = open(&server);
    redis.fence(&tenant()).await.unwrap();
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = redis.send(vec![take(holder("a", 1))]).await.unwrap_err();
    assert!(matches!(error, CommonsError::Refused { .. }) && why(&error).contains("maxmemory"), "{error}");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(send(&redis, take(holder("a", 1))).await, Wrote::Done);
}
