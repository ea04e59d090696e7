//! A handle that does not keep an engine running, for what the engine itself does.

use super::{Engine, Tasks};
use crate::callbacks::{Caller, Handlers};
use crate::chance::Chance;
use crate::clock::Clock;
use crate::config::Config;
use crate::feed::Followers;
use crate::health::Health;
use crate::host::Registry;
use crate::shard::{Control, Request};
use std::sync::{Arc, Weak};
use steadfast_store::Store;
use tokio::sync::{mpsc, watch};

/// An engine, for as long as there is one.
#[derive(Clone)]
pub(crate) struct WeakEngine {
    control: mpsc::WeakUnboundedSender<Control>,
    requests: mpsc::WeakSender<Request>,
    store: Weak<dyn Store>,
    registry: Registry,
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    chance: Arc<Chance>,
    health: watch::Receiver<Health>,
    followers: Weak<Followers>,
    handlers: Handlers,
    caller: Option<Arc<dyn Caller>>,
    tasks: Weak<tokio::sync::Mutex<Option<tokio::task::JoinHandle<()>>>>,
}

impl WeakEngine {
    pub(crate) fn of(engine: &Engine) -> Self {
        WeakEngine {
            control: engine.control.downgrade(),
            requests: engine.requests.downgrade(),
            store: Weak::clone(&engine.store),
            registry: engine.registry.clone(),
            config: Arc::clone(&engine.config),
            clock: Arc::clone(&engine.clock),
            chance: Arc::clone(&engine.chance),
            health: engine.health.clone(),
            followers: Weak::clone(&engine.followers),
            handlers: engine.handlers.clone(),
            caller: engine.caller.clone(),
            tasks: Arc::downgrade(&engine.tasks),
        }
    }

    /// The engine, if somebody else still has it.
    pub(crate) fn upgrade(&self) -> Option<Engine> {
        let tasks: Tasks = self.tasks.upgrade()?;
        Some(Engine {
            control: self.control.upgrade()?,
            requests: self.requests.upgrade()?,
            store: Weak::clone(&self.store),
            registry: self.registry.clone(),
            config: Arc::clone(&self.config),
            clock: Arc::clone(&self.clock),
            chance: Arc::clone(&self.chance),
            health: self.health.clone(),
            followers: Weak::clone(&self.followers),
            handlers: self.handlers.clone(),
            caller: self.caller.clone(),
            tasks,
        })
    }
}
