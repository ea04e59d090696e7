//! One step: whether it is carried out, how often, and how.

use super::{Play, decode, encode, recorded};
use crate::definition::{Foreach, Step, Undo};
use crate::kinds::{Approve, Attempt, Kind, Start};
use crate::template::{Scope, invalid, value};
use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Failure, Payload, Policy, RunId};
use steadfast_runtime::host::{CannotAsk, TimeLeft, UndoFn, Until};

/// The most items of one `foreach`.
const ITEMS_MAX: usize = 10_000;

impl Play {
    /// The output of a step, after all its attempts; nothing if it is skipped.
    pub(super) async fn carry_out(&self, index: usize, scope: Scope) -> Result<Option<Json>, Failure> {
        let step = self.step(index);
        let wanted = match is_wanted(step, &scope) {
            Ok(wanted) => wanted,
            Err(failure) => return Err(self.failed(step, failure).await),
        };
        if !wanted {
            self.context.skip(&step.name).map_err(|error| error.failure())?;
            return Ok(None);
        }
        let output = match &step.foreach {
            None => self.once(index, scope).await,
            Some(foreach) => self.for_each(index, foreach, scope).await,
        };
        output.map(Some)
    }

    async fn once(&self, index: usize, scope: Scope) -> Result<Json, Failure> {
        let step = self.step(index);
        match &*step.kind {
            Kind::Http(_) | Kind::Run(_) | Kind::Call(_) | Kind::Set(_) | Kind::Fail(_) => self.attempted(index, scope).await,
            Kind::Wait(_) | Kind::Approve(_) | Kind::Start(_) => {
                let awaited = match awaited(step, &scope) {
                    Ok(awaited) => awaited,
                    Err(failure) => return Err(self.failed(step, failure).await),
                };
                let branch = self.context.fork(&step.name).map_err(|error| error.failure())?;
                branch.only(self.waited(step, awaited)).await
            }
        }
    }

    /// A branch per item. Items that do not fail go on to their end when another one has failed, as steps do.
    async fn for_each(&self, index: usize, foreach: &Foreach, scope: Scope) -> Result<Json, Failure> {
        let step = self.step(index);
        let items = match items(step, foreach, &scope) {
            Ok(items) => items,
            Err(failure) => return Err(self.failed(step, failure).await),
        };
        let side_by_side = foreach.concurrency.unwrap_or(items.len()).max(1);
        let branch = self.context.fork(&step.name).map_err(|error| error.failure())?;
        branch.only(self.items(index, items, side_by_side, scope)).await
    }

    async fn items(&self, index: usize, items: Vec<Json>, side_by_side: usize, scope: Scope) -> Result<Json, Failure> {
        let independent = side_by_side >= items.len();
        let name = if independent { "all" } else { "some" }; // `all` is what the engine calls branches that do not depend on each other
        let fork = self.context.fork(name).map_err(|error| error.failure())?;
        let (mut outputs, mut failure) = (vec![Json::Null; items.len()], None);
        let branches = items.into_iter().enumerate().map(|(number, item)| {
            let scope = scope.clone().with("item", value(&item)).with("index", number);
            fork.branch(number, async move { (number, self.item(index, scope).await) })
        });
        let mut done = stream::iter(branches).buffer_unordered(side_by_side);
        while let Some((number, outcome)) = done.next().await {
            match outcome {
                Ok(output) => outputs[number] = output,
                Err(failed) => drop(failure.get_or_insert(failed)),
            }
        }
        failure.map_or(Ok(Json::Array(outputs)), Err)
    }

    async fn item(&self, index: usize, scope: Scope) -> Result<Json, Failure> {
        let step = self.step(index);
        match &*step.kind {
            Kind::Wait(_) | Kind::Approve(_) | Kind::Start(_) => match awaited(step, &scope) {
                Ok(awaited) => self.waited(step, awaited).await,
                Err(failure) => Err(self.failed(step, failure).await),
            },
            Kind::Http(_) | Kind::Run(_) | Kind::Call(_) | Kind::Set(_) | Kind::Fail(_) => self.attempted(index, scope).await,
        }
    }

