//! Messages: servers that answer calls, and that call each other, also when one of them is killed.
//!
//! Subject: `crates/server/src/links.rs`.

use crate::served::Served;
use crate::steadfast::{Called, command, until};
use crate::world::nobody;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use steadfast_messaging::wire::tls::Identity;
use steadfast_messaging::{Class, Node, Policy};

const TOKEN: &str = "stf_q8Zt0m3n5Yw1vK7xPfR2sLhJdC4bGaUeT6iOoNyQwEk";

/// Answers at once, at the route of its name.
const GREET: &str = "workflow: greet\nanswers: true\ninput: { type: object, required: [name] }\nsteps:\n  - { name: say, set: \"Hello, {{ input.name }}\" }\noutput: { text: \"{{ steps.say.output }}\" }\n";

/// Writes a line that tells how often it was done, and takes its time.
const BOOK: &str = "workflow: book\nanswers: transfer\nsteps:\n  - { name: write, run: { command: [sh, -c, \"echo booked >> ledger\"] } }\n  - { name: slow, wait: 1s }\noutput: { booked: \"{{ input.amount }}\" }\n";

fn define(dir: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(dir.join("definitions")).unwrap();
    std::fs::write(dir.join(format!("definitions/{name}.yaml")), text).unwrap();
}

/// A server with those definitions, on a free port.
fn serve(dir: &Path, texts: &[(&str, &str)], args: &[&str]) -> Served {
    texts.iter().for_each(|(name, text)| define(dir, name, text));
    Served::start(dir, &[&["--listen", "127.0.0.1:0"], args].concat())
}

/// How often something was booked there.
fn bookings(dir: &Path) -> usize {
    std::fs::read_to_string(dir.join("definitions/ledger")).unwrap_or_default().lines().count()
}

#[test]
fn a_workflow_answers_calls_and_the_same_id_is_the_same_request() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), &[("greet", GREET)], &["--set", "messages.name=bank"]);
    assert!(served.log().contains(&format!("messages     {}, as node bank", served.url)), "{}", served.log());
    let call = |args: &[&str]| served.call(&[&["call", &served.url, "greet"], args].concat());
    assert_eq!(call(&["{\"name\":\"Ada\"}", "--id", "a"]).ends_with(0).json()["text"], "Hello, Ada");
    assert_eq!(call(&["{\"name\":\"Ada\"}", "--id", "a"]).ends_with(0).json()["text"], "Hello, Ada");
    call(&["{\"name\":\"Bob\"}", "--id", "a"])
        .ends_with(1)
        .says(&["another request of that id", "INVALID_ARGUMENT", "SF0140"]);
    let runs = served.call(&["run", "list", "--json"]).ends_with(0).json();
    let ids: Vec<_> = runs["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
    assert!(ids.len() == 1 && ids[0].starts_with("message/"), "{ids:?}");
    served.call(&["tell", &served.url, "greet", "{\"name\":\"Eve\"}"]).ends_with(0);
    until("it was done", || {
        let runs = served.call(&["run", "list", "--status", "COMPLETED", "--json"]).ends_with(0).json();
        (runs["items"].as_array().unwrap().len() == 2).then_some(())
    });
    assert!(
        served
            .get("/metrics")
            .lines()
            .any(|line| line == "steadfast_messages_received_total{kind=\"call\"} 3")
    );
    assert!(served.get("/messages").contains("<span class=\"tag\">greet</span>"));
}

#[test]
fn what_cannot_be_is_told_with_its_code_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), &[("greet", GREET)], &[]);
    let (nobody, url) = (nobody(), served.url.clone());
    let call = |args: &[&str]| served.call(&[&["call"], args].concat());
    call(&[&url, "nothing"])
        .ends_with(1)
        .says(&["has no route nothing", "NOT_FOUND", "SF0140", "docs/errors/SF0140.md"]);
    call(&[&url, "greet", "{\"nam\":1}"])
        .ends_with(1)
        .says(&["the input is not what greet asks for", "SF0140"]);
    call(&[&url, "greet", "{name:1}"]).ends_with(2).says(&["INPUT: it is no JSON"]);
    call(&[&nobody, "greet", "--timeout", "300ms"])
        .ends_with(3)
        .says(&["SF0141", "docs/errors/SF0141.md"]);
    call(&["http://127.0.0.1:1/path", "greet"]).ends_with(2).says(&["it has a path"]);
    served.call(&["tell", &nobody, "greet", "--timeout", "300ms"]).ends_with(3).says(&["SF0141"]);
}

#[test]
fn routes_follow_the_definitions() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), &[("book", BOOK)], &[]);
    let call = |route: &str| served.call(&["call", &served.url, route, "{\"name\":\"Ada\",\"amount\":1}"]);
    call("greet").ends_with(1).says(&["NOT_FOUND"]);
    define(dir.path(), "greet", GREET);
    served.tell(Signal::HUP);
    until("it answers", || (call("greet").code == Some(0)).then_some(()));
    std::fs::remove_file(dir.path().join("definitions/greet.yaml")).unwrap();
    served.tell(Signal::HUP);
    until("nobody answers any more", || (call("greet").code == Some(1)).then_some(()));
    call("transfer").ends_with(0);
}

