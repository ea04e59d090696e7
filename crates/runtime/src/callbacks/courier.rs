//! One attempt to tell of an end.
//!
//! Tested by `crates/sdk/tests/it/keys/handlers.rs`.

use super::{Call, Callbacks, Caller, Errand, Handlers, Lane};
use crate::clock::Clock;
use crate::engine::WeakEngine;
use crate::error::Error;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use steadfast_kernel::key::Below;
use steadfast_kernel::{Callback, Class, Code, Failure, KeyName, Payload, RunId, Target, WorkflowName};
use steadfast_store::CallbackRow;
use tokio::task::JoinHandle;

/// Who makes attempts.
#[derive(Clone)]
pub(crate) struct Courier {
    pub(crate) engine: WeakEngine,
    pub(crate) handlers: Handlers,
    pub(crate) caller: Option<Arc<dyn Caller>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Callbacks,
}

/// An attempt under way, and what comes of it: the run, if one was started. It is called off when this is dropped.
pub(crate) struct Attempting(JoinHandle<Result<Option<RunId>, Failure>>);

impl Drop for Attempting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Courier {
    /// The lane of an errand: keys below a directory have one of their own, so that they do not wait for whoever is told of the directory.
    pub(crate) fn lane(&self, key: &KeyName, callback: &Callback, walked: bool) -> Lane {
        match &callback.target {
            Some(target) if callback.below.is_none() || walked => self.lane_to(key, target),
            _ => Lane::Below,
        }
    }

    pub(crate) fn lane_to(&self, key: &KeyName, target: &Target) -> Lane {
        match target {
            Target::Url(url) => Lane::Target(self.caller.as_ref().map_or_else(|| url.clone(), |caller| caller.target(url))),
            Target::StartRun { .. } => Lane::Runs,
            Target::Handler => self.handlers.of(key.as_str()).map_or(Lane::NoHandler, |(prefix, _)| Lane::Handler(prefix)),
        }
    }

    /// The lane of an end that is known by its row.
    pub(crate) fn lane_of(&self, row: &CallbackRow) -> Lane {
        match row.target.as_str() {
            target if target.starts_with("keys below") => Lane::Below,
            "handler" => self.lane_to(&row.key, &Target::Handler),
            target if target.starts_with("run ") => Lane::Runs,
            url => self.lane_to(&row.key, &Target::Url(url.into())),
        }
    }

    /// Ends the keys below a directory, however many there are.
    pub(crate) fn walk(&self, key: &KeyName, callback: &Callback) -> BoxFuture<'static, Result<(), Failure>> {
        let (engine, directory, ended_at) = (self.engine.clone(), key.clone(), callback.ended_at);
        let deleted = callback.below == Some(Below::Delete);
        async move {
            let engine = engine.upgrade().ok_or_else(stopping)?;
            engine.end_below(&directory, ended_at, deleted).await.map_err(|error| failure(&error))
        }
        .boxed()
    }

    /// Makes an attempt, beside everything else, for as long as one may take.
    pub(crate) fn attempt(&self, key: &KeyName, callback: &Callback) -> BoxFuture<'static, Result<Option<RunId>, Failure>> {
        let (clock, timeout) = (Arc::clone(&self.clock), self.settings.attempt_timeout);
        let telling = self.tell(key, callback);
        async move {
            let mut attempting = Attempting(tokio::spawn(telling));
            tokio::select! {
                biased;
                outcome = &mut attempting.0 => outcome.unwrap_or_else(|_| Err(Failure::transient("the handler has panicked"))),
                () = clock.sleep(timeout) => {
                    let text = format!("there was no answer within {timeout:?}");
                    Err(Failure::new(Code::DeadlineExceeded, text))
                }
            }
        }
        .boxed()
    }

    fn tell(&self, key: &KeyName, callback: &Callback) -> BoxFuture<'static, Result<Option<RunId>, Failure>> {
        let call = Call {
            key: key.clone(),
            revision: callback.revision,
            value: callback.value.clone(),
            owner: callback.owner.clone(),
            expired_at: callback.ended_at,
            attempt: callback.attempt,
        };
        let no_run = |outcome: Result<(), Failure>| outcome.map(|()| None);
        match &callback.target {
            None => std::future::ready(Ok(None)).boxed(),
            Some(Target::Url(url)) => match &self.caller {
                Some(caller) => caller.call(url, call).map(no_run).boxed(),
                None => fail(Failure::transient("this process cannot call addresses")),
            },
            Some(Target::StartRun { workflow, input }) => start(self.engine.clone(), call, workflow.clone(), input.clone()).boxed(),
            Some(Target::Handler) => match self.handlers.of(key.as_str()) {
                Some((_, handler)) => async move { handler(call).await.map(|()| None) }.boxed(),
                None => fail(Failure::transient("this process has no handler for it any more")),
            },
        }
    }
}

fn fail(failure: Failure) -> BoxFuture<'static, Result<Option<RunId>, Failure>> {
    std::future::ready(Err(failure)).boxed()
}

/// Starts the run of an expiry, or finds it: its id follows from the key and the revision.
async fn start(engine: WeakEngine, call: Call, workflow: WorkflowName, input: Payload) -> Result<Option<RunId>, Failure> {
    let engine = engine.upgrade().ok_or_else(stopping)?;
    let start = crate::Start {
        workflow: workflow.to_string(),
        input,
        id: Some(run_id(&call.key, call.revision)),
        deadline: None,
        tenant: None,
        limits: Vec::new(),
    };
    let (run, _) = engine.start(start).await.map_err(|error| failure(&error))?;
    Ok(Some(run))
}

/// `expired/KEY/REVISION`, which tells people where it comes from; a name that is too long for that, or has what ids of runs do not have, has its digest instead of the rest.
fn run_id(key: &KeyName, revision: u64) -> String {
    let plain = format!("expired/{key}/{revision}");
    match RunId::new(&plain) {
        Ok(_) => plain,
        Err(_) => {
            let digest = steadfast_kernel::random::digest(key.as_str());
            let name: String = key.as_str().chars().take(48).map(|c| if c == ':' { '-' } else { c }).collect();
            format!("expired/{}/{digest}/{revision}", name.trim_end_matches(['/', '.']))
        }
    }
}

fn stopping() -> Failure {
    Failure::transient("the engine is stopping")
}

/// What may pass is tried again; what is wrong with the request is told to a person, after the attempts are used up: the code may only be missing here and now.
fn failure(error: &Error) -> Failure {
    let code = if error.is_retryable() { Code::Unavailable } else { Code::FailedPrecondition };
    Failure::new(code, error).class(Class::Transient)
}

impl Errand {
    pub(crate) fn of(key: &KeyName, callback: &Callback) -> Self {
        Errand {
            key: key.clone(),
            revision: callback.revision,
            attempt: callback.attempt,
            callback: Some(Box::new(callback.clone())),
            walked: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_an_expiry_has_an_id_of_its_own() {
        let id = |key: &str, revision| run_id(&KeyName::new(key).unwrap(), revision);
        assert_eq!(id("session/42", 7), "expired/session/42/7");
        let long = "a".repeat(128);
        for key in ["a:b", "a/b:c", "x:", long.as_str()] {
            let id = id(key, u64::MAX);
            assert!(RunId::new(&id).is_ok(), "{key} gives {id}");
        }
        assert_ne!(id("a:b", 1), id("a-b", 1));
        assert_ne!(id("a:b", 1), id("a:c", 1));
    }
}
