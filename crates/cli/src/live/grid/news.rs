//! A line per change, for logs and pipes.

use super::words::{note, place, sentence};
use super::{Rank, counts, rank};
use std::collections::BTreeMap;
use steadfast_server::shapes::{Plan, PlanTask, TaskStatus};

/// Knows what was told already.
#[derive(Debug, Default)]
pub(crate) struct News {
    plan: Option<String>,
    tenants: BTreeMap<String, String>,
}

impl News {
    /// What is new.
    pub(super) fn of(&mut self, plan: &Plan) -> Vec<String> {
        let is_first = self.plan.is_none();
        let mut news = Vec::new();
        let said = told_of_plan(plan);
        if self.plan.as_ref() != Some(&said) {
            news.push(format!("{}: {said}", plan.id));
            self.plan = Some(said);
        }
        for task in &plan.tenants {
            let said = told(task, plan.stages.len());
            // What was over or to come when somebody began to look is in the counts.
            let is_news = !is_first || matches!(rank(task.status), Rank::NeedsAPerson | Rank::UnderWay);
            if self.tenants.get(&task.tenant_id) != Some(&said) {
                if is_news {
                    news.push(format!("{}: {said}", task.tenant_id));
                }
                self.tenants.insert(task.tenant_id.clone(), said);
            }
        }
        if is_first && let Some(first) = news.first_mut() {
            *first += &format!(" ({})", counts(plan));
        }
        if plan.status.is_final() {
            news.push(format!("{}: {}", plan.id, counts(plan)));
        }
        news
    }
}

fn told_of_plan(plan: &Plan) -> String {
    let status = plan.status.as_str().to_lowercase();
    match sentence(plan) {
        Some(said) if said.starts_with(&status) => said,
        Some(said) => format!("{status}, {said}"),
        None => status,
    }
}

fn told(task: &PlanTask, stages: usize) -> String {
    let status = task.status.as_str().to_lowercase().replace('_', " ");
    let at = place(task, stages)
        .map(|place| format!(" at {place}"))
        .filter(|_| task.status != TaskStatus::Running);
    let note = Some(note(task)).filter(|note| !note.is_empty()).map(|note| format!(": {note}"));
    match task.status {
        TaskStatus::Running => place(task, stages).unwrap_or(status) + &note.unwrap_or_default(),
        _ => status + &at.unwrap_or_default() + &note.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const STAGES: [&str; 3] = ["drain", "copy", "verify"];

    #[test]
    fn every_change_is_told_once() {
        let mut news = News::default();
        let begun = sample::plan(&STAGES, &[("acme", "RUNNING", 1), ("blue", "PENDING", 0), ("cato", "COMPLETED", 3)]);
        assert_eq!(news.of(&begun), ["p: running (1 of 3 completed, 1 running, 1 pending)", "acme: copy (2 of 3)"]);
        assert!(news.of(&begun).is_empty());
        let later = sample::plan(&STAGES, &[("acme", "FAILED", 1), ("blue", "RUNNING", 0), ("cato", "COMPLETED", 3)]);
        assert_eq!(news.of(&later), ["acme: failed at copy (2 of 3): exit code 1 [EXIT]", "blue: drain (1 of 3)"]);
        let mut last = sample::plan(&STAGES, &[("acme", "INTERRUPTED", 1), ("blue", "COMPLETED", 3), ("cato", "COMPLETED", 3)]);
        (last.status, last.cause) = (steadfast_server::shapes::PlanStatus::Paused, Some("RESTART".into()));
        assert_eq!(
            news.of(&last),
            [
                "p: paused, because the server was started again; go on with: steadfast plan resume p; who is interrupted goes on with: steadfast tenant retry TENANT",
                "acme: interrupted at copy (2 of 3): retry it, or cancel it",
                "blue: completed",
            ]
        );
    }
}
