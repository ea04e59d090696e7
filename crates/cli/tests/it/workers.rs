//! Workers: processes of their own that host runs for a real server, and are killed.
//!
//! Subject: `crates/sdk/src/worker/serve.rs`.

use crate::served::Served;
use crate::steadfast::{Called, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

/// The worker of the example, word for word.
#[path = "../../../../examples/worker/work.rs"]
#[allow(clippy::print_stdout, reason = "the example talks to the one who runs it")]
mod work;

const TOKEN: &str = "stf_q8Zt0m3n5Yw1vK7xPfR2sLhJdC4bGaUeT6iOoNyQwEk";

/// Also the process of a worker, which is this binary once more: its server and its name are then in the environment.
#[test]
fn a_worker_works_and_without_an_address_it_says_why_not() {
    let (server, name) = (std::env::var("WORK_FOR").ok(), std::env::var("WORK_AS").unwrap_or_else(|_| "w0".into()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(work::work(server.as_deref().unwrap_or("no address"), &name));
    if let Err(failure) = &outcome {
        println!("refused: {failure}");
    }
    if server.is_none() {
        let failure = outcome.expect_err("there is no such address");
        assert!(failure.to_string().contains("INVALID_ARGUMENT"), "{failure}");
    }
}

/// A worker that is a process of its own, killed when it is dropped.
struct Worker {
    child: Child,
    name: &'static str,
    log: Arc<Mutex<String>>,
}

impl Worker {
    /// Begins to be.
    fn begin(served: &Served, name: &'static str, token: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "workers::a_worker_works_and_without_an_address_it_says_why_not", "--nocapture"]);
        command.env("WORK_FOR", &served.url).env("WORK_AS", name).env_remove("STEADFAST_TOKEN");
        command.envs(token.map(|token| ("STEADFAST_TOKEN", token)));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, kept) = (BufReader::new(child.stdout.take().unwrap()).lines(), Arc::clone(&log));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| *kept.lock().unwrap() += &(line + "\n")));
        Worker { child, name, log }
    }

    /// Is there.
    fn start(served: &Served, name: &'static str) -> Self {
        let worker = Worker::begin(served, name, None);
        until(&format!("{name} is there"), || workers(served).iter().any(|worker| worker["name"] == name).then_some(()));
        worker
    }

    /// How often it has said that line.
    fn said(&self, line: &str) -> usize {
        self.log.lock().unwrap().lines().filter(|said| *said == line).count()
    }

    fn until_said(&self, line: &str) {
        until(&format!("{} says: {line}, not only: {}", self.name, self.log.lock().unwrap()), || (self.said(line) > 0).then_some(()));
    }

    fn tell(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn ended(&mut self) -> ExitStatus {
        until("the worker ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _it_has_ended = self.child.kill();
        let _it_has_ended = self.child.wait();
    }
}

fn serve(args: &[&str]) -> (tempfile::TempDir, Served) {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[&["--listen", "127.0.0.1:0"], args].concat());
    (dir, served)
}

fn workers(served: &Served) -> Vec<Value> {
    let list = served.call(&["worker", "list", "--json"]).ends_with(0).json();
    list["items"].as_array().unwrap().clone()
}

fn start(served: &Served, id: &str, pack_ms: u64) -> Called {
    let input = format!("{{\"order\":\"{id}\",\"pack_ms\":{pack_ms}}}");
    served.call(&["run", "start", "parcel", "--id", id, "--input", &input])
}

fn metric(served: &Served, name: &str) -> String {
    let text = served.get("/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("there is no {name} in {text}")).to_owned()
}

#[test]
fn a_worker_is_killed_in_the_middle_of_a_step_and_every_run_completes() {
    let (_dir, served) = serve(&[]);
    start(&served, "nobody-knows-it", 0).ends_with(1).says(&["no workflow \"parcel\""]);
    served
        .call(&["worker", "list"])
        .ends_with(0)
        .says(&["no workers are connected", "docs/guide/workers.md"]);
    assert!(served.get("/workers").contains("No workers"));
    served.call(&["node", "list"]).ends_with(0).says(&["no nodes are connected"]);

    let mut first = Worker::start(&served, "w1");
    let ids: Vec<String> = (0..20).map(|number| format!("order-{number}")).collect();
    start(&served, "held", 3_600_000).ends_with(0); // nobody packs it to the end
    first.until_said("packs held");
    let second = Worker::start(&served, "w2");
    for id in &ids {
        start(&served, id, 200).ends_with(0);
    }
    until("both have something to do", || workers(&served).iter().all(|worker| worker["runs"].as_u64() > Some(0)).then_some(()));
    served
        .call(&["worker", "list"])
        .ends_with(0)
        .prints(&["WORKER", "RUNS", "w1", "w2", "ready", "/1000", "parcel"]);
    served
        .call(&["node", "list"])
        .ends_with(0)
        .prints(&["NODE", "KNOWN BY", "w1", "w2", "127.0.0.1:", "its name"]);
    served
        .call(&["node", "show"])
        .ends_with(0)
        .prints(&["under way here", "2 nodes", "2 streams", "steadfast.worker", "dead letters"]);
    let page = served.get("/workers");
    assert!(
        ["<code>w1</code>", "<code>w2</code>", " of 1000", ">parcel</a>"]
            .iter()
            .all(|part| page.contains(part)),
        "{page}"
    );

    first.tell(Signal::KILL);
    first.ended();
    second.until_said("packs held again");
    assert_eq!((first.said("reserves held"), second.said("reserves held")), (1, 0), "what is on record is not done again");
    for id in &ids {
        served.until_status(id, "COMPLETED");
        let (fresh, again) = (format!("sends {id}"), format!("sends {id} again"));
        until("what it said was read", || (first.said(&fresh) + second.said(&fresh) + second.said(&again) > 0).then_some(()));
        // Only an attempt that the kill cut off is made again, and whoever makes it is told so.
        assert!(first.said(&fresh) + second.said(&fresh) <= 1, "{id}");
        assert!(second.said(&fresh) + second.said(&again) <= 1 && first.said(&again) == 0, "{id}");
    }
    assert_eq!(metric(&served, "steadfast_workers_lost_total"), "1");
    assert_eq!(metric(&served, "steadfast_workers_connected"), "1");
}

#[test]
fn a_run_without_a_worker_says_so_and_goes_on_when_one_comes() {
    let (_dir, served) = serve(&["--set", "workers.workflows=parcel"]);
    start(&served, "early", 0).ends_with(0);
    served.until_status("early", "WAITING");
    assert_eq!(served.run("early")["wait"]["reason"], "NO_WORKER");
    served
        .call(&["run", "why", "early"])
        .ends_with(0)
        .prints(&["nobody who has room for it has the code of parcel", "steadfast worker list"]);
    let page = served.get("/runs/early");
    assert!(page.contains("Nobody here has the code of <code>parcel</code>") && page.contains("href=\"/workers\""), "{page}");
    let workflows: Value = serde_json::from_str(&served.get("/v1/workflows")).unwrap();
    assert_eq!((&workflows["items"][0]["name"], &workflows["items"][0]["source"]), (&"parcel".into(), &"worker".into()));

    let mut worker = Worker::start(&served, "w1");
    served.until_status("early", "COMPLETED");
    assert_eq!(served.run("early")["result"], "early from shelf 17, 5 kg");
    assert_eq!(worker.said("reserves early"), 1, "and nobody had begun it before");

    start(&served, "in-flight", 500).ends_with(0);
    worker.until_said("packs in-flight");
    worker.tell(Signal::TERM);
    assert!(worker.ended().success(), "{}", worker.log.lock().unwrap());
    assert_eq!(worker.said("the worker has drained"), 1);
    served.until_status("in-flight", "WAITING");
    assert_eq!(metric(&served, "steadfast_workers_lost_total"), "0", "who drains is not lost");
    let another = Worker::start(&served, "w2");
    served.until_status("in-flight", "COMPLETED");
    assert_eq!((worker.said("packs in-flight"), another.said("packs in-flight")), (1, 0), "what was in flight was let end");
    assert_eq!(another.said("sends in-flight"), 1);
}

#[test]
fn a_server_that_stops_lets_the_attempts_of_workers_end() {
    let (dir, mut served) = serve(&[]);
    let worker = Worker::start(&served, "w1");
    start(&served, "last", 700).ends_with(0);
    worker.until_said("packs last");
    let listen = served.url.trim_start_matches("http://").to_owned();
    served.tell(Signal::TERM);
    assert!(served.ended().success(), "{}", served.log());
    drop(served);
    let again = Served::start(dir.path(), &["--listen", &listen]);
    again.until_status("last", "COMPLETED"); // the worker comes back by itself
    assert_eq!((worker.said("packs last"), worker.said("packs last again")), (1, 0), "it was recorded before the server ended");
}

#[test]
fn a_worker_needs_the_token_of_the_api_and_a_server_that_takes_workers() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let served = Served::start(dir.path(), &["--listen", "127.0.0.1:0", "--token-file", token.to_str().unwrap()]);
    let count = || {
        let mut list = served.client(&["worker", "list", "--json"]);
        Called::of(&list.env("STEADFAST_TOKEN", TOKEN).output().unwrap()).ends_with(0).json()["items"]
            .as_array()
            .unwrap()
            .len()
    };
    for wrong in [None, Some("stf_wrong")] {
        let mut worker = Worker::begin(&served, "w1", wrong);
        worker.ended();
        assert!(worker.log.lock().unwrap().contains("refused: "), "{}", worker.log.lock().unwrap());
        assert!(worker.log.lock().unwrap().contains("401"), "{}", worker.log.lock().unwrap());
    }
    assert_eq!(count(), 0);
    let _worker = Worker::begin(&served, "w1", Some(TOKEN));
    until("it is there", || (count() == 1).then_some(()));

    let (_dir, closed) = serve(&["--set", "workers.accept=no"]);
    let mut worker = Worker::begin(&closed, "w1", None);
    worker.ended();
    assert!(worker.log.lock().unwrap().contains("refused: "), "{}", worker.log.lock().unwrap());
}

const SHIPMENT: &str = r#"
workflow: shipment
steps:
  - name: weigh
    start: { workflow: weigh, input: { order: "{{ input.order }}", pack_ms: "{{ input.ms }}" } }
output: "{{ steps.weigh.output }} kg"
"#;

#[test]
fn a_definition_uses_a_step_of_a_worker_and_survives_its_kill() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("definitions")).unwrap();
    std::fs::write(dir.path().join("definitions/shipment.yaml"), SHIPMENT).unwrap();
    let served = Served::start(dir.path(), &["--listen", "127.0.0.1:0", "--set", "workers.workflows=weigh"]);
    let start = |id: &str, ms: u64| {
        let input = format!("{{\"order\":\"{id}\",\"ms\":{ms}}}");
        served.call(&["run", "start", "shipment", "--id", id, "--input", &input]).ends_with(0);
    };
    start("early", 0); // nobody has the step yet
    served.until_status("early", "WAITING");
    assert_eq!(served.run("early")["wait"]["reason"], "CHILD");

    let mut first = Worker::start(&served, "w1");
    served.until_status("early", "COMPLETED");
    assert_eq!(served.run("early")["result"], "5 kg");
    start("killed", 1_000);
    first.until_said("weighs killed");
    let second = Worker::start(&served, "w2");
    first.tell(Signal::KILL);
    first.ended();
    served.until_status("killed", "COMPLETED");
    assert_eq!(served.run("killed")["result"], "6 kg");
    assert_eq!((second.said("weighs killed again"), second.said("weighs killed")), (1, 0), "whoever does it once more is told so");
}