#[test]
fn a_server_with_a_token_lets_in_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let token = token.to_str().unwrap();
    let own = nobody();
    let own_port = format!("messages.listen={}", own.trim_start_matches("http://"));
    let served = serve(dir.path(), &[("greet", GREET)], &["--token-file", token, "--set", &own_port]);
    for url in [&served.url, &own] {
        let call = |token: &[&str]| {
            Called::of(
                &command(dir.path(), &[&["call", url, "greet", "{\"name\":\"Ada\"}"], token].concat())
                    .output()
                    .unwrap(),
            )
        };
        call(&[]).ends_with(1).says(&["PERMISSION_DENIED", "SF0141", "--token-file"]);
        assert_eq!(call(&["--token-file", token]).ends_with(0).json()["text"], "Hello, Ada", "{url}");
    }
}

#[test]
fn a_port_of_its_own_speaks_tls_and_asks_for_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let own = "127.0.0.1:0";
    let pem = |name: &str| {
        let folder = dir.path().join(name);
        Identity::kept_in(&folder, &["127.0.0.1"]).unwrap();
        folder.join("identity.pem").to_str().unwrap().to_owned()
    };
    let (bank, shop) = (pem("bank"), pem("shop"));
    let set = [format!("messages.listen={own}"), format!("messages.cert_file={bank}"), format!("messages.client_ca_file={shop}")];
    let served = serve(dir.path(), &[("greet", GREET)], &["--set", &set[0], "--set", &set[1], "--set", &set[2]]);
    let log = until("it says where", || Some(served.log()).filter(|log| log.contains("as node")));
    let url = log
        .lines()
        .find_map(|line| line.split("messages     ").nth(1)?.split(',').next())
        .unwrap()
        .to_owned();
    assert!(url.starts_with("https://127.0.0.1:"), "{log}");
    let call = |settings: &[(&str, &str)]| {
        let mut call = command(dir.path(), &["call", &url, "greet", "{\"name\":\"Ada\"}", "--timeout", "5s"]);
        Called::of(&call.envs(settings.iter().copied()).output().unwrap())
    };
    let (ca, own, other) =
        (("STEADFAST_MESSAGES_CA_FILE", &*bank), ("STEADFAST_MESSAGES_CERT_FILE", &*shop), ("STEADFAST_MESSAGES_CERT_FILE", &*bank));
    assert_eq!(call(&[ca, own]).ends_with(0).json()["text"], "Hello, Ada");
    call(&[]).ends_with(3).says(&["whom to trust", "SF0141"]);
    let refused = call(&[ca]).ends_with(1).says(&["refuses our certificate", "messages.cert_file"]); // without one nobody comes in
    assert!(!refused.err.contains("--token-file"), "a token would not help: {refused:?}");
    assert_ne!(call(&[ca, other]).code, Some(0), "nor with one of somebody else");
    let plain = url.replace("https", "http");
    assert_ne!(served.call(&["call", &plain, "greet", "--timeout", "2s"]).code, Some(0), "nor without TLS");
}

#[test]
fn a_call_survives_the_death_of_the_server_and_is_executed_once() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), &[("book", BOOK)], &[]);
    let (url, listen) = (served.url.clone(), served.url.trim_start_matches("http://").to_owned());
    let call = command(dir.path(), &["call", &url, "transfer", "{\"amount\":7}", "--timeout", "60s"]);
    let call = std::thread::spawn(move || { call }.output().unwrap());
    until("it is in the middle", || (bookings(dir.path()) == 1).then_some(()));
    until("what was booked is on record", || {
        let runs = served.call(&["run", "list", "--wait", "TIMER", "--json"]).ends_with(0).json();
        (runs["items"].as_array().unwrap().len() == 1).then_some(())
    });
    served.tell(Signal::KILL);
    drop(served);
    let _again = Served::start(dir.path(), &["--listen", &listen]);
    let called = Called::of(&call.join().unwrap());
    assert_eq!(called.ends_with(0).json()["booked"], 7);
    assert_eq!(bookings(dir.path()), 1);
}

#[test]
fn a_step_of_one_server_calls_another_and_waits_while_it_is_away() {
    let (shop, bank) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    define(bank.path(), "book", BOOK);
    let there = Served::start(bank.path(), &["--listen", "127.0.0.1:0"]).url.clone(); // it was there once
    let order = "workflow: order\nsteps:\n  - name: transfer\n    call: { to: \"{{ vars.bank }}\", route: transfer, input: { amount: 7 } }\n    retry: { max_attempts: 100, backoff: constant, base: 100ms }\n    timeout: 10s\noutput: \"{{ steps.transfer.output.booked }}\"\n";
    let shop = serve(shop.path(), &[("order", order)], &["--var", &format!("bank={there}")]);
    shop.call(&["run", "start", "order", "--id", "o"]).ends_with(0);
    until("it was tried", || {
        shop.call(&["run", "show", "o", "--json"]).json()["steps"][0]["attempts"]
            .as_u64()
            .filter(|attempts| *attempts > 1)
    });
    let _bank = Served::start(bank.path(), &["--listen", there.trim_start_matches("http://")]);
    shop.until_status("o", "COMPLETED");
    assert_eq!((shop.run("o")["result"].as_u64(), bookings(bank.path())), (Some(7), 1));
}

