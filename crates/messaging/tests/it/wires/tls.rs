//! TLS on real sockets: who trusts whom, and what those are told who are not trusted.

use super::contract::{Links, contract, next};
use super::http2::Port;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::future::IntoFuture;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure};
use steadfast_messaging::wire::Wire;
use steadfast_messaging::wire::http2::{Authorize, Http2, ListenSettings};
use steadfast_messaging::wire::tls::{Client, Identity, Pins, Server, Trust};
use steadfast_messaging::{Incoming, Node};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// An authority and what it has signed, in files.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { folder, issuer: Issuer::new(params, key) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn trust(&self) -> Trust {
        Trust::file(&self.path("ca.pem")).unwrap()
    }

    fn signs(&self, name: &str, set: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        set(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.path("certificate.pem"), certificate.pem()).unwrap();
        fs::write(self.path("key.pem"), key.serialize_pem()).unwrap();
        Identity::files(&self.path("certificate.pem"), &self.path("key.pem")).unwrap()
    }
}

fn made(name: &str) -> Identity {
    Identity::self_made(&[name]).unwrap()
}

fn pinned(identities: &[&Identity]) -> Trust {
    Trust::Pinned(Pins::new(identities.iter().map(|identity| identity.fingerprint())))
}

async fn port(server: Server, client: Client) -> Port {
    let mut port = Port::with(|listens| listens.tls = Some(server)).await;
    port.wire = port.wire.tls(client);
    port
}

/// A port to which somebody connects and is refused; says how.
async fn refused(server: Server, client: Client) -> Failure {
    let port = port(server, client).await;
    refused_by(&port, &port.address).await
}

async fn refused_by(port: &Port, address: &str) -> Failure {
    let failure = timeout(Duration::from_secs(3), port.wire.connect(address))
        .await
        .expect("it fails fast")
        .unwrap_err();
    assert_eq!(failure.class, Class::Permanent, "{failure:?}");
    failure
}

mod mutual {
    //! The contract over TLS by which both ends are known.
    use super::*;

    async fn mutual() -> Port {
        let (here, there) = (made("here"), made("there"));
        let server = Server::new(&here, Some(pinned(&[&there]))).unwrap();
        port(server, Client::new(pinned(&[&here]), Some(&there)).unwrap()).await
    }

    contract!(mutual(), tokio::test);
}

#[tokio::test]
async fn files_of_an_authority_are_trusted_by_name() {
    let authority = Authority::new();
    let server = Server::new(&authority.signs("127.0.0.1", |_| {}), None).unwrap();
    let mut port = port(server, Client::new(authority.trust(), None).unwrap()).await;
    let (near, mut far) = port.link().await;
    near.outgoing.send("there".into()).await.unwrap();
    assert_eq!(next(&mut far).await, "there");
    assert!(near.remote.fingerprint.is_some() && far.remote.fingerprint.is_none());
    let by_name = port.address.replace("127.0.0.1", "localhost");
    let failure = refused_by(&port, &by_name).await;
    assert!(failure.message.contains("not trusted"), "{failure:?}");
}

#[tokio::test]
async fn another_authority_is_not_trusted() {
    let (one, other) = (Authority::new(), Authority::new());
    let server = Server::new(&one.signs("127.0.0.1", |_| {}), None).unwrap();
    let failure = refused(server, Client::new(other.trust(), None).unwrap()).await;
    assert!(failure.code == Code::PermissionDenied && failure.message.contains("not trusted"), "{failure:?}");
}

