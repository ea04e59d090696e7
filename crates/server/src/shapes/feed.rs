//! One line of the change feed.

use super::Event;
use serde::{Deserialize, Serialize};
use steadfast_kernel::{self as kernel, EntityId, LetterAbout, LetterHome, LetterId};
use steadfast_runtime::Fed;
use utoipa::ToSchema;

/// Something that happened to an entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Change)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What kind of entity: `run`, `plan`, `task`, `lock`, `key` or `letter`.
    #[schema(examples("run"))]
    pub kind: String,
    /// Its id; that of a lock is its tenant.
    pub id: String,
    /// What happened.
    pub event: Event,
}

impl Change {
    /// The kinds that a feed can be asked for.
    pub const KINDS: [&str; 6] = ["run", "plan", "task", "lock", "key", "letter"];

    /// What the feed says of an entry; nothing if it is about something that is not public.
    pub fn of(fed: &Fed) -> Option<Self> {
        let (entity, entry) = (&fed.entity, &fed.entry);
        let (kind, id) = match entity {
            EntityId::Run(run) if fed.plan.is_some() => ("task", run.to_string()),
            EntityId::Run(run) => ("run", run.to_string()),
            EntityId::Plan(plan) => ("plan", plan.to_string()),
            EntityId::Lock(tenant) => ("lock", tenant.to_string()),
            EntityId::Key(key) if !is_of_letter(&entry.event) => ("key", key.to_string()),
            EntityId::Letters(_) | EntityId::Key(_) | EntityId::Route(_) => {
                let seq = match &entry.event {
                    kernel::Event::LetterRedriven { letter, .. }
                    | kernel::Event::LetterDropped { letter, .. }
                    | kernel::Event::LetterFailed { letter, .. } => *letter,
                    _ => entry.seq,
                };
                ("letter", LetterId { home: LetterHome::of(entity)?, seq }.to_string())
            }
            EntityId::Limit(_) => return None,
        };
        let about = match &entry.event {
            kernel::Event::LetterAdded(letter) => match &letter.about {
                LetterAbout::Step { run, .. } => run.to_string(),
                LetterAbout::Expiry { key, .. } => key.to_string(),
                LetterAbout::Message { route, .. } => route.to_string(),
            },
            _ => id.clone(),
        };
        let event = Event { event_type: Self::event_type(fed).into(), ..Event::of(&about, entry) };
        Some(Change { kind: kind.into(), id, event })
    }

    /// The type under which the feed tells of it. What happens to a task has names of its own where it is what happens to every run.
    pub fn event_type(fed: &Fed) -> &'static str {
        use kernel::Event as E;
        if fed.plan.is_none() {
            return fed.entry.event.kind();
        }
        match &fed.entry.event {
            E::RunStarted { .. } => "TASK_CREATED",
            E::RunPaused { .. } => "TASK_PAUSED",
            E::RunResumed { .. } => "TASK_RESUMED",
            E::RunInterrupted => "TASK_INTERRUPTED",
            E::RunCompleted { .. } => "TASK_COMPLETED",
            E::RunFailed { .. } if fed.rolled_back => "TASK_ROLLBACK_FAILED",
            E::RunFailed { .. } => "TASK_FAILED",
            E::RunCancelled if fed.rolled_back => "TASK_ROLLED_BACK",
            E::RunCancelled => "TASK_CANCELLED",
            E::RunRetried(_) => "TASK_RETRY_STARTED",
            E::RunCancelRequested { undo: true, .. } => "TASK_ROLLING_BACK", // what follows it, RUN_COMPENSATING, says it a second time
            E::ProgressNoted { .. } | E::StepHeartbeat { .. } => "TASK_PROGRESS",
            other => other.kind(),
        }
    }
}

/// A key keeps the letters of its own expiries.
fn is_of_letter(event: &kernel::Event) -> bool {
    use kernel::Event as E;
    matches!(event, E::LetterAdded(_) | E::LetterRedriven { .. } | E::LetterDropped { .. })
}
