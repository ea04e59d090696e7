//! Links of other nodes on the port of the API.

use crate::plans::World;
use crate::support::{PATIENCE, Site, TOKEN, config, engine, until};
use futures_util::{StreamExt, stream};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use steadfast_messaging::wire::http2::{Http2, PATH, Settings};
use steadfast_messaging::{Class, Code, Failure, Incoming, Node, Peer};
use steadfast_server::{Config, Links, Parts, Server};
use steadfast_store::memory::Memory;
use tempfile::TempDir;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// The node of a server: it answers `echo`, and says by `who` for whom it takes its caller.
fn answering() -> Node {
    let node = Node::builder().name("server").build().unwrap();
    node.route("echo", |incoming: Incoming| async move { Ok(incoming.payload) });
    node.route("who", |incoming: Incoming| async move { Ok(incoming.caller.scope.to_string()) });
    node
}

/// A node that connects to others, with that token.
fn shop(token: Option<&str>) -> Node {
    let wire = Http2::new(Settings::default());
    let wire = match token {
        Some(token) => wire.token(token).unwrap(),
        None => wire,
    };
    Node::builder().name("shop").wire(Arc::new(wire)).build().unwrap()
}

async fn site(config: Config, node: &Node) -> Site {
    Site::with(config, Parts { node: Some(node.clone()), ..Parts::default() }).await
}

fn peer(addr: SocketAddr) -> Peer {
    Peer::at(format!("http://127.0.0.1:{}", addr.port()))
}

fn token_file(folder: &TempDir) -> Option<PathBuf> {
    let path = folder.path().join("token");
    std::fs::write(&path, TOKEN).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    Some(path)
}

#[tokio::test]
async fn nodes_and_the_api_share_one_port() {
    let node = answering();
    let site = site(config(), &node).await;
    let shop = shop(None);
    shop.route("echo", |incoming: Incoming| async move { Ok(incoming.payload) });
    assert_eq!(shop.call(peer(site.addr), "echo", "there").await.unwrap(), "there");
    assert_eq!(shop.call(peer(site.addr), "who", "").await.unwrap(), "shop", "without a token it is known by its name");
    assert_eq!(node.call(Peer::named("shop"), "echo", "and back").await.unwrap(), "and back", "either side calls the other");
    assert_eq!(site.get("/v1/runs").await.status, 200);
    assert_eq!(site.get("/readyz").await.status, 200);
    let page = site.get("/messages").await;
    assert_eq!(page.status, 200);
    for part in
        ["<code>server</code>", "<code>shop</code>", "<span class=\"tag\">echo</span>", "2 calls, 0 tells", "its name", "127.0.0.1:"]
    {
        assert!(page.text.contains(part), "there is no {part:?} in {}", page.text);
    }
}

#[tokio::test]
async fn a_server_without_a_node_takes_no_links() {
    let site = Site::new().await;
    let failure = shop(None).call(peer(site.addr), "echo", "").await.unwrap_err();
    assert_eq!((failure.class, failure.code), (Class::Permanent, Code::FailedPrecondition));
    assert!(failure.message.contains("404") && failure.message.contains("no messages are taken there"), "{failure}");
    assert!(site.get("/messages").await.text.contains("This server takes no messages"));
}

#[tokio::test]
async fn who_has_no_token_or_another_one_makes_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let node = answering();
    let site = site(Config { listen: everywhere, token_file: token_file(&folder), ..config() }, &node).await;
    for token in [None, Some("wrong"), Some(&*format!("{TOKEN}x"))] {
        let failure = shop(token).call(peer(site.addr), "echo", "").await.unwrap_err();
        assert_eq!((failure.class, failure.code), (Class::Permanent, Code::PermissionDenied), "{failure}");
        assert!(failure.message.contains("401") && !failure.message.contains("stf_"), "{failure}");
    }
    assert_eq!(node.counts().connections, 0);
    assert_eq!(
        shop(Some(TOKEN)).call(peer(site.addr), "who", "").await.unwrap(),
        "shop@token:token",
        "those of a token share no ids with others"
    );
    let plain = site.request(reqwest::Method::POST, PATH).bearer_auth(TOKEN);
    assert_eq!(plain.send().await.unwrap().status(), 505, "HTTP/1.1 carries no links");
}

