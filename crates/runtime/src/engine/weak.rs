//! A handle that does not keep an engine running, for what works for the engine itself.

use super::{Engine, Parts};
use crate::shard::{Control, Request};
use std::sync::Arc;
use tokio::sync::mpsc;

/// An engine, for as long as somebody else has it.
#[derive(Clone)]
pub struct WeakEngine {
    control: mpsc::WeakUnboundedSender<Control>,
    requests: mpsc::WeakSender<Request>,
    parts: Arc<Parts>,
}

impl WeakEngine {
    /// Of that engine.
    pub fn of(engine: &Engine) -> Self {
        WeakEngine { control: engine.control.downgrade(), requests: engine.requests.downgrade(), parts: Arc::clone(&engine.parts) }
    }

    /// The engine, if somebody else still has it.
    pub fn upgrade(&self) -> Option<Engine> {
        Some(Engine { control: self.control.upgrade()?, requests: self.requests.upgrade()?, parts: Arc::clone(&self.parts) })
    }
}
