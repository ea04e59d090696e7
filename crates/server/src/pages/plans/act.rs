//! What can be done about a plan in the status that it has.

use super::show::Shown;
use crate::pages::deed::Deed;
use crate::pages::run::quoted;
use crate::pages::words;
use crate::shapes::{PlanTask, TaskStatus};
use serde::Deserialize;
use steadfast_kernel::plan::{Cause, Phase};
use steadfast_kernel::{PlanStatus, run};

/// What a form can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verb {
    Start,
    Pause,
    Resume,
    Cancel,
    Rollback,
}

impl Verb {
    /// Whether it cannot be taken back.
    pub(super) fn is_grave(self) -> bool {
        matches!(self, Verb::Cancel | Verb::Rollback)
    }
}

impl From<Verb> for run::Verb {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Start => run::Verb::Start,
            Verb::Pause => run::Verb::Pause,
            Verb::Resume => run::Verb::Resume,
            Verb::Cancel => run::Verb::Cancel,
            Verb::Rollback => run::Verb::RollBack,
        }
    }
}

/// What its status allows.
pub(super) fn deeds(shown: &Shown) -> Vec<Deed> {
    let tenants = &shown.plan.tenants;
    let command = |verb: &str| format!("steadfast plan {verb} {} --reason '…'", quoted(&shown.plan.id));
    let start = || Deed::new("start", "Start", "Its tasks begin: the canaries first, and so many at once as it says.", command("start"));
    let pause = |what| Deed::new("pause", "Pause", what, command("pause"));
    let resume = || Deed::new("resume", "Resume", "It goes on, with the tasks that it paused.", command("resume"));
    let cancel = || {
        let what = "Tasks that have not completed end, and give their locks back. Nothing is undone.";
        let open = tenants.iter().filter(|task| is_open(task)).count() as u64;
        Deed::new("cancel", "Cancel", what, command("cancel")).grave(format!("Yes, call off the tasks of {}", words::count(open, "tenant")))
    };
    let roll_back = || {
        let undone = tenants.iter().filter(|task| can_be_undone(task)).count() as u64;
        let what = "What the tasks did is undone, newest first, so many tenants at once as the plan says.";
        let sure = format!("Yes, undo what was done for {}", words::count(undone, "tenant"));
        (undone > 0).then(|| Deed::new("rollback", "Roll back", what, command("rollback")).grave(sure))
    };
    match &shown.state.phase {
        Phase::New => vec![start(), cancel()],
        Phase::Running => {
            let pause = pause("No other task begins. Those that are under way pause at the end of their stage.");
            [pause, cancel()].into_iter().chain(roll_back()).collect()
        }
        Phase::Paused { cause: Cause::Person | Cause::Deadline, .. } => [resume(), cancel()].into_iter().chain(roll_back()).collect(),
        Phase::Paused { .. } => {
            let pause = pause("Tasks that are still under way pause, too, at the end of their stage.");
            [resume(), pause, cancel()].into_iter().chain(roll_back()).collect()
        }
        Phase::Ending { undo: true } => Vec::new(),
        Phase::Ended { status: PlanStatus::Failed, .. } => [cancel()].into_iter().chain(roll_back()).collect(),
        Phase::Ending { undo: false } | Phase::Ended { .. } => roll_back().into_iter().collect(),
    }
}

fn is_open(task: &PlanTask) -> bool {
    !task.status.is_final() || matches!(task.status, TaskStatus::Failed | TaskStatus::RollbackFailed)
}

fn can_be_undone(task: &PlanTask) -> bool {
    task.started_at.is_some() && !matches!(task.status, TaskStatus::RolledBack | TaskStatus::RollingBack)
}
