//! The handlers of this process for the expiry of keys, by what the names of the keys begin with.
//!
//! Tested by `crates/sdk/tests/it/keys/handlers.rs`.

use super::Call;
use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_kernel::Failure;

/// What a handler is told.
pub type Expired = Call;

/// Code that is told of expiries. It is told again until it has returned `Ok`, so it may be told more than once.
pub type Handler = Arc<dyn Fn(Expired) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>;

/// The handlers of this process. Clones are the same, and there may be more while the engine runs.
#[derive(Clone, Default)]
pub struct Handlers(Arc<RwLock<BTreeMap<String, Handler>>>);

impl Handlers {
    /// Adds a handler for keys whose names begin so, or replaces the one that there was.
    pub fn insert(&self, prefix: &str, handler: Handler) {
        self.0.write().insert(prefix.into(), handler);
    }

    /// The handler for that key, and its prefix: the longest that fits.
    pub(crate) fn of(&self, key: &str) -> Option<(String, Handler)> {
        let handlers = self.0.read();
        let fits = handlers.iter().filter(|(prefix, _)| key.starts_with(prefix.as_str()));
        fits.max_by_key(|(prefix, _)| prefix.len())
            .map(|(prefix, handler)| (prefix.clone(), Arc::clone(handler)))
    }

    /// Whether there is one for that key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.read().keys().any(|prefix| key.starts_with(prefix.as_str()))
    }
}