#[tokio::test]
async fn what_bounds_requests_does_not_bound_links() {
    let tight = Config { in_flight_max: 1, body_bytes_max: 1024, request_time: Duration::from_secs(1), ..config() };
    let site = site(tight, &answering()).await;
    let shop = shop(None);
    let large = "x".repeat(1 << 20);
    for _ in 0..5 {
        assert_eq!(shop.call(peer(site.addr), "echo", large.clone()).await.unwrap(), large);
    }
    assert_eq!(shop.counts().totals.retries, 0, "one link, all the time");
    assert_eq!(site.get("/v1/runs").await.status, 200, "a link is no request that is under way");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_succeed_while_the_console_is_used() {
    let node = answering();
    let site = site(config(), &node).await;
    let (shop, to) = (shop(None), peer(site.addr));
    let calls = stream::iter(0..1000u32).map(|number| {
        let call = shop.call(to.clone(), "echo", number.to_string());
        async move { (call.await, number) }
    });
    let all = calls.buffer_unordered(64).for_each(|(answer, number)| async move {
        assert_eq!(answer.unwrap(), number.to_string());
    });
    let looking = async {
        for path in ["/", "/messages", "/workflows", "/v1/runs", "/healthz", "/metrics"].iter().cycle().take(60) {
            assert_eq!(site.get(path).await.status, 200, "{path}");
        }
    };
    tokio::time::timeout(PATIENCE, async { tokio::join!(all, looking) })
        .await
        .expect("both come to their end");
    let counts = node.counts();
    assert_eq!((counts.totals.calls_received, counts.connections), (1000, 1));
}

/// A server whose end is looked at.
struct Port {
    addr: SocketAddr,
    node: Node,
    links: Links,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Port {
    async fn open() -> Self {
        let engine = engine(Memory::new(), Default::default(), Default::default(), &World::default()).await;
        let node = answering();
        let server = Server::bind(config(), engine, Parts { node: Some(node.clone()), ..Parts::default() })
            .await
            .unwrap();
        let (addr, links, (stop, stopped)) = (server.addr(), server.links(), oneshot::channel::<()>());
        Port { addr, node, links, stop, served: tokio::spawn(server.serve(async move { drop(stopped.await) })) }
    }
}

#[tokio::test]
async fn a_link_lasts_until_its_calls_are_answered() {
    let Port { addr, node, links, stop, served } = Port::open().await;
    let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&asked), Arc::clone(&go));
    node.route("slow", move |incoming: Incoming| {
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        async move {
            tell.notify_one();
            wait.notified().await;
            Ok(incoming.payload)
        }
    });
    let shop = shop(None);
    let large = "x".repeat(2 << 20);
    let call = tokio::spawn(
        shop.call(peer(addr), "slow", large.clone())
            .policy(steadfast_messaging::Policy::once())
            .into_future(),
    );
    asked.notified().await;
    assert_eq!(links.count(), 1);
    stop.send(()).unwrap();
    tokio::time::timeout(PATIENCE, served).await.expect("the API does not wait for links").unwrap();
    assert_eq!((links.count(), call.is_finished()), (1, false), "and does not cut them");
    let closing = tokio::spawn(async move { node.close(PATIENCE).await });
    go.notify_one();
    let answer = tokio::time::timeout(PATIENCE, call).await.expect("an answer").unwrap();
    assert!(answer.unwrap() == large, "it was written before the end");
    closing.await.unwrap();
    tokio::time::timeout(PATIENCE, links.closed()).await.expect("the connection ends then");
    let failure = shop.call(peer(addr), "echo", "").timeout(Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(failure.class, Class::Transient, "it may come back: {failure}");
}

#[tokio::test]
async fn a_node_that_goes_leaves_its_place() {
    let Port { addr, node, links, stop: _stop, served: _served } = Port::open().await;
    let shop = shop(None);
    let _: Result<_, Failure> = shop.call(peer(addr), "echo", "").await;
    assert_eq!((links.count(), node.counts().connections), (1, 1));
    shop.close(Duration::ZERO).await;
    until("nobody is connected", async || node.counts().connections == 0).await;
    tokio::time::timeout(PATIENCE, links.closed()).await.expect("the connection is gone");
}

#[tokio::test]
async fn who_is_connected_and_what_is_under_way_can_be_asked_for() {
    let node = answering();
    let site = site(config(), &node).await;
    let shop = shop(None);
    shop.call(peer(site.addr), "echo", "1").await.unwrap();
    let _: Result<_, Failure> = shop.call(peer(site.addr), "none", "").await;
    let all = site.get("/v1/messages").await.json();
    assert_eq!((&all["node"], &all["routes"]), (&"server".into(), &serde_json::json!(["echo", "who"])));
    let [connected] = &all["connections"].as_array().unwrap()[..] else { panic!("{all}") };
    assert_eq!((&connected["name"], connected.get("principal")), (&"shop".into(), None));
    assert!(connected["address"].is_string() && connected["since"].is_string());
    assert_eq!((&all["requests"], &all["totals"]["callsReceived"], &all["inbox"]["running"]), (&0.into(), &2.into(), &0.into()));

    let without = Site::new().await;
    let none = without.get("/v1/messages").await.json();
    assert_eq!((&none["node"], &none["connections"]), (&serde_json::Value::Null, &serde_json::json!([])));
}
