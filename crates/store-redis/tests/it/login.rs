//! Who may come in: passwords, users, TLS; and servers that are not what they should be.

use crate::help::*;
use std::fs;
use std::time::Duration;
use steadfast_store::{Commons, CommonsError, Wrote};
use steadfast_store_redis::{Redis, Secret, Settings};
use steadfast_test_servers::{RedisOptions, RedisServer, Reply, Sentinel};

const PASSWORD: &str = "s3cret/with@signs";
const ENCODED: &str = "s3cret%2Fwith%40signs";

fn guarded() -> RedisServer {
    RedisServer::start_with(RedisOptions { password: Some(PASSWORD.into()), ..RedisOptions::default() })
}

/// It is refused, and the reason shows no secret.
async fn refused(settings: Settings) -> String {
    let redis = Redis::open(settings).unwrap();
    let error = redis.fence(&tenant()).await.unwrap_err();
    assert!(matches!(error, CommonsError::Refused { .. }), "{error}");
    assert!(!why(&error).contains("s3cret") && !format!("{error:?}").contains("s3cret"), "{error}");
    assert_eq!(redis.fence(&tenant()).await.unwrap_err(), error, "it stays the same until the next try");
    error.to_string()
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_shown() {
    let server = guarded();
    let wrong = |url: String| Settings { url, ..settings(&server) };
    assert!(refused(wrong(format!("redis://:s3cret@127.0.0.1:{}", server.port()))).await.contains("password"));
    assert!(
        refused(wrong(format!("redis://me:s3cret@127.0.0.1:{}/2", server.port())))
            .await
            .contains("password")
    );
    assert!(refused(wrong(server.url())).await.contains("wants a password"));
    assert!(refused(wrong(format!("{}/3", server.url()))).await.contains("wants a password"));
    assert!(
        refused(wrong(format!("redis://:{ENCODED}@127.0.0.1:{}/99", server.port())))
            .await
            .contains("database")
    );
    assert!(
        refused(Settings { password: Some(Secret::new("s3cret")), ..settings(&server) })
            .await
            .contains("password")
    );
}

#[tokio::test]
async fn the_password_comes_from_the_url_the_settings_or_a_file() {
    let server = guarded();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    for settings in [
        Settings { url: format!("redis://:{ENCODED}@127.0.0.1:{}", server.port()), ..settings(&server) },
        Settings { url: format!("redis://default:{ENCODED}@127.0.0.1:{}/1", server.port()), ..settings(&server) },
        Settings { password: Some(Secret::new(PASSWORD)), ..settings(&server) },
        Settings { password_file: Some(file.clone()), ..settings(&server) },
    ] {
        assert!(!format!("{settings:?}").contains("s3cret"), "{settings:?}");
        let redis = Redis::open(settings).unwrap();
        assert_eq!(redis.fence(&tenant()).await, Ok(0));
        assert!(!format!("{redis:?}").contains("s3cret"), "{redis:?}");
    }
    fs::write(&file, "\n").unwrap();
    assert!(refused(Settings { password_file: Some(file.clone()), ..settings(&server) }).await.contains("empty"));
    fs::remove_file(&file).unwrap();
    assert!(
        refused(Settings { password_file: Some(file), ..settings(&server) })
            .await
            .contains("cannot be read")
    );
}

#[tokio::test]
async fn a_password_that_changed_is_read_again() {
    let server = RedisServer::start();
    server.cli(&["ACL", "SETUSER", "me", "on", ">s3cret-1", "allkeys", "+@all"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "s3cret-1").unwrap();
    let url = format!("redis://me@127.0.0.1:{}", server.port());
    let redis = Redis::open(Settings { url, password_file: Some(file.clone()), ..settings(&server) }).unwrap();
    redis.fence(&tenant()).await.unwrap();
    server.cli(&["ACL", "SETUSER", "me", "resetpass", ">s3cret-2"]);
    server.cli(&["CLIENT", "KILL", "USER", "me"]);
    fs::write(&file, "s3cret-2").unwrap();
    assert!(is_away(&redis.fence(&tenant()).await), "the connection was cut");
    assert_eq!(redis.fence(&tenant()).await, Ok(0));
}

/// The line of the crate's documentation, for a prefix and a password.
fn acl_line(prefix: &str, password: &str) -> Vec<String> {
    let page = include_str!("../../src/lib.rs");
    let line = page.lines().find_map(|line| line.strip_prefix("//! ACL SETUSER ")).unwrap();
    let line = format!("ACL SETUSER {line}").replace("PASSWORD", password).replace("executor:", prefix);
    line.split(' ').map(str::to_owned).collect()
}

#[tokio::test]
async fn a_user_that_may_touch_the_prefix_only_is_enough() {
    let server = RedisServer::start();
    let line = acl_line("mine:", "s3cret");
    assert_eq!(server.cli(&line.iter().map(String::as_str).collect::<Vec<_>>()), Reply::Text("OK".into()));
    let url = format!("redis://steadfast:s3cret@127.0.0.1:{}", server.port());
    let redis = Redis::open(Settings { url: format!("{url}/1"), prefix: "mine:".into(), ..settings(&server) }).unwrap();
    for wrote in redis.send(one_of_each()).await.unwrap() {
        assert!(matches!(wrote, Wrote::Done | Wrote::Before(None) | Wrote::Fence(1)), "{wrote:?}");
    }
    for write in crate::round_trips::the_others() {
        assert_eq!(send(&redis, write).await, Wrote::Done);
    }
    redis.send(one_of_each()).await.unwrap();
    assert!(redis.plan(&plan()).await.unwrap().is_some());
    assert!(redis.checkpoint(&task()).await.unwrap().is_some());
    assert_eq!(redis.task_of(&tenant()).await.unwrap(), Some(task()));
    assert_eq!(redis.locks(&[tenant()]).await.unwrap().len(), 1);
    assert_eq!(redis.alive(&[instance("a")]).await.unwrap().len(), 1);
    assert_eq!(redis.instances(0).await.unwrap(), (0, vec![instance("a")]));
    let other = Redis::open(Settings { url: url.clone(), prefix: "other:".into(), ..settings(&server) }).unwrap();
    let error = other.fence(&tenant()).await.unwrap_err();
    assert!(matches!(error, CommonsError::Refused { .. }) && why(&error).contains("ACL"), "{error}");
    assert!(matches!(other.send(one_of_each()).await, Err(CommonsError::Refused { .. })));
    assert_eq!(server.keys(), Vec::<String>::new(), "nothing was written elsewhere");
}

#[tokio::test]
async fn a_user_without_rights_to_scripts_is_refused() {
    let server = RedisServer::start();
    server.cli(&["ACL", "SETUSER", "weak", "on", ">s3cret", "~*", "+hello", "+get"]);
    let url = format!("redis://weak:s3cret@127.0.0.1:{}", server.port());
    assert!(refused(Settings { url: url.clone(), ..settings(&server) }).await.contains("ACL"));
    server.cli(&["ACL", "SETUSER", "weak", "+script|load", "+evalsha", "+type"]);
    let error = Redis::open(Settings { url, ..settings(&server) })
        .unwrap()
        .send(vec![whole_plan("a")])
        .await
        .unwrap_err();
    assert!(matches!(error, CommonsError::Refused { .. }) && why(&error).contains("ACL"), "{error}");
}

#[tokio::test]
async fn tls_is_checked_against_the_ca_file() {
    let server = RedisServer::start_with(RedisOptions { tls: true, ..RedisOptions::default() });
    let (url, ca) = server.tls();
    let trusting = Settings { url: url.clone(), ca_file: Some(ca.clone()), ..settings(&server) };
    let redis = Redis::open(trusting.clone()).unwrap();
    assert_eq!(send(&redis, take(holder("a", 1))).await, Wrote::Done);
    let distrusting = Settings { ca_file: None, ..trusting.clone() };
    assert!(refused(distrusting).await.contains("certificate"));
    let elsewhere = Settings { url: url.replace("localhost", "127.0.0.1"), ..trusting.clone() };
    assert!(refused(elsewhere).await.contains("certificate"), "it is for another name");
    let missing = Settings { ca_file: Some(ca.with_file_name("none")), ..trusting.clone() };
    assert!(refused(missing).await.contains("cannot be read"));
    let empty = ca.with_file_name("empty.pem");
    fs::write(&empty, "this is no certificate").unwrap();
    refused(Settings { ca_file: Some(empty), ..trusting.clone() }).await;
    let timeout = Duration::from_millis(300);
    let no_tls_there = Settings { url: format!("rediss://localhost:{}", server.port()), connect_timeout: timeout, ..trusting };
    assert!(is_away(&Redis::open(no_tls_there).unwrap().fence(&tenant()).await));
}

#[tokio::test]
async fn a_cluster_is_refused() {
    let server = RedisServer::start_with(RedisOptions { more: vec![("cluster-enabled".into(), "yes".into())], ..RedisOptions::default() });
    let error = refused(settings(&server)).await;
    assert!(error.contains("cluster") && error.contains("Sentinel"), "{error}");
}

#[tokio::test]
async fn a_replica_and_a_sentinel_are_no_servers_to_write_to() {
    let sentinel = Sentinel::start();
    let replica = Redis::open(settings(&sentinel.servers[1])).unwrap();
    let error = replica.fence(&tenant()).await.unwrap_err();
    assert!(matches!(error, CommonsError::Away { .. }) && why(&error).contains("replica"), "{error}");
    let url = format!("redis://127.0.0.1:{}", sentinel.port());
    let error = refused(Settings::new(url)).await;
    assert!(error.contains("redis+sentinel://"), "{error}");
}

#[tokio::test]
async fn something_else_than_redis_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _gone = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let redis = Redis::open(Settings::new(format!("redis://127.0.0.1:{port}"))).unwrap();
    let error = redis.fence(&tenant()).await.unwrap_err();
    assert!(why(&error).contains(&port.to_string()), "{error}");
}

#[test]
fn settings_that_cannot_be_are_refused_before_anything_is_done() {
    let good = || Settings::new("redis://localhost");
    assert_eq!(good().check(), Ok(()));
    assert_eq!(good().prefix, "executor:");
    assert_eq!((good().ttl, good().heartbeat_ttl), (Duration::from_secs(7 * 24 * 3600), Duration::from_secs(30)));
    let file = || Some("file".into());
    for (field, settings) in [
        ("url", Settings::new("localhost:6379")),
        ("password", Settings { url: "redis://:s3cret@localhost".into(), password_file: file(), ..good() }),
        ("password", Settings { password: Some(Secret::new("s3cret")), password_file: file(), ..good() }),
        ("sentinel_password_file", Settings { sentinel_password_file: file(), ..good() }),
        ("ca_file", Settings { ca_file: file(), ..good() }),
        ("prefix", Settings { prefix: String::new(), ..good() }),
        ("prefix", Settings { prefix: "a b:".into(), ..good() }),
        ("prefix", Settings { prefix: "x".repeat(129), ..good() }),
        ("ttl", Settings { ttl: Duration::ZERO, ..good() }),
        ("ttl", Settings { ttl: Duration::MAX, ..good() }),
        ("heartbeat_ttl", Settings { heartbeat_ttl: Duration::from_millis(1), ..good() }),
        ("connect_timeout", Settings { connect_timeout: Duration::ZERO, ..good() }),
        ("response_timeout", Settings { response_timeout: Duration::from_secs(61), ..good() }),
    ] {
        let error = settings.check().unwrap_err();
        assert_eq!(error.field, field);
        assert_eq!(Redis::open(settings.clone()).unwrap_err(), error);
        assert!(!format!("{error} {error:?} {settings:?}").contains("s3cret"), "{settings:?}");
    }
}
