//! Servers that ask for TLS or a password.

use crate::fixture::{Holder, settings};
use std::fs;
use std::time::Duration;
use steadfast_store::{Heard, Leases, Store};
use steadfast_store_postgres::{Postgres, Settings};
use steadfast_test_servers::{Certificates, PostgresOptions, PostgresServer};

#[tokio::test]
async fn tls_is_spoken_as_the_url_says() {
    let server = PostgresServer::start_with(PostgresOptions { tls: true, fsync: false, ..PostgresOptions::default() });
    let (port, ca) = (server.port(), server.certificates().ca.clone());
    let open = |host: &str, mode: &str, ca_file: Option<&std::path::Path>| {
        let url = format!("postgresql://postgres@{host}:{port}/postgres?sslmode={mode}");
        Postgres::open(Settings { ca_file: ca_file.map(Into::into), ..settings(url) })
    };
    let store = open("localhost", "verify-full", Some(&ca)).await.unwrap();
    Holder::claim(&store, 0).await.send("a").await.unwrap();
    assert_eq!(store.leases(Duration::from_secs(900)).heard().await, Heard::Leases, "who listens speaks it, too");
    for (host, mode, with_ca) in [("127.0.0.1", "require", true), ("127.0.0.1", "require", false), ("localhost", "prefer", false)] {
        assert_eq!(open(host, mode, with_ca.then_some(&*ca)).await.unwrap().head(0).await.unwrap().seq, 1, "{host} {mode}");
    }
    for (host, mode, with_ca) in [("127.0.0.1", "verify-full", true), ("localhost", "verify-full", false), ("localhost", "disable", false)]
    {
        let error = open(host, mode, with_ca.then_some(&*ca)).await.unwrap_err();
        assert!(error.is_retryable(), "{host} {mode}: {error:?}");
    }
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_is_given_one() {
    let options = PostgresOptions { tls: true, asks_for_certificates: true, fsync: false, ..PostgresOptions::default() };
    let server = PostgresServer::start_with(options);
    let Certificates { ca, client, client_key, .. } = server.certificates().clone();
    let url = format!("postgresql://postgres@localhost:{}/postgres?sslmode=verify-full", server.port());
    let without = Settings { ca_file: Some(ca), ..settings(url) };
    assert!(Postgres::open(without.clone()).await.is_err());
    let with = Settings { certificate_file: Some(client), key_file: Some(client_key), ..without };
    Holder::claim(&Postgres::open(with).await.unwrap(), 0).await.send("a").await.unwrap();
}

#[tokio::test]
async fn the_password_is_read_from_a_file_and_never_shown() {
    let options = PostgresOptions { password: Some("hush-hush".into()), fsync: false, ..PostgresOptions::default() };
    let server = PostgresServer::start_with(options);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    let settings = Settings { password_file: Some(file.clone()), ..settings(server.url("postgres")) };
    let error = Postgres::open(settings.clone()).await.unwrap_err();
    assert!(error.to_string().contains("password file"), "{error}");
    fs::write(&file, "wrong-hush\n").unwrap();
    let error = Postgres::open(settings.clone()).await.unwrap_err();
    assert!(error.to_string().contains("check the user, the password") && !format!("{error:?}").contains("hush"), "{error:?}");
    fs::write(&file, "hush-hush\n").unwrap();
    let store = Postgres::open(settings).await.unwrap();
    assert_eq!(store.head(0).await.unwrap().seq, 0);
    assert!(!format!("{store:?}").contains("hush"));
}
