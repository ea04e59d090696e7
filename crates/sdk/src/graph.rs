//! Steps that come after other steps: each starts the moment its own predecessors are done.

use crate::workflow::{decode, encode};
use crate::{Code, Ctx, Failure, Policy};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;
use steadfast_kernel::Payload;

/// Steps and what each of them comes after.
///
/// ```
/// use steadfast::{Ctx, Failure, Graph, workflow};
///
/// #[workflow]
/// async fn ship(ctx: Ctx, order: String) -> Result<String, Failure> {
///     let done = ctx
///         .graph(
///             Graph::new()
///                 .step("reserve", |_| async { Ok::<_, Failure>(7_u32) })
///                 .step("charge", |_| async { Ok::<_, Failure>(order.clone()) })
///                 .step("send", |done| async move { Ok::<_, Failure>(format!("{} {}", done.get::<String>("charge")?, done.get::<u32>("reserve")?)) })
///                 .after(["reserve", "charge"]),
///         )
///         .await?;
///     done.get("send")
/// }
/// ```
#[must_use = "a graph does nothing until it is given to ctx.graph"]
#[derive(Default)]
pub struct Graph<'a> {
    nodes: Vec<Node<'a>>,
    wrong: Option<GraphError>,
}

struct Node<'a> {
    name: String,
    after: Vec<String>,
    policy: Policy,
    attempt: Box<dyn FnMut(Outputs) -> BoxFuture<'a, Result<Payload, Failure>> + Send + 'a>,
}

/// A graph that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Two steps have the same name.
    #[error("two steps of the graph are named {0:?}")]
    Twice(String),
    /// A step comes after one that is not there.
    #[error("step {step:?} comes after {after:?}, but there is no such step; there are: {}", known.join(", "))]
    Unknown {
        /// The step.
        step: String,
        /// What it comes after.
        after: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Steps wait for each other.
    #[error("these steps of the graph wait for each other: {}", .0.join(", "))]
    Cycle(Vec<String>),
    /// There is nothing to say it of.
    #[error("{0} was called before the first step")]
    NoStep(&'static str),
}

impl<'a> Graph<'a> {
    /// A graph without steps.
    pub fn new() -> Self {
        Graph::default()
    }

    /// Adds a step. `attempt` is given what the steps before it returned.
    pub fn step<T, E, F, Fut>(mut self, name: &str, mut attempt: F) -> Self
    where
        T: Serialize,
        E: Into<Failure>,
        F: FnMut(Outputs) -> Fut + Send + 'a,
        Fut: Future<Output = Result<T, E>> + Send + 'a,
    {
        let attempt = Box::new(move |outputs: Outputs| {
            attempt(outputs)
                .map(|outcome| outcome.map_err(Into::into).and_then(|output| encode(&output, "the step's output")))
                .boxed()
        });
        self.nodes.push(Node { name: name.into(), after: Vec::new(), policy: Policy::default(), attempt });
        self
    }

    /// Names the steps that the last one added comes after.
    pub fn after<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.last("after", |node| node.after.extend(names))
    }

    /// What follows a failed attempt of the last step added.
    pub fn retry(self, policy: Policy) -> Self {
        self.last("retry", |node| node.policy = policy)
    }

    /// How long one attempt of the last step added may take; comes after [`retry`](Graph::retry).
    pub fn timeout(self, timeout: Duration) -> Self {
        self.last("timeout", |node| node.policy = node.policy.clone().attempt_timeout(timeout))
    }

    fn last(mut self, what: &'static str, change: impl FnOnce(&mut Node<'a>)) -> Self {
        match self.nodes.last_mut() {
            Some(node) => change(node),
            None => self.wrong = Some(GraphError::NoStep(what)),
        }
        self
    }

    /// Checks that names are unique and known and that no steps wait for each other.
    ///
    /// # Errors
    /// [`GraphError`] says what is wrong.
    pub fn check(&self) -> Result<(), GraphError> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let mut names = BTreeSet::new();
        if let Some(node) = self.nodes.iter().find(|node| !names.insert(node.name.as_str())) {
            return Err(GraphError::Twice(node.name.clone()));
        }
        for node in &self.nodes {
            if let Some(after) = node.after.iter().find(|after| !names.contains(after.as_str())) {
                let known = names.into_iter().map(Into::into).collect();
                return Err(GraphError::Unknown { step: node.name.clone(), after: after.clone(), known });
            }
        }
        self.check_cycles()
    }

    /// Takes away what can start until nothing can: what is left waits for each other.
    fn check_cycles(&self) -> Result<(), GraphError> {
        let mut left: Vec<&Node<'_>> = self.nodes.iter().collect();
        let mut done = BTreeSet::new();
        loop {
            let before = left.len();
            let (ready, waiting): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|node| node.after.iter().all(|name| done.contains(name.as_str())));
            done.extend(ready.iter().map(|node| node.name.as_str()));
            left = waiting;
            if left.is_empty() {
                return Ok(());
            }
            if left.len() == before {
                return Err(GraphError::Cycle(left.iter().map(|node| node.name.clone()).collect()));
            }
        }
    }
}

/// What the steps of a graph have returned.
#[derive(Clone, Debug, Default)]
pub struct Outputs(BTreeMap<String, Payload>);

impl Outputs {
    /// What that step returned.
    ///
    /// # Errors
    /// If it is not done, which cannot be for a step that this one comes after, or returned something else than a `T`.
    pub fn get<T: DeserializeOwned>(&self, step: &str) -> Result<T, Failure> {
        match self.0.get(step) {
            Some(output) => decode(output, "the step's recorded output"),
            None => Err(Failure::permanent(format!("step {step:?} is not done here; add it to `after`")).code(Code::InvalidArgument)),
        }
    }
}

impl Ctx {
    /// Runs a graph: every step starts the moment its own predecessors are done, whatever its siblings wait for.
    ///
    /// Steps after one that failed never run; those that do not depend on it do, and when they are done the first failure is returned.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the graph cannot be (see [`Graph::check`]), before anything is run; otherwise the first failure of a step.
    pub async fn graph(&self, graph: Graph<'_>) -> Result<Outputs, Failure> {
        graph.check().map_err(|error| Failure::permanent(error).code(Code::InvalidArgument))?;
        self.branch("graph", run(self, graph.nodes)).await
    }
}

async fn run(ctx: &Ctx, nodes: Vec<Node<'_>>) -> Result<Outputs, Failure> {
    let (mut waiting, mut outputs, mut failure) = (nodes, Outputs::default(), None);
    let mut running = FuturesUnordered::new();
    loop {
        let (ready, not_yet): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|node| node.after.iter().all(|name| outputs.0.contains_key(name)));
        waiting = not_yet;
        running.extend(ready.into_iter().map(|node| start(ctx, node, outputs.clone())));
        match running.next().await {
            Some((name, Ok(output))) => drop(outputs.0.insert(name, output)),
            Some((_, Err(failed))) => drop(failure.get_or_insert(failed)),
            None => return failure.map_or(Ok(outputs), Err),
        }
    }
}

async fn start(ctx: &Ctx, mut node: Node<'_>, outputs: Outputs) -> (String, Result<Payload, Failure>) {
    let output = ctx.step_of_bytes(&node.name, node.policy, || (node.attempt)(outputs.clone())).await;
    (node.name, output)
}
