//! Calls and tells inside of workflows: steps whose request id is the same for all attempts, also after a crash.

use super::{Node, Peer};
use crate::means::Means;
use crate::workflow::{decode, encode};
use crate::{Ctx, Step};
use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_kernel::{Code, Failure, Payload, Policy};
use steadfast_messaging::{Sending, TIMEOUT, request_id};

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
        let outward = Outward { ctx: self.clone(), peer, route: route.to_owned(), request, is_call };
        let attempts = Box::new(move || outward.clone().attempt().boxed());
        Step::new(self.context().step(&step_name(route), attempts)).retry(policy)
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

    /// One attempt, under the id that all of them have, with the time that is left for this one and those after it. One that is dropped is never called off, not even the last: it is made
    /// again if its process ends meanwhile. Otherwise the other side stops when that time is over.
    fn on_terms<Answer>(&self, sending: Sending<Answer>) -> Sending<Answer> {
        let context = self.ctx.context();
        let ((key, left), attempt) = context
            .idempotency_key()
            .zip(context.time_left(TIMEOUT))
            .zip(context.attempt())
            .unwrap_or_else(|| unreachable!("this is the attempt of a step"));
        let trace = context.span().map(|span| span.to_string()).unwrap_or_default();
        sending
            .id(request_id(key))
            .timeout(left.whole)
            .policy(Policy::once().attempt_timeout(left.attempt))
            .trace(trace)
            .on_behalf_of(self.ctx.means.behalf())
            .attempt(attempt)
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
