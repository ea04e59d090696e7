//! A real server, ended when it is dropped.

use crate::steadfast::{Called, command, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

/// Workflows that the tests need.
const DEFINITIONS: [(&str, &str); 5] = [
    (
        "greet",
        "workflow: greet\nsteps:\n  - { name: say, set: \"Hello, {{ input.name }}\" }\noutput: { text: \"{{ steps.say.output }}\" }\n",
    ),
    ("ask", "workflow: ask\nsteps:\n  - { name: ok, approve: { roles: [operator], within: 2h } }\noutput: \"{{ steps.ok.output }}\"\n"),
    (
        "mend",
        "workflow: mend\nretry: { max_attempts: 1 }\nsteps:\n  - name: look\n    run: { command: [test, -f, mended] }\noutput: mended\n",
    ),
    (
        "poison",
        "workflow: poison\nsteps:\n  - { name: read, fail: { class: poison, code: DECODE_FAILURE, message: \"the body cannot be read\" } }\n",
    ),
    (
        "again",
        "workflow: again\nretry: { max_attempts: 3, backoff: constant, base: 1h }\nsteps:\n  - { name: look, run: { command: [test, -f, mended] } }\n",
    ),
];

pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
    log: Arc<Mutex<String>>,
    pub(crate) dir: PathBuf,
    /// Kept for as long as the server runs; not there if somebody else keeps it.
    folder: Option<tempfile::TempDir>,
}

impl Served {
    /// A server with the workflows of the tests.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        define(folder.path());
        let dir = folder.path().to_owned();
        let mut served = Served::start(&dir, &["--listen", "127.0.0.1:0"]);
        served.folder = Some(folder);
        served
    }

    /// A server in that folder.
    pub(crate) fn start(dir: &Path, args: &[&str]) -> Self {
        let mut serve = command(dir, &["serve"]);
        let mut child = serve.args(args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, kept) = (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::clone(&log));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| *kept.lock().unwrap() += &(line + "\n")));
        let url = until("the server says its address", || {
            assert!(child.try_wait().unwrap().is_none(), "the server has ended: {}", log.lock().unwrap());
            address(&log.lock().unwrap())
        });
        Served { child, url, log, dir: dir.into(), folder: None }
    }

    /// The binary as a client of this server.
    pub(crate) fn client(&self, args: &[&str]) -> Command {
        let mut command = command(&self.dir, args);
        command.env("STEADFAST_SERVER", &self.url);
        command
    }

    /// Calls the binary as a client of this server.
    pub(crate) fn call(&self, args: &[&str]) -> Called {
        Called::of(&self.client(args).output().unwrap())
    }

    /// What stands at a path of the server.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> String {
        let addr = self.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(addr).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        body.into()
    }

    /// What a run is, as JSON.
    #[track_caller]
    pub(crate) fn run(&self, id: &str) -> serde_json::Value {
        self.call(&["run", "show", id, "--json"]).ends_with(0).json()
    }

    /// Waits until a run has that status.
    #[track_caller]
    pub(crate) fn until_status(&self, id: &str, status: &str) {
        until(&format!("{id} is {status}"), || (self.run(id)["status"] == status).then_some(()));
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn tell(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        until("the server ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _it_has_ended = self.child.kill();
        let _it_has_ended = self.child.wait();
    }
}

/// Where it is reached on this machine, also if it listens at all addresses.
fn address(log: &str) -> Option<String> {
    let rest = ["http://127.0.0.1:", "http://0.0.0.0:"]
        .iter()
        .find_map(|listens| Some(log.split_once(listens)?.1))?;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    rest.contains('\n').then(|| format!("http://127.0.0.1:{port}"))
}

/// Puts the workflows of the tests into a folder.
pub(crate) fn define(dir: &Path) {
    std::fs::create_dir_all(dir.join("definitions")).unwrap();
    for (name, text) in DEFINITIONS {
        std::fs::write(dir.join(format!("definitions/{name}.yaml")), text).unwrap();
    }
}