    /// A step of the engine, with its attempts, its policy and its undo.
    async fn attempted(&self, index: usize, scope: Scope) -> Result<Json, Failure> {
        let step = self.step(index);
        let (play, kind, name, of_attempts) = (self.clone(), Arc::clone(&step.kind), step.name.clone(), scope.clone());
        let (_, timeout) = self.timing(&step.kind, step.timeout, step.not_repeatable);
        let attempts = Box::new(move || play.attempt(&name, &kind, timeout, of_attempts.clone()));
        let mut call = self.context.step(&step.name, attempts).map_err(|error| error.failure())?;
        call.set_policy(self.policy(&step.kind, &step.policy, step.timeout, step.not_repeatable));
        if step.not_repeatable {
            call.set_not_repeatable();
        }
        if let Some(undo) = &step.undo {
            let policy = self.policy(&undo.kind, &undo.policy, undo.timeout, false);
            call.set_undo(self.undo(step, undo, scope), policy);
        }
        decode(&call.await?, "the recorded output")
    }

    /// A stage that another instance has carried out: it is on record as a step that has returned nothing, and can be undone.
    pub(super) async fn recalled(&self, index: usize, scope: Scope) -> Result<(), Failure> {
        let step = self.step(index);
        let lost = |what: &str| Failure::permanent(format!("step {}: {what}", step.name));
        let unknown = lost("another instance has carried it out");
        let attempts = Box::new(move || ready(Err(unknown.clone())).boxed());
        let mut call = self.context.step(&step.name, attempts).map_err(|error| error.failure())?;
        if let Some(undo) = &step.undo {
            let policy = self.policy(&undo.kind, &undo.policy, undo.timeout, false);
            let by_hand = lost("what its items returned is known only to the instance that has carried it out: undo it by hand");
            let undone: UndoFn = match step.foreach {
                None => self.undo(step, undo, scope),
                Some(_) => Arc::new(move |_| ready(Err(by_hand.clone())).boxed()),
            };
            call.set_undo(undone, policy);
        }
        call.await.map(drop)
    }

    /// One attempt, as the engine knows it while it is being made.
    fn attempt(
        &self,
        step: &str,
        kind: &Arc<Kind>,
        timeout: Option<Duration>,
        scope: Scope,
    ) -> BoxFuture<'static, Result<Payload, Failure>> {
        let attempt = self.context.attempt().unwrap_or(1);
        let idempotency_key = self.context.idempotency_key().unwrap_or_default();
        let traceparent = self.context.span().map(|span| span.to_string());
        let usual = timeout.unwrap_or(self.tools.settings.call_timeout);
        let left = self.context.time_left(usual).unwrap_or(TimeLeft { attempt: usual, whole: usual });
        let of = Attempt { run: self.context.run_id().clone(), step: step.into(), attempt, idempotency_key, traceparent, timeout, left };
        let (kind, tools, scope) = (Arc::clone(kind), Arc::clone(&self.tools), scope.with("attempt", attempt));
        async move { Ok(encode(&kind.attempt(&scope, &of, &tools).await?)) }.boxed()
    }

    fn undo(&self, step: &Step, undo: &Undo, scope: Scope) -> UndoFn {
        let (play, kind, name) = (self.clone(), Arc::clone(&undo.kind), step.name.clone());
        let (_, timeout) = self.timing(&undo.kind, undo.timeout, false);
        Arc::new(move |output| match recorded(&output, "the recorded output") {
            Ok(output) => play
                .attempt(&name, &kind, timeout, scope.clone().with("output", output))
                .map(|done| done.map(drop))
                .boxed(),
            Err(failure) => ready(Err(failure)).boxed(),
        })
    }

    fn policy(&self, kind: &Kind, policy: &Policy, timeout: Option<Duration>, not_repeatable: bool) -> Policy {
        if !kind.is_retried() {
            return Policy::once();
        }
        match self.timing(kind, timeout, not_repeatable) {
            (Some(timeout), _) => policy.clone().attempt_timeout(timeout),
            (None, _) => policy.clone(),
        }
    }

    /// How long an attempt may take: by the engine's clock, and by that of the kind itself. A command ends itself, so that its whole group is gone
    /// before the next attempt; but one that is not repeatable is in doubt when it took too long, and only the engine can say that.
    fn timing(&self, kind: &Kind, timeout: Option<Duration>, not_repeatable: bool) -> (Option<Duration>, Option<Duration>) {
        match kind {
            Kind::Run(_) if !not_repeatable => (None, timeout),
            Kind::Http(_) => (timeout.or(Some(self.tools.settings.http_timeout)), None),
            Kind::Call(_) => (timeout.or(Some(self.tools.settings.call_timeout)), None),
            _ => (timeout, None),
        }
    }

    /// Records that a step cannot be begun: its one attempt fails with that. The failure on record is the one that counts.
    async fn failed(&self, step: &Step, failure: Failure) -> Failure {
        let of_attempt = failure.clone();
        let attempts = Box::new(move || ready(Err(of_attempt.clone())).boxed());
        match self.context.step(&step.name, attempts) {
            Ok(mut call) => {
                call.set_policy(Policy::once());
                call.await.err().unwrap_or(failure)
            }
            Err(error) => error.failure(),
        }
    }

    /// What is not attempted but waited for, in a branch of its own.
    async fn waited(&self, step: &Step, awaited: Awaited<'_>) -> Result<Json, Failure> {
        match awaited {
            Awaited::Time(until) => {
                self.context.sleep(until).map_err(cannot)?.await;
                Ok(Json::Null)
            }
            Awaited::Approval(approve) => self.approval(step, approve).await,
            Awaited::Run { start, input, id } => self.child(start, input, id).await,
        }
    }

    async fn approval(&self, step: &Step, approve: &Approve) -> Result<Json, Failure> {
        let mut call = self.context.approval(&step.name, approve.roles.clone()).map_err(cannot)?;
        if let Some(within) = approve.within {
            call.set_within(within);
        }
        decode(&call.await?, "the answer")
    }

    async fn child(&self, start: &Start, input: Json, id: Option<RunId>) -> Result<Json, Failure> {
        let mut child = self.context.start(&start.workflow, encode(&input)).map_err(cannot)?;
        (child.run, child.detached) = (id, !start.wait);
        let child = child.start()?;
        if !start.wait {
            return Ok(json!({ "runId": child.run_id().as_str() }));
        }
        decode(&child.await?, "the result of the run that was started")
    }
}

