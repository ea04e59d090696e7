//! Which dead letters a list shows, and where it goes on.

use crate::LetterRow;
use steadfast_kernel::{Class, Code, LetterAbout, LetterHome, LetterId, Timestamp};

/// What a dead letter is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterKind {
    /// A step of a run.
    Step,
    /// The expiry of a key, of which somebody is to be told.
    Expiry,
    /// A message.
    Message,
}

impl LetterKind {
    /// All of them.
    pub const ALL: [LetterKind; 3] = [LetterKind::Step, LetterKind::Expiry, LetterKind::Message];

    /// The public name.
    pub fn as_str(self) -> &'static str {
        match self {
            LetterKind::Step => "step",
            LetterKind::Expiry => "expiry",
            LetterKind::Message => "message",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        LetterKind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// What that letter is about.
    pub fn of(about: &LetterAbout) -> Self {
        match about {
            LetterAbout::Step { .. } => LetterKind::Step,
            LetterAbout::Expiry { .. } => LetterKind::Expiry,
            LetterAbout::Message { .. } => LetterKind::Message,
        }
    }
}

/// Which dead letters a list shows: those to which all of it applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetterFilter {
    /// Of that workflow, key or route.
    pub home: Option<LetterHome>,
    /// Of keys whose names begin so.
    pub key_prefix: Option<String>,
    /// About such a thing.
    pub kind: Option<LetterKind>,
    /// Of that tenant.
    pub tenant: Option<String>,
    /// With a failure of that class.
    pub class: Option<Class>,
    /// With a failure of that code.
    pub code: Option<Code>,
    /// There since that time, or later.
    pub since: Option<Timestamp>,
    /// There since before that time.
    pub until: Option<Timestamp>,
}

impl LetterFilter {
    /// Whether it lets that letter through. What a store answers must agree with this.
    pub fn lets_through(&self, row: &LetterRow) -> bool {
        let begins = |prefix: &str| matches!(&row.letter.home, LetterHome::Key(key) if key.as_str().starts_with(prefix));
        self.home.as_ref().is_none_or(|home| row.letter.home == *home)
            && self.key_prefix.as_deref().is_none_or(begins)
            && self.kind.is_none_or(|kind| LetterKind::of(&row.about) == kind)
            && self.tenant.as_ref().is_none_or(|tenant| row.tenant.as_ref() == Some(tenant))
            && self.class.is_none_or(|class| row.failure.class == class)
            && self.code.is_none_or(|code| row.failure.code == code)
            && self.since.is_none_or(|since| row.added_at >= since)
            && self.until.is_none_or(|until| row.added_at < until)
    }
}

/// The place of a dead letter in lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LetterCursor {
    /// When it arrived.
    pub added_at: Timestamp,
    /// Its id.
    pub letter: LetterId,
}

impl From<&LetterRow> for LetterCursor {
    fn from(row: &LetterRow) -> Self {
        LetterCursor { added_at: row.added_at, letter: row.letter.clone() }
    }
}
