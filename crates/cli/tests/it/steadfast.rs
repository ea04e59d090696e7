//! Runs the binary in a folder of its own, with nothing of the environment that could matter.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take. Nothing is measured by it: it ends tests that would hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a call has brought.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Called {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Called { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// It ended with that code.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// What it printed, as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// All of these stand on stdout.
    #[track_caller]
    pub(crate) fn prints(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.out.contains(part), "{part:?} is not on stdout: {self:#?}");
        }
        self
    }

    /// All of these stand on stderr.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not on stderr: {self:#?}");
        }
        self
    }
}

/// The binary in that folder.
pub(crate) fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("STEADFAST_")) {
        command.env_remove(name);
    }
    command.current_dir(dir).args(args).stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

/// Calls the binary in that folder.
pub(crate) fn steadfast(dir: &Path, args: &[&str]) -> Called {
    Called::of(&command(dir, args).output().unwrap())
}

/// Asks again and again until there is an answer.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begin = now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "it never happened: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[expect(clippy::disallowed_methods, reason = "ends tests that would hang")]
fn now() -> Instant {
    Instant::now()
}
