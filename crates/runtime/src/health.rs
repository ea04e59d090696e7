//! Whether the store can be written, for those who watch over an engine.

use std::sync::Arc;
use steadfast_kernel::Timestamp;
use steadfast_store::Error;

/// How an engine and its store are.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Health {
    /// What is asked for is written.
    #[default]
    Well,
    /// The store cannot write. Whoever wants to change something is turned away, whoever only looks is answered, and the store is asked until it
    /// writes again.
    Healing {
        /// Since when.
        since: Timestamp,
        /// What the store said; its [`code`](Error::code) has a page that says what to do.
        error: Arc<Error>,
    },
    /// The store cannot be used by this process any more.
    Over {
        /// Why.
        error: Arc<Error>,
    },
}

impl Health {
    /// True if what is asked for is written.
    pub fn is_well(&self) -> bool {
        matches!(self, Health::Well)
    }
}
