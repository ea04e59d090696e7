//! Messages between processes: calls and tells that survive a bad network, from inside of workflows and to them.
//!
//! ```
//! use steadfast::messages::{Node, memory};
//! use steadfast::{Ctx, Engine, Failure, workflow};
//! # use std::sync::Arc;
//!
//! #[workflow]
//! async fn transfer(ctx: Ctx, amount: u64) -> Result<String, Failure> {
//!     ctx.step("book", || async move { Ok::<_, Failure>(format!("booked {amount}")) }).await
//! }
//!
//! #[workflow]
//! async fn order(ctx: Ctx, amount: u64) -> Result<String, Failure> {
//!     ctx.call("bank", "transfer", &amount).await // a step: recorded, retried, with the same request id each time
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let network = memory::Memory::new(1);
//! // In the bank: a route that is a workflow. Each request is a run, so it is executed once, also if the bank dies in the middle of it.
//! let bank = Engine::in_memory().register(transfer).messages(Node::builder().name("bank")).answer("transfer").start().await?;
//! # let node = bank.node().unwrap().clone();
//! # let mut listener = network.listen("bank");
//! # tokio::spawn(async move { while let Some(link) = listener.accept().await { drop(node.accept(link).await) } });
//!
//! // In the shop.
//! let wire = Arc::new(network.wire_of("shop"));
//! let shop = Engine::in_memory().register(order).messages(Node::builder().name("shop").wire(wire)).start().await?;
//! let receipt: String = shop.start("order", &7).await?.result().await?;
//! assert_eq!(receipt, "booked 7");
//! # Ok(()) }
//! ```

mod ctx;
mod durable;
mod letters;

pub(crate) use ctx::step_name;
pub use durable::durable_route;
pub use letters::Post;
pub use steadfast_messaging::wire::memory;
pub use steadfast_messaging::{
    Builder as NodeBuilder, Call, Caller, Connected, Direction, Incoming, Letter, LetterKind, Letters, Limits, MemoryLetters, Node,
    NodeCounts, Opening, Peer, Route, Stream, StreamReceiver, StreamSender, Tell, Totals, envelope, inbox, wire,
};

use crate::means::Means;
use crate::{Clock, Engine, EngineBuilder, Error};
use std::sync::Arc;
use steadfast_kernel::WorkflowName;
use steadfast_runtime as runtime;

/// What routes of Steadfast itself begin with.
const RESERVED: &str = "steadfast.";

/// What an engine has to do with messages.
pub(crate) struct Messages {
    node: NodeBuilder,
    /// Routes, and the workflows that answer there.
    answers: Vec<(String, WorkflowName)>,
    /// Workers may come.
    workers: bool,
}

impl EngineBuilder {
    /// Gives the engine a node: its workflows can call others, and others can call them. Give it a name, so that its requests are known again after a restart.
    pub fn messages(mut self, node: NodeBuilder) -> Self {
        let (answers, workers) = self.messages.take().map(|messages| (messages.answers, messages.workers)).unwrap_or_default();
        self.messages = Some(Messages { node, answers, workers });
        self
    }

    /// Has [workers](crate::worker) host runs whose code is not here; comes after [`messages`](Self::messages). Whoever may connect to the node may then be given runs, with all that is in
    /// them.
    pub fn workers(mut self) -> Self {
        match &mut self.messages {
            Some(messages) => messages.workers = true,
            None => self.wrong = Some(runtime::Error::InvalidSetting("workers need a node to come to: call `messages` first".into())),
        }
        self
    }

    /// Names a workflow that workers bring: its runs can be started before the first of these workers has come, and wait for it. A part of [`Config`](crate::Config), so it comes after
    /// [`config`](Self::config).
    pub fn brought_by_workers(mut self, workflow: &str) -> Self {
        match WorkflowName::new(workflow) {
            Ok(workflow) => drop(self.inner.config.workers.workflows.insert(workflow)),
            Err(invalid) => self.wrong = Some(invalid.into()),
        }
        self
    }

    /// Has the workflow of that name answer calls and tells to the route of the same name; comes after [`messages`](Self::messages).
    ///
    /// Each request is a run whose id follows from who sent it and from its request id: it is executed once, whatever happens to either process, for as long as the run is
    /// [kept](Self::retention). A call is answered with the run's result, a tell is taken when the run is durable.
    pub fn answer(self, workflow: &str) -> Self {
        self.answer_at(workflow, workflow)
    }

    /// The same, at a route of another name.
    pub fn answer_at(mut self, route: &str, workflow: &str) -> Self {
        if route.starts_with(RESERVED) {
            self.wrong = Some(runtime::Error::InvalidSetting(format!("route {route} cannot be answered: {RESERVED} is reserved")));
            return self;
        }
        match (WorkflowName::new(workflow), &mut self.messages) {
            (Ok(workflow), Some(messages)) => messages.answers.push((route.to_owned(), workflow)),
            (Ok(_), None) => {
                let why = format!("route {route} cannot be answered without a node: call `messages` first");
                self.wrong = Some(runtime::Error::InvalidSetting(why));
            }
            (Err(invalid), _) => self.wrong = Some(invalid.into()),
        }
        self
    }
}

impl Engine {
    /// Its node, if it has one.
    pub fn node(&self) -> Option<&Node> {
        self.means.node.get()
    }
}

impl Messages {
    /// Starts an engine with its node.
    pub(crate) async fn start(self, mut engine: runtime::Builder, clock: Arc<dyn Clock>, means: &Means) -> Result<Engine, Error> {
        let unusable = |failure: steadfast_kernel::Failure| runtime::Error::InvalidSetting(format!("the node cannot be made: {failure}"));
        let post = Post::default();
        let node = self.node.letters(Arc::new(post.clone())).build().map_err(unusable)?;
        let _it_is_the_first = means.node.set(node.clone());
        engine.redeliver = engine.redeliver.or_else(|| Some(Arc::new(post.clone())));
        let inner = engine.start().await?;
        post.connect(&inner, &node);
        if self.workers {
            crate::worker::take_workers(&node, &inner);
        }
        for (route, workflow) in self.answers {
            node.route_by(&route, durable_route(&inner, workflow));
        }
        Ok(Engine { inner, clock, means: means.clone() })
    }
}
