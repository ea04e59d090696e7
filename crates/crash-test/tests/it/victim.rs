//! The process that is killed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use steadfast_kernel::random::Stream;

/// How long a process that is left alone may take to come to its end.
const WHOLE: Duration = Duration::from_secs(60);

/// A process that has nothing to commit is killed after this time.
const IDLE: Duration = Duration::from_millis(250);

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Life {
    /// So long after its beginning: also while it opens the store and finds its runs.
    FromBirth(Duration),
    /// So long after it has made that many commits.
    Busy(u64, Duration),
    /// Once it has made that many commits, however slow the machine is.
    Long(u64),
    /// Not before its end.
    Whole,
}

impl Life {
    pub(crate) fn draw(chance: &mut Stream) -> Self {
        let mut below = |bound: u64| chance.next_u64() % bound;
        if below(4) == 0 {
            Life::FromBirth(Duration::from_micros(below(80_000)))
        } else {
            Life::Busy(below(14), Duration::from_micros(below(12_000)))
        }
    }
}

pub(crate) struct Victim {
    child: Child,
    lines: mpsc::Receiver<String>,
    /// What it said was acknowledged to it.
    acknowledged: Vec<String>,
    /// How many commits it has made.
    commits: u64,
    done: bool,
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
    pub(crate) fn start(folder: &Path, process: u32, runs: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_steadfast-crash-test"))
            .arg(folder.join("data"))
            .arg(folder.join("log"))
            .args([&process.to_string(), runs])
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
        Victim { child, lines, acknowledged: Vec::new(), commits: 0, done: false }
    }

    /// Lets it live that long, or until it is done; then kills it, with no chance to tidy up.
    pub(crate) fn live(mut self, life: Life) -> End {
        match life {
            Life::FromBirth(time) => self.listen(time, u64::MAX),
            Life::Whole => self.listen(WHOLE, u64::MAX),
            Life::Long(commits) => self.listen(WHOLE, commits),
            Life::Busy(commits, time) => {
                self.listen(IDLE, commits);
                self.listen(time, u64::MAX);
            }
        }
        self.child.kill().expect("it can be killed"); // SIGKILL
        let status = self.child.wait().expect("it can be waited for");
        while let Ok(line) = self.lines.recv() {
            self.hear(line);
        }
        let mut errors = String::new();
        let _what_there_is = self.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut errors));
        assert!(self.done || status.code().is_none(), "the victim ended by itself with {status}:\n{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        End { done: self.done, acknowledged: self.acknowledged, errors }
    }

    /// Hears what it says for that time, or until it has made that many commits or is done.
    fn listen(&mut self, time: Duration, commits: u64) {
        let (stop, stopped) = mpsc::channel::<()>();
        let timer = std::thread::spawn(move || stopped.recv_timeout(time).is_err());
        while !timer.is_finished() && self.commits < commits {
            match self.lines.recv_timeout(Duration::from_millis(1)) {
                Ok(line) => self.hear(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        drop(stop);
    }

    fn hear(&mut self, line: String) {
        match line.split_once(' ') {
            Some(("at", commits)) => self.commits = commits.parse().expect("a number"),
            None if line == "done" => self.done = true,
            _ => self.acknowledged.push(line),
        }
    }
}