#[test]
fn a_call_under_way_is_answered_before_the_server_ends() {
    let dir = tempfile::tempdir().unwrap();
    let held = "workflow: held\nanswers: true\nsteps:\n  - { name: slow, run: { command: [sh, -c, \"touch begun; while [ ! -f go ]; do sleep 0.05; done\"] } }\noutput: done\n";
    let mut served = serve(dir.path(), &[("held", held)], &[]);
    let call = command(dir.path(), &["call", &served.url, "held", "--timeout", "60s"]);
    let call = std::thread::spawn(move || { call }.output().unwrap());
    until("it is under way", || dir.path().join("definitions/begun").exists().then_some(()));
    served.tell(Signal::TERM);
    until("it says so", || served.log().contains("stopping").then_some(()));
    std::fs::write(dir.path().join("definitions/go"), "").unwrap();
    assert_eq!(Called::of(&call.join().unwrap()).ends_with(0).json(), "done");
    assert!(served.ended().success(), "{}", served.log());
}

#[test]
fn messages_that_cannot_be_read_are_letters_that_are_shown_redriven_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), &[("greet", GREET)], &[]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let shop = Node::builder().name("shop").bind("127.0.0.1:0").await.unwrap();
        let failure = shop.call(&*served.url, "greet", "{ no JSON").id("order-17").await.unwrap_err();
        assert_eq!(failure.class, Class::Poison, "{failure:?}");
    });
    let list = || {
        served
            .call(&["letter", "list", "--kind", "message", "--route", "greet", "--json"])
            .ends_with(0)
            .json()
    };
    until("there is one letter", || (list()["items"].as_array().unwrap().len() == 1).then_some(()));
    let (json, id) = (list(), "route:greet.1");
    assert_eq!(json["items"][0]["id"], id, "{json}");
    served
        .call(&["letter", "show", id])
        .ends_with(0)
        .prints(&[id, "shop", "order-17", "DECODE_FAILURE", "eyBubyBKU09O (base64)"]);
    let redrive = || served.call(&["letter", "redrive", id, "--reason", "once more"]);
    redrive().ends_with(1).says(&["SF0138", "is not what it takes"]);
    let shown = served.call(&["letter", "show", id, "--json"]).ends_with(0).json();
    assert_eq!(shown["attempt"], 2, "what was tried again is known: {shown}");
    std::fs::remove_file(dir.path().join("definitions/greet.yaml")).unwrap();
    until("nobody answers any more", || redrive().err.contains("has no route").then_some(()));
    served.call(&["letter", "drop", id, "--reason", "void"]).ends_with(0);
    assert_eq!(list()["items"].as_array().unwrap().len(), 0);
}

/// Calls another node.
const ASK: &str = "workflow: ask\nsteps:\n  - { name: ask, call: { to: \"{{ input.to }}\", route: greet } }\noutput: { said: \"{{ steps.ask.output }}\" }\n";

/// Whom a server calls has shown no token: it is answered, and may ask for nothing itself.
#[tokio::test(flavor = "multi_thread")]
async fn whom_a_server_calls_may_ask_it_for_nothing() {
    let stranger = Node::bind("127.0.0.1:0").await.unwrap();
    let node = stranger.clone();
    stranger.route("greet", move |incoming| {
        let (node, peer) = (node.clone(), incoming.caller.peer.clone());
        async move {
            let call = node.call(peer.clone(), "greet", "{\"name\":\"Eve\"}").policy(Policy::once()).await;
            let mut codes = vec![call.expect_err("it is not for strangers").code.to_string()];
            for route in ["steadfast.worker", "steadfast.shards", "steadfast.instances"] {
                let stream = node.stream(peer.clone(), route, "").await.expect_err("it is not for strangers");
                let call = node
                    .call(peer.clone(), route, "")
                    .policy(Policy::once())
                    .await
                    .expect_err("it is not for strangers");
                codes.extend([stream.code.to_string(), call.code.to_string()]);
            }
            Ok::<_, steadfast_messaging::Failure>(serde_json::to_string(&codes).unwrap())
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), &[("greet", GREET), ("ask", ASK)], &[]);
    let input = format!("{{\"to\":\"http://{}\"}}", stranger.addr().unwrap());
    let said = tokio::task::spawn_blocking(move || {
        served.call(&["run", "start", "ask", "--input", &input, "--wait", "--json"]).ends_with(0).json()
    })
    .await
    .unwrap();
    assert_eq!(said["result"]["said"], serde_json::json!(vec!["PERMISSION_DENIED"; 7]), "{said}");
}
