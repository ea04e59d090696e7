//! One line of the change feed.

use super::Event;
use serde::{Deserialize, Serialize};
use steadfast_kernel::{self as kernel, EntityId, Entry, LetterAbout, LetterHome, LetterId};
use utoipa::ToSchema;

/// Something that happened to an entity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What kind of entity: `run`, `key` or `letter`.
    #[schema(examples("run"))]
    pub kind: String,
    /// Its id.
    pub id: String,
    /// What happened.
    pub event: Event,
}

impl Change {
    /// The kinds that a feed can be asked for.
    pub const KINDS: [&str; 6] = ["run", "plan", "task", "lock", "key", "letter"];

    /// What the feed says of an entry; nothing if it is about something that is not public.
    pub fn of(entity: &EntityId, entry: &Entry) -> Option<Self> {
        let (kind, id) = match entity {
            EntityId::Run(run) => ("run", run.to_string()),
            EntityId::Key(key) if !is_of_letter(&entry.event) => ("key", key.to_string()),
            EntityId::Letters(_) | EntityId::Key(_) => {
                let seq = match &entry.event {
                    kernel::Event::LetterRedriven { letter, .. } | kernel::Event::LetterDropped { letter, .. } => *letter,
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
            },
            _ => id.clone(),
        };
        Some(Change { kind: kind.into(), id, event: Event::of(&about, entry) })
    }
}

/// A key keeps the letters of its own expiries.
fn is_of_letter(event: &kernel::Event) -> bool {
    use kernel::Event as E;
    matches!(event, E::LetterAdded(_) | E::LetterRedriven { .. } | E::LetterDropped { .. })
}
