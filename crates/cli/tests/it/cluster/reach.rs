//! Where servers tell each other that they are reached.

use super::database::Database;
use super::pair::guard;
use super::{Pair, join};
use crate::served::{Served, define};
use crate::steadfast::until;
use std::net::{Ipv4Addr, TcpListener};
use steadfast_test_servers::PostgresServer;
use tokio::net::{TcpSocket, TcpStream};

const WARNING: &str = "other machines cannot reach this server";

/// A port that nobody listens at.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs of either server are started and decided through the other one.
fn ask_each_other(pair: &Pair, more: &[&str]) {
    let call = |served: &Served, args: &[&str]| served.call(&[args, more].concat()).ends_with(0);
    let (ids, _) = pair.spread(str::to_owned, |id| drop(call(&pair.a, &["run", "start", "ask", "--id", id])));
    for id in &ids {
        call(&pair.b, &["run", "signal", id, "ok", "--payload", "{}"]);
        until("it has completed", || (call(&pair.a, &["run", "show", id, "--json"]).json()["status"] == "COMPLETED").then_some(()));
    }
}

/// A port before the database, which sees those who come through it at that address.
fn seen_at(address: Ipv4Addr, database: u16) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        runtime.block_on(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, address, database));
            }
        });
    });
    port
}

async fn pass_on(mut client: TcpStream, address: Ipv4Addr, database: u16) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((address, 0).into())?;
    let mut server = socket.connect((Ipv4Addr::LOCALHOST, database).into()).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// What a server has said of where it is reached, and how often it has warned before that.
fn told(served: &Served) -> (String, usize) {
    let log = until("it says where it is reached", || Some(served.log()).filter(|log| log.contains(", reached at ")));
    let (before, address) = log.split_once(", reached at ").unwrap();
    (address.lines().next().unwrap().to_owned(), before.matches(WARNING).count())
}

/// `127.1` is a name of the loopback that every machine knows, and none that the server would go by by itself.
#[test]
fn servers_ask_each_other_under_the_names_that_they_are_given() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::new(PostgresServer::shared()));
    define(dir.path());
    let [a, b] = ["a", "b"].map(|name| {
        let port = free();
        let (listen, address) = (format!("127.0.0.1:{port}"), format!("http://127.1:{port}"));
        let mut served = join(dir.path(), &database.url(), name, &["--listen", &listen, "--set", &format!("cluster.address={address}")]);
        served.url = address;
        served
    });
    ask_each_other(&Pair { a, b, database, dir }.shared(), &[]);
}

/// The database sees the servers at another address than the one at which it is reached itself, as on a machine of its own.
#[test]
fn a_server_that_listens_everywhere_is_reached_where_the_database_sees_it() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::new(PostgresServer::shared()));
    guard(dir.path());
    let address = Ipv4Addr::new(127, 0, 0, 3);
    let port = seen_at(address, database.server.port());
    let url = format!("postgresql://postgres@127.0.0.1:{port}/{}", database.name);
    let [a, b] = ["a", "b"].map(|name| {
        let mut served = join(dir.path(), &url, name, &["--listen", "0.0.0.0:0", "--token-file", "token"]);
        served.url = served.url.replace("127.0.0.1", &address.to_string());
        assert_eq!(told(&served), (served.url.clone(), 1));
        served
    });
    ask_each_other(&Pair { a, b, database, dir }.shared(), &["--token-file", "token"]);
}

#[test]
fn a_server_that_only_its_own_machine_reaches_says_so_once() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::new(PostgresServer::shared()));
    let serve = |name: &str, more: &[&str]| join(dir.path(), &database.url(), name, &[&["--listen", "127.0.0.1:0"], more].concat());
    let near = serve("near", &[]);
    assert_eq!(told(&near), (near.url.clone(), 1));
    assert!(near.log().contains("--listen, with --token-file"), "{}", near.log());
    let far = "http://steadfast.example.com:7373";
    assert_eq!(told(&serve("far", &["--set", &format!("cluster.address={far}")])), (far.into(), 0));
}