#[tokio::test]
async fn expired_certificate_is_named_so() {
    let authority = Authority::new();
    let old = authority.signs("127.0.0.1", |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let failure = refused(Server::new(&old, None).unwrap(), Client::new(authority.trust(), None).unwrap()).await;
    assert!(failure.message.contains("has expired"), "{failure:?}");
}

#[tokio::test]
async fn pinned_certificates_make_both_ends_known() {
    let (here, there) = (made("here"), made("there"));
    let server = Server::new(&here, Some(pinned(&[&there]))).unwrap();
    let mut port = port(server, Client::new(pinned(&[&here]), Some(&there)).unwrap()).await;
    let (near, far) = port.link().await;
    assert_eq!(near.remote.fingerprint, Some(here.fingerprint()));
    assert_eq!(far.remote.fingerprint, Some(there.fingerprint()));
}

#[tokio::test]
async fn unknown_fingerprint_is_shown() {
    let (here, other) = (made("here"), made("other"));
    let failure = refused(Server::new(&here, None).unwrap(), Client::new(pinned(&[&other]), None).unwrap()).await;
    assert_eq!(failure.code, Code::PermissionDenied);
    assert!(failure.message.contains(&here.fingerprint().to_string()), "{failure:?}");
}

#[tokio::test]
async fn server_that_asks_for_a_certificate_refuses_none_and_wrong_ones() {
    let authority = Authority::new();
    let (here, there, other) = (made("here"), made("there"), made("other"));
    for trust in [pinned(&[&there]), authority.trust()] {
        for shows in [None, Some(&other)] {
            let server = Server::new(&here, Some(trust.clone())).unwrap();
            let failure = refused(server, Client::new(pinned(&[&here]), shows).unwrap()).await;
            assert!(failure.code == Code::PermissionDenied && failure.message.contains("refuses our certificate"), "{failure:?}");
        }
    }
    let signed = authority.signs("there", |_| {});
    let server = Server::new(&here, Some(authority.trust())).unwrap();
    let mut port = port(server, Client::new(pinned(&[&here]), Some(&signed)).unwrap()).await;
    assert_eq!(port.link().await.1.remote.fingerprint, Some(signed.fingerprint()));
}

#[tokio::test]
async fn group_changes_while_it_is_used() {
    let (here, there) = (made("here"), made("there"));
    let group = Pins::default();
    let server = Server::new(&here, Some(Trust::Pinned(group.clone()))).unwrap();
    let mut port = port(server, Client::new(pinned(&[&here]), Some(&there)).unwrap()).await;
    assert_eq!(refused_by(&port, &port.address).await.code, Code::PermissionDenied);
    group.add(there.fingerprint());
    port.link().await;
    group.remove(&there.fingerprint());
    assert_eq!(refused_by(&port, &port.address).await.code, Code::PermissionDenied);
}

#[tokio::test]
async fn stolen_certificate_without_its_key_is_no_use() {
    let folder = TempDir::new().unwrap();
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let of = |name: &str| {
        let kept = folder.path().join(name);
        Identity::kept_in(&kept, &[name]).unwrap();
        kept.join("identity.pem")
    };
    fs::copy(of("mine"), &key).unwrap();
    fs::copy(of("theirs"), &certificate).unwrap();
    let failure = Identity::files(&certificate, &key).unwrap_err();
    assert!(failure.class == Class::Permanent && failure.message.contains("does not match"), "{failure:?}");
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let folder = TempDir::new().unwrap();
    let (missing, empty) = (folder.path().join("missing.pem"), folder.path().join("empty.pem"));
    fs::write(&empty, "nothing").unwrap();
    for path in [&missing, &empty] {
        let name = path.file_name().unwrap().to_str().unwrap();
        for failure in [Identity::files(path, path).unwrap_err(), Trust::file(path).unwrap_err()] {
            assert!(failure.class == Class::Permanent && failure.message.contains(name), "{failure:?}");
        }
    }
}

#[tokio::test]
async fn identity_is_kept_and_private() {
    let folder = TempDir::new().unwrap();
    let kept = folder.path().join("kept");
    let first = Identity::kept_in(&kept, &["here", "127.0.0.1"]).unwrap();
    assert_eq!(Identity::kept_in(&kept, &["another"]).unwrap().fingerprint(), first.fingerprint());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&kept), mode(&kept.join("identity.pem"))), (0o700, 0o600));
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    assert!(!format!("{first:?}").contains("PRIVATE"));
}

/// In a container every start has the same process id.
#[tokio::test]
async fn identity_is_made_though_a_process_of_the_same_number_was_killed_while_it_made_one() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(format!("identity.pem.{}", std::process::id())), "half of a k").unwrap();
    let first = Identity::kept_in(folder.path(), &["here"]).unwrap();
    assert_eq!(Identity::kept_in(folder.path(), &["here"]).unwrap().fingerprint(), first.fingerprint());
}

#[tokio::test]
async fn plain_to_tls_and_tls_to_plain_say_what_to_use() {
    let here = made("here");
    let listens = Port::with(|listens| listens.tls = Some(Server::new(&here, None).unwrap())).await;
    let failure = refused_by(&listens, &listens.address.replace("https", "http")).await;
    assert!(failure.message.contains("use https://"), "{failure:?}");
    let mut plain = Port::with(|_| {}).await;
    plain.wire = plain.wire.tls(Client::new(pinned(&[&here]), None).unwrap());
    let failure = refused_by(&plain, &plain.address.replace("http", "https")).await;
    assert!(failure.message.contains("use http://"), "{failure:?}");
}

#[tokio::test]
async fn wire_that_trusts_nobody_says_so() {
    let port = Port::with(|listens| listens.tls = Some(Server::new(&made("here"), None).unwrap())).await;
    let failure = Http2::default().connect(&port.address).await.unwrap_err();
    assert!(failure.class == Class::Permanent && failure.message.contains("whom to trust"), "{failure:?}");
}

/// A bank that asks for certificates, counts what it runs, and answers with what tells its callers apart.
struct Bank {
    identity: Identity,
    address: String,
    runs: Arc<AtomicUsize>,
    _node: Node,
}

impl Bank {
    async fn new(clients: Trust) -> Self {
        Bank::with(clients, |_| {}).await
    }

