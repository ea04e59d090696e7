//! What the process gives to all of its workflows.

#[cfg(feature = "messages")]
use parking_lot::RwLock;
#[cfg(feature = "messages")]
use std::sync::{Arc, OnceLock};

/// What the process gives to all of its workflows. There when the engine has started, and so before any code runs.
#[derive(Clone, Default)]
pub(crate) struct Means {
    /// How others are called.
    #[cfg(feature = "messages")]
    pub(crate) node: Arc<OnceLock<steadfast_messaging::Node>>,
    /// On whose behalf: that of the server whose runs are hosted, so that a run that goes on at another worker makes the same requests.
    #[cfg(feature = "messages")]
    behalf: Arc<RwLock<String>>,
}

#[cfg(feature = "messages")]
impl Means {
    /// On whose behalf requests are sent; empty if it is the node's own.
    pub(crate) fn behalf(&self) -> String {
        self.behalf.read().clone()
    }

    /// Runs of that server are hosted. On whose behalf requests were sent before.
    pub(crate) fn set_behalf(&self, server: &str) -> String {
        std::mem::replace(&mut self.behalf.write(), server.to_owned())
    }
}
