//! Calls and tells inside of workflows: steps whose request id is the same for all attempts, also after a crash.

use super::{Node, Peer};
use crate::means::Means;
use crate::workflow::{decode, encode};
use crate::{Ctx, Step};
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Code, Failure, Payload, Policy, Timestamp};
use steadfast_messaging::{Sending, TIMEOUT, request_id};

/// How long one attempt may take, and all of them together: the other side may work on a request for as long as it may come again.
pub(crate) struct Time(Mutex<(Duration, Duration)>);

impl Time {
    fn of(policy: &Policy) -> Self {
        let time = Time(Mutex::new((TIMEOUT, TIMEOUT)));
        time.set(policy);
        time
    }

    pub(crate) fn set(&self, policy: &Policy) {
        let attempt = policy.attempt_timeout_for().unwrap_or(TIMEOUT);
        let deadline = policy.deadline_at(Timestamp::EPOCH).map(|at| at.saturating_since(Timestamp::EPOCH));
        let whole = deadline.unwrap_or_else(|| attempt.saturating_mul(policy.attempts_max())).max(attempt);
        *self.0.lock() = (attempt, whole);
    }

    fn get(&self) -> (Duration, Duration) {
        *self.0.lock()
    }
}

impl Ctx {
    /// Calls another process, as a step: the answer is recorded, a failed attempt is recorded and tried again by policy, and every attempt has the same request id, so that
    /// the other side executes the request once.
    ///
    /// There are three attempts of ten seconds each, about one and two seconds apart, within thirty seconds; [`retry`](Step::retry) and [`timeout`](Step::timeout) say otherwise. The
    /// step has the name of the route.
    ///
    /// # Errors
    /// The last failure, when no further attempt is made; a permanent one if the engine has no [node](crate::EngineBuilder::messages).
    pub fn call<'a, T>(&self, peer: impl Into<Peer>, route: &str, request: &(impl Serialize + ?Sized)) -> Step<'a, T>
    where
        T: Serialize + DeserializeOwned + 'a,
    {
        self.send(peer.into(), route, encode(request, "the request"), true)
    }

    /// Tells another process something, as a step that is done when the other side has taken it; otherwise as [`call`](Self::call).
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn tell<'a>(&self, peer: impl Into<Peer>, route: &str, request: &(impl Serialize + ?Sized)) -> Step<'a, ()> {
        self.send(peer.into(), route, encode(request, "the request"), false)
    }

    fn send<'a, T>(&self, peer: Peer, route: &str, request: Result<Payload, Failure>, is_call: bool) -> Step<'a, T>
    where
        T: Serialize + DeserializeOwned + 'a,
    {
        let policy = Policy::transient().deadline(TIMEOUT).attempt_timeout(TIMEOUT / 3);
        let time = Arc::new(Time::of(&policy));
        let outward = Outward { ctx: self.clone(), peer, route: route.to_owned(), request, is_call, time: Arc::clone(&time) };
        let attempts = Box::new(move || outward.clone().attempt().boxed());
        let mut step = Step::new(self.context().step(&step_name(route), attempts));
        step.time = Some(time);
        step.retry(policy)
    }
}

/// A request on its way out of a workflow.
#[derive(Clone)]
struct Outward {
    ctx: Ctx,
    peer: Peer,
    route: String,
    request: Result<Payload, Failure>,
    is_call: bool,
    time: Arc<Time>,
}

impl Outward {
    async fn attempt(self) -> Result<Payload, Failure> {
        let node = node(&self.ctx.means)?;
        let (peer, route, bytes) = (self.peer.clone(), self.route.clone(), self.request.clone()?.bytes);
        if !self.is_call {
            self.on_terms(node.tell(peer, route, bytes)).unposted().await?;
            return Ok(Payload::json("null"));
        }
        let answer = Payload::json(self.on_terms(node.call(peer, route, bytes)).await?);
        decode::<serde::de::IgnoredAny>(&answer, "the answer")?;
        Ok(answer)
    }

    /// One attempt, under the id that all of them have, for as long as they have together.
    fn on_terms<Answer>(&self, sending: Sending<Answer>) -> Sending<Answer> {
        let key = self.ctx.idempotency_key().unwrap_or_else(|| unreachable!("this is the attempt of a step"));
        let (attempt, whole) = self.time.get();
        let trace = self.ctx.context().span().map(|span| span.to_string()).unwrap_or_default();
        sending
            .id(request_id(key))
            .timeout(whole)
            .policy(Policy::once().attempt_timeout(attempt))
            .trace(trace)
            .on_behalf_of(self.ctx.means.behalf())
            .comes_again()
    }
}

fn node(means: &Means) -> Result<&Node, Failure> {
    let missing =
        || Failure::permanent("this engine cannot send messages: give it a node by EngineBuilder::messages").code(Code::FailedPrecondition);
    means.node.get().ok_or_else(missing)
}

/// The name of a step for that route: what a name may not have is a dash.
pub(crate) fn step_name(route: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = route.chars().map(allowed).take(128).collect();
    if name.is_empty() || name.bytes().all(|b| b == b'.') { "call".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_named_like_its_route() {
        assert_eq!(step_name("transfer"), "transfer");
        assert_eq!(step_name("bank/transfer v2"), "bank-transfer-v2");
        assert_eq!((step_name(""), step_name("..")), ("call".into(), "call".into()));
    }
}
