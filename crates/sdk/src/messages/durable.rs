//! Routes that are workflows: a request is a run, and so it is executed once, whatever happens to the process.
//!
//! Tested by `crates/crash-test/tests/it/messages.rs`.

use super::{Incoming, Route};
use bytes::Bytes;
use std::time::Duration;
use steadfast_kernel::{Class, Code, Failure, Payload, Refusal, WorkflowName, random};
use steadfast_messaging::envelope::VERSION;
use steadfast_runtime::{Engine, Error, Start, WeakEngine};

/// How long a call may wait for its run, if its caller does.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How many requests of a route may wait for the ends of their runs. What they do is bounded by the engine.
const SIDE_BY_SIDE: usize = 16_384;

/// Answers calls and tells with runs of that workflow, for a node that is not the engine's own: [`EngineBuilder::answer`](crate::EngineBuilder::answer) does it for that
/// one. The route does not keep the engine alive.
///
/// # Durability
/// Each request is a run whose id follows from who sent it and from its request id: it is executed once for as long as the run is kept. A call is answered with the run's
/// result, a tell is taken when the run is durable.
pub fn durable_route(engine: &Engine, workflow: WorkflowName) -> Route {
    let engine = WeakEngine::of(engine);
    let handler = move |incoming: Incoming| answer(engine.clone(), workflow.clone(), incoming);
    Route::new(handler).taken_when_done().side_by_side(SIDE_BY_SIDE).timeout(TIMEOUT)
}

async fn answer(engine: WeakEngine, workflow: WorkflowName, incoming: Incoming) -> Result<Bytes, Failure> {
    incoming.json::<serde::de::IgnoredAny>()?;
    let stopped = || Failure::transient("the engine has stopped here");
    let engine = engine.upgrade().ok_or_else(stopped)?;
    let start = Start {
        workflow: workflow.to_string(),
        input: Payload::json(incoming.payload.clone()),
        id: Some(run_id(&incoming)),
        deadline: None,
        tenant: None,
        limits: Vec::new(),
    };
    let (run, _) = engine.start(start).await.map_err(|error| failure(&error))?;
    if !incoming.wants_answer {
        return Ok(Bytes::new());
    }
    let ended = engine.ended(&run).await.map_err(|error| failure(&error))?;
    match ended.outcome {
        Ok(output) => Ok(output.bytes),
        Err(failure) => Err(failure.class(Class::Permanent)), // it stays so, however often it is asked for; what is poison in it is a letter of the run
    }
}

/// The run of a request: the same for the same request of the same caller, and for no other.
fn run_id(incoming: &Incoming) -> String {
    let (scope, id) = (&incoming.caller.scope, &incoming.id);
    let text = format!("{VERSION}/{}/{}/{scope}/{id}/{}", scope.len(), id.len(), incoming.route);
    format!("message/{}", random::digest(&text))
}

fn failure(error: &Error) -> Failure {
    let failure = match error {
        Error::Stopped => Failure::transient(error),
        Error::Refused(Refusal::RunExists { .. }) => {
            Failure::new(Code::InvalidArgument, "another request of that id came before: an id stands for one request")
        }
        Error::UnknownWorkflow { .. } => Failure::new(Code::NotFound, error),
        Error::Busy { .. } => Failure::new(Code::ResourceExhausted, error),
        error if error.is_retryable() => Failure::transient(error),
        error => Failure::new(Code::FailedPrecondition, error),
    };
    match error.retry_after() {
        Some(after) => failure.retry_after(after),
        None => failure,
    }
}