    async fn with(clients: Trust, set: impl FnOnce(&mut ListenSettings)) -> Self {
        let (node, identity) = (Node::builder().name("bank").build().unwrap(), made("bank"));
        let runs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&runs);
        node.route("transfer", move |incoming: Incoming| {
            count.fetch_add(1, Ordering::SeqCst);
            async move { Ok(incoming.caller.scope.to_string()) }
        });
        let mut listens = ListenSettings::default();
        listens.tls = Some(Server::new(&identity, Some(clients)).unwrap());
        set(&mut listens);
        let address = format!("https://{}", node.listen("127.0.0.1:0", listens).await.unwrap());
        Bank { identity, address, runs, _node: node }
    }

    /// One and the same request of a shop that shows that certificate: what tells it apart, and how often any of them ran.
    async fn hears(&self, shows: &Identity) -> (String, usize, Node) {
        let shop = self.shop(shows, Http2::default());
        let scope = shop.call(&*self.address, "transfer", "7").id("order-17").await.unwrap();
        (String::from_utf8(scope.to_vec()).unwrap(), self.runs.load(Ordering::SeqCst), shop)
    }

    fn shop(&self, shows: &Identity, wire: Http2) -> Node {
        let client = Client::new(pinned(&[&self.identity]), Some(shows)).unwrap();
        Node::builder().name("shop").wire(Arc::new(wire.tls(client))).build().unwrap()
    }
}

#[tokio::test]
async fn a_request_stays_the_same_when_the_certificate_of_its_caller_is_renewed() {
    let authority = Authority::new();
    let bank = Bank::new(authority.trust()).await;
    let (scope, runs, _connected) = bank.hears(&authority.signs("Shop.example", |_| {})).await;
    assert_eq!((&*scope, runs), ("shop@dns:shop.example", 1));
    let renewed = authority.signs("shop.example", |params| params.serial_number = Some(2.into()));
    let (scope, runs, _connected) = bank.hears(&renewed).await;
    assert_eq!((&*scope, runs), ("shop@dns:shop.example", 1), "also while the one with the older one is connected");
}

#[tokio::test]
async fn names_that_an_authority_vouches_for_are_told_apart_and_so_are_pinned_certificates() {
    let authority = Authority::new();
    let bank = Bank::new(authority.trust()).await;
    let by_subject =
        |name: &'static str| authority.signs("10.0.0.7", move |params| params.distinguished_name.push(DnType::CommonName, name));
    let mut scopes = Vec::new();
    for shows in
        [authority.signs("shop", |_| {}), authority.signs("eve", |_| {}), by_subject("shop"), by_subject("eve"), by_subject("shop")]
    {
        scopes.push(bank.hears(&shows).await.0);
    }
    assert_eq!(scopes[..2], ["shop@dns:shop", "shop@dns:eve"]);
    assert!(scopes[2].starts_with("shop@subject:") && scopes[2] != scopes[3] && scopes[2] == scopes[4], "{scopes:?}");
    assert_eq!(bank.runs.load(Ordering::SeqCst), 4);
    let (one, other) = (made("shop"), made("shop"));
    let bank = Bank::new(pinned(&[&one, &other])).await;
    assert_eq!(bank.hears(&one).await.0, format!("shop@cert:{}", one.fingerprint()));
    assert_eq!(bank.hears(&other).await.1, 2, "nobody vouches for their names");
}

#[tokio::test]
async fn where_a_certificate_and_a_token_are_asked_for_both_are_needed_and_the_certificate_says_who_it_is() {
    let authority = Authority::new();
    let authorize: Authorize = Arc::new(|token, remote| {
        assert!(remote.fingerprint.is_some() && remote.vouched.is_some(), "what the certificate proves is known before");
        match token {
            Some("stf_right") => {
                remote.principal = Some("ada".into());
                Ok(())
            }
            _ => Err(Failure::new(Code::PermissionDenied, "that token is not known here")),
        }
    });
    let bank = Bank::with(authority.trust(), |listens| listens.authorize = Some(authorize)).await;
    let signed = authority.signs("shop.example", |_| {});
    let call = |wire: Http2, shows: &Identity| bank.shop(shows, wire).call(&*bank.address, "transfer", "7").into_future();
    let with = |token: &str| Http2::default().token(token).unwrap();
    assert_eq!(call(with("stf_right"), &signed).await.unwrap(), "shop@dns:shop.example");
    for (wire, shows, why) in [
        (Http2::default(), &signed, "that token is not known here"),
        (with("stf_wrong"), &signed, "that token is not known here"),
        (with("stf_right"), &made("shop.example"), "refuses our certificate"),
    ] {
        let failure = call(wire, shows).await.unwrap_err();
        assert!(failure.code == Code::PermissionDenied && failure.message.contains(why), "{failure:?}");
    }
    assert_eq!(bank.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn who_has_connected_and_says_nothing_does_not_hold_up_the_end_of_a_port() {
    let here = made("here");
    for tls in [Some(Server::new(&here, None).unwrap()), None] {
        let mut port = Port::with(|listens| listens.tls = tls).await;
        port.wire = port.wire.tls(Client::new(pinned(&[&here]), None).unwrap());
        let mut silent = TcpStream::connect(port.listening.addr()).await.unwrap();
        drop(port.link().await); // who comes later is taken later
        let begun = Instant::now();
        port.listening.close().await;
        let mut rest = Vec::new();
        let _it_is_cut = silent.read_to_end(&mut rest).await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}