fn cannot(error: CannotAsk) -> Failure {
    error.failure()
}

fn is_wanted(step: &Step, scope: &Scope) -> Result<bool, Failure> {
    let Some(when) = &step.when else { return Ok(true) };
    match when.render(scope, &step.name, "when")? {
        Json::Bool(wanted) => Ok(wanted),
        _ => Err(invalid(&step.name, "when", "it gave neither true nor false")),
    }
}

fn items(step: &Step, foreach: &Foreach, scope: &Scope) -> Result<Vec<Json>, Failure> {
    match foreach.items.render(scope, &step.name, "foreach")? {
        Json::Array(items) if items.len() <= ITEMS_MAX => Ok(items),
        Json::Array(items) => {
            Err(invalid(&step.name, "foreach", &format!("it gave {} items, at most {ITEMS_MAX} are allowed", items.len())))
        }
        _ => Err(invalid(&step.name, "foreach", "it gave no list")),
    }
}

/// What a step waits for, once its templates are rendered.
enum Awaited<'s> {
    Time(Until),
    Approval(&'s Approve),
    Run { start: &'s Start, input: Json, id: Option<RunId> },
}

fn awaited<'s>(step: &'s Step, scope: &Scope) -> Result<Awaited<'s>, Failure> {
    match &*step.kind {
        Kind::Wait(wait) => Ok(Awaited::Time(wait.until(scope, &step.name)?)),
        Kind::Approve(approve) => Ok(Awaited::Approval(approve)),
        Kind::Start(start) => {
            let input = start.input.as_ref().map(|input| input.render(scope, &step.name, "start.input")).transpose()?;
            let id = start.id.as_ref().map(|id| id.text(scope, &step.name, "start.id")).transpose()?;
            let id = id
                .map(RunId::new)
                .transpose()
                .map_err(|invalid_id| invalid(&step.name, "start.id", invalid_id.why))?;
            Ok(Awaited::Run { start, input: input.unwrap_or_default(), id })
        }
        Kind::Http(_) | Kind::Run(_) | Kind::Call(_) | Kind::Set(_) | Kind::Fail(_) => {
            Err(invalid(&step.name, step.kind.name(), "it is not waited for"))
        }
    }
}
