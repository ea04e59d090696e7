//! The process that is killed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

pub(crate) struct Victim {
    child: Child,
    lines: mpsc::Receiver<String>,
}

/// What is known when it is over.
pub(crate) struct End {
    /// It came to its end by itself.
    pub(crate) done: bool,
    /// What it said was acknowledged to it.
    pub(crate) acknowledged: Vec<String>,
    pub(crate) errors: String,
}

impl Victim {
    pub(crate) fn start(folder: &Path, process: u32, runs: u32) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_steadfast-crash-test"))
            .arg(folder.join("data"))
            .arg(folder.join("log"))
            .args([process.to_string(), runs.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the victim can be started");
        let stdout = child.stdout.take().expect("it is piped");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _nobody_listens = sender.send(line);
            }
        });
        Victim { child, lines }
    }

    /// Lets it live that long, or until it is done; then kills it, with no chance to tidy up.
    pub(crate) fn live_for(mut self, life_ms: u64) -> End {
        let (over, life) = mpsc::channel::<()>();
        let timer = std::thread::spawn(move || life.recv_timeout(Duration::from_millis(life_ms)).is_err());
        let mut acknowledged = Vec::new();
        let mut done = false;
        while !done && !timer.is_finished() {
            match self.lines.recv_timeout(Duration::from_millis(2)) {
                Ok(line) if line == "done" => done = true,
                Ok(line) => acknowledged.push(line),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        drop(over);
        self.child.kill().expect("it can be killed"); // SIGKILL
        let status = self.child.wait().expect("it can be waited for");
        acknowledged.extend(self.lines.iter().filter(|line| line != "done"));
        let mut errors = String::new();
        let _what_there_is = self.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut errors));
        assert!(done || status.code().is_none(), "the victim ended by itself with {status}:\n{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        End { done, acknowledged, errors }
    }
}
