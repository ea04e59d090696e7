//! What can be done about a tenant's task in the status that it has.

use super::show::Shown;
use crate::pages::deed::Deed;
use crate::pages::run::{self, quoted};
use crate::shapes::{Task, TaskStatus};
use maud::{Markup, html};
use serde::Deserialize;
use steadfast_kernel::Wait;

/// What a form can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verb {
    /// From the checkpoint.
    Retry,
    /// From the start.
    Restart,
    Pause,
    Resume,
    Cancel,
    Rollback,
    HandOver,
}

impl Verb {
    /// Whether it cannot be taken back.
    pub(super) fn is_grave(self) -> bool {
        matches!(self, Verb::Restart | Verb::Cancel | Verb::Rollback)
    }
}

/// What its status allows.
pub(super) fn deeds(shown: &Shown) -> Vec<Deed> {
    use TaskStatus as S;
    let task = &shown.task;
    let allowed: &[Verb] = match task.status {
        S::Pending | S::Running | S::Waiting if task.pause_requested => &[Verb::Resume, Verb::Cancel, Verb::Rollback],
        S::Waiting if shown.view.waits.iter().any(|wait| matches!(wait, Wait::Backoff { .. })) => {
            &[Verb::Retry, Verb::Pause, Verb::Cancel, Verb::Rollback]
        }
        S::Pending | S::Running | S::Waiting => &[Verb::Pause, Verb::Cancel, Verb::Rollback],
        S::Paused => &[Verb::Resume, Verb::Cancel, Verb::Rollback],
        S::Interrupted | S::Failed => &[Verb::Retry, Verb::Restart, Verb::Cancel, Verb::Rollback],
        S::Cancelled => &[Verb::Retry, Verb::Restart, Verb::Rollback],
        S::Completed => &[Verb::Rollback],
        S::RollbackFailed => &[Verb::Rollback, Verb::Cancel],
        S::RollingBack | S::RolledBack | S::HandedOver => &[],
    };
    let gives_up = matches!(task.status, S::Pending | S::Paused | S::Interrupted | S::Failed | S::Cancelled | S::RollbackFailed);
    let hand_over = (shown.shares && gives_up).then_some(Verb::HandOver);
    fitting(allowed.iter().copied().chain(hand_over), task)
}

/// What can be done here with a task of an instance that is gone, or that nobody has.
pub(super) fn elsewhere(task: &Task) -> Vec<Deed> {
    use TaskStatus as S;
    let allowed: &[Verb] = match task.status {
        _ if task.owner_lives == Some(true) => &[],
        S::Interrupted | S::Failed => &[Verb::Retry, Verb::Restart, Verb::Cancel, Verb::Rollback],
        S::Pending => &[Verb::Retry, Verb::Cancel],
        S::Cancelled | S::HandedOver => &[Verb::Retry],
        _ => &[],
    };
    fitting(allowed.iter().copied(), task)
}

fn fitting(verbs: impl Iterator<Item = Verb>, task: &Task) -> Vec<Deed> {
    let has_begun = task.started_at.is_some();
    let fits = |verb: &Verb| has_begun || !matches!(verb, Verb::Rollback | Verb::Restart);
    verbs.filter(fits).map(|verb| deed(verb, task)).collect()
}

fn deed(verb: Verb, task: &Task) -> Deed {
    let tenant = quoted(&task.tenant_id);
    let command = |verb: &str| format!("steadfast tenant {verb} {tenant} --reason '…'");
    let deed = match verb {
        Verb::Retry => {
            let (name, what) = match task.has_checkpoint {
                true => (
                    "Retry from checkpoint",
                    "The stages that are done stay done; it goes on with the one after them. It takes its turn, also while its plan is paused.",
                ),
                false => {
                    ("Retry", "It has no checkpoint, so it begins with its first stage. It takes its turn, also while its plan is paused.")
                }
            };
            Deed::new("retry", name, what, command("retry"))
        }
        Verb::Restart => {
            let what = "All stages are done again, also those that are done; the checkpoint is given up.";
            let deed = Deed::new("restart", "Retry from start", what, command("retry --from-start"));
            deed.grave("Yes, do all stages again".into())
        }
        Verb::Pause => {
            Deed::new("pause", "Pause", "It begins nothing new. A stage that is under way ends, and is recorded.", command("pause"))
        }
        Verb::Resume => Deed::new("resume", "Resume", "It goes on where it stands.", command("resume")),
        Verb::Cancel => {
            let what = "It ends at once, and gives its lock back. Nothing is undone.";
            Deed::new("cancel", "Cancel", what, command("cancel")).grave("Yes, call it off".into())
        }
        Verb::Rollback => {
            let what = "The stages that are done are undone, newest first.";
            let done = task.last_completed_stage_index.map_or(0, |last| last + 1);
            let sure =
                if done == 1 { "Yes, undo the stage that is done".into() } else { format!("Yes, undo the {done} stages that are done") };
            Deed::new("rollback", "Roll back", what, command("rollback")).grave(sure)
        }
        Verb::HandOver => {
            let what = "This instance gives it up. Nobody has it until somebody retries it on another instance, or on this one.";
            Deed::new("handover", "Hand over", what, command("handover"))
        }
    };
    Deed { about: vec![("task", task.task_id.clone())], ..deed }
}

/// How to answer what it asks people.
pub(super) fn asked(shown: &Shown) -> Markup {
    let acts = run::asked(&shown.view);
    html! {
        @if !acts.is_empty() {
            section.card aria-labelledby="asked" {
                h2 #asked { "What it asks" }
                ul.acts { @for (text, what) in acts { li { p { (what) } (run::command(&text)) } } }
            }
        }
    }
}
