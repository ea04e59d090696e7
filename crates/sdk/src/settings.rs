//! What goes for all runs of a workflow.

use steadfast_kernel::Recovery;

/// What goes for all runs of a workflow that are started here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    recovery: Recovery,
    slots: Option<u32>,
}

impl Settings {
    pub(crate) fn recovery(self) -> Recovery {
        self.recovery
    }

    pub(crate) fn slots(self) -> Option<u32> {
        self.slots
    }
}

impl Settings {
    /// Nothing special.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many runs of the workflow may be under way at once. Others wait in line, first come first served, with the status `READY`.
    pub fn limit(mut self, slots: u32) -> Self {
        self.slots = Some(slots);
        self
    }

    /// A run whose process died with an attempt in flight or in backoff is `INTERRUPTED` and never goes on by itself: a person retries or cancels it.
    pub fn manual_recovery(mut self) -> Self {
        self.recovery = Recovery::Manual;
        self
    }
}
