//! A process of a server: its log is read, it can be stopped for a while, and it ends with its
//! value or with the process that started it.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a server may take to begin, or to say the next thing about it: one that was killed
/// reads what it has first.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// A process that runs.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Reads from a pipe that we never write to; it ends when we do, however that is, and then so
    /// does the server.
    guard: Option<Child>,
}

impl Process {
    /// Starts a program and waits until its log has a line with that in it; what it said if it
    /// never does.
    pub(crate) fn start(command: &mut Command, ready: &str) -> Result<Self, String> {
        Self::start_guarded(command, ready, "kill -9 \"$1\"", Path::new(""))
    }

    /// The same; if we end without having ended it, a shell does that to it, which knows its id as
    /// `$1` and that folder as `$2`.
    pub(crate) fn start_guarded(command: &mut Command, ready: &str, end: &str, folder: &Path) -> Result<Self, String> {
        let program = command.get_program().display().to_string();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut process = Process { child: child.map_err(|error| format!("{program} cannot be started: {error}"))?, guard: None };
        process.guard = Some(process.guard(end, folder).map_err(|error| format!("nobody can watch over {program}: {error}"))?);
        let lines = process.lines();
        let mut said = Vec::new();
        loop {
            match lines.recv_timeout(BEGINS_WITHIN) {
                Ok(line) if line.contains(ready) => return Ok(process),
                Ok(line) => said.push(line),
                Err(_) => return Err(format!("{program} did not begin; it said:\n{}", said.join("\n"))),
            }
        }
    }

    fn guard(&self, end: &str, folder: &Path) -> std::io::Result<Child> {
        let mut guard = Command::new("/bin/sh");
        guard
            .args(["-c", &format!("read -r nothing; {end}"), "guard", &self.child.id().to_string()])
            .arg(folder);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    /// What it says, line by line. All is read, so that it never waits for us.
    fn lines(&mut self) -> Receiver<String> {
        let (sender, lines) = channel();
        if let Some(out) = self.child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    let _nobody_listens = sender.send(line);
                }
            });
        }
        lines
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(mut self, signal: Signal) {
        self.signal(signal);
        let _it_has_ended = self.child.wait();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(id) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(id, signal).unwrap_or_else(|error| panic!("the server cannot be signalled: {error}"));
        }
    }
}

/// A process that was stopped for a while is ended by this too.
impl Drop for Process {
    fn drop(&mut self) {
        // The guard goes first: it knows the server by a number that somebody else may have
        // afterwards.
        for child in self.guard.iter_mut().chain([&mut self.child]) {
            let _it_has_ended = child.kill();
            let _it_has_ended = child.wait();
        }
    }
}

/// A port that nobody has now.
pub(crate) fn free_port() -> u16 {
    let bound = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    bound.unwrap_or_else(|error| panic!("there is no free port: {error}")).port()
}
