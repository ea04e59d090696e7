//! A handle that does not keep an engine running, for what works for the engine itself.

use super::{Engine, Parts, Ways};
use std::sync::{Arc, Weak};

/// An engine, for as long as somebody else has it.
#[derive(Clone)]
pub struct WeakEngine {
    ways: Weak<Ways>,
    parts: Arc<Parts>,
}

impl WeakEngine {
    /// Of that engine.
    pub fn of(engine: &Engine) -> Self {
        WeakEngine { ways: Arc::downgrade(&engine.ways), parts: Arc::clone(&engine.parts) }
    }

    /// The engine, if somebody else still has it.
    pub fn upgrade(&self) -> Option<Engine> {
        Some(Engine { ways: self.ways.upgrade()?, parts: Arc::clone(&self.parts) })
    }
}
