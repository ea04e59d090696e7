//! A line per change, for logs and pipes.

use super::steps::{self, detail};
use crate::commands::run::sentence;
use crate::output;
use std::collections::BTreeMap;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Run, StepStatus, Wait};

/// Knows what was told already.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    steps: BTreeMap<String, (&'static str, u32)>,
    waits: Option<String>,
}

impl Plain {
    /// Tells what is new.
    pub(super) fn tell(&mut self, run: &Run, now: Timestamp) {
        for line in self.news(run, now) {
            output::say(line);
        }
    }

    fn news(&mut self, run: &Run, now: Timestamp) -> Vec<String> {
        let mut news = Vec::new();
        for step in steps::of(run).iter().filter(|step| step.status != StepStatus::Pending) {
            let status = step.status.as_str();
            let is = (status, step.attempts);
            if self.steps.insert(step.path.clone(), is).as_ref() != Some(&is) {
                let detail = if step.status == StepStatus::Running { String::new() } else { detail(step, now) };
                news.push(format!("{}: {} {detail}", step.label(), status.to_lowercase().replace('_', " ")).trim_end().into());
            }
        }
        let waits = run.waits.first().filter(|wait| !matches!(wait, Wait::Backoff { .. }) && !run.status.is_final());
        let reason = waits.map(|wait| format!("{wait:?}"));
        if reason.is_some() && reason != self.waits {
            news.push(sentence(run, now));
        }
        self.waits = reason;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::sample;
    use crate::output::time;

    fn run(status: &str, attempts: u32, waits: serde_json::Value) -> Run {
        let step = serde_json::json!({"name": "charge", "path": "charge#1", "status": status, "attempts": attempts,
            "startedAt": "2026-01-01T12:00:00Z", "endedAt": "2026-01-01T12:00:02Z"});
        sample::run(serde_json::json!({"status": "RUNNING", "steps": [step], "waits": waits}))
    }

    #[test]
    fn every_change_is_told_once() {
        let now = time::parse("2026-01-01T12:00:02Z").unwrap();
        let mut plain = Plain::default();
        let none = serde_json::json!([]);
        assert_eq!(plain.news(&run("RUNNING", 1, none.clone()), now), ["charge: running"]);
        assert!(plain.news(&run("RUNNING", 1, none.clone()), now).is_empty());
        assert_eq!(plain.news(&run("RUNNING", 2, none.clone()), now), ["charge: running"]);
        assert_eq!(plain.news(&run("COMPLETED", 2, none), now), ["charge: completed 2 attempts, 2 s"]);
        let waits = serde_json::json!([{"reason": "SIGNAL", "name": "paid"}]);
        assert_eq!(plain.news(&run("COMPLETED", 2, waits.clone()), now).len(), 1);
        assert!(plain.news(&run("COMPLETED", 2, waits), now).is_empty());
    }
}
