//! What a step does: a kind per file, with how it is read and how it is carried out.
//!
//! Tested by `crates/cli/tests/it/restarts.rs`.

mod approve;
mod attempt;
mod call;
mod fail;
mod http;
mod run;
mod set;
mod start;
mod wait;

pub(crate) use approve::Approve;
pub use attempt::Settings;
pub(crate) use attempt::{Attempt, Tools};
pub(crate) use call::{Call, check_route};
pub(crate) use fail::Fail;
pub(crate) use http::Http;
pub(crate) use run::Run;
pub(crate) use set::Set;
pub(crate) use start::Start;
pub(crate) use wait::Wait;

use crate::document::{Fields, Node};
use crate::problem::Report;
use crate::template::{Place, Scope};
use serde_json::Value as Json;
use steadfast_kernel::Failure;

/// The fields that say what a step does.
pub(crate) const NAMES: [&str; 8] = ["http", "run", "call", "wait", "approve", "start", "set", "fail"];

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Http(Http),
    Run(Run),
    Call(Call),
    Wait(Wait),
    Approve(Approve),
    Start(Start),
    Set(Set),
    Fail(Fail),
}

impl Kind {
    /// The one kind that is among the fields of a step. Several or none is a mistake.
    pub(crate) fn read(fields: &mut Fields<'_>, place: Place, report: &mut Report) -> Option<Self> {
        let found: Vec<_> = NAMES.into_iter().filter_map(|name| Some((name, fields.take_any(name)?))).collect();
        match found[..] {
            [(name, node)] => Kind::read_one(name, node, place, report),
            [] => {
                let message = format!("{} does not say what to do", fields.what);
                report.wrong_with_help(fields.at, message, format!("give it one of: {}", NAMES.join(", ")));
                None
            }
            [_, (second, _), ..] => {
                let names: Vec<_> = found.iter().map(|(name, _)| format!("`{name}`")).collect();
                let message = format!("{} does several things: {}", fields.what, names.join(" and "));
                report.wrong_with_help(fields.at(second), message, "a step does one thing; make it several steps");
                None
            }
        }
    }

    fn read_one(name: &str, node: &Node, place: Place, report: &mut Report) -> Option<Self> {
        match name {
            "http" => Http::read(node, place.each_attempt(), report).map(Kind::Http),
            "run" => Run::read(node, place.each_attempt(), report).map(Kind::Run),
            "call" => Call::read(node, place.each_attempt(), report).map(Kind::Call),
            "wait" => Wait::read(node, place, report).map(Kind::Wait),
            "approve" => Approve::read(node, report).map(Kind::Approve),
            "start" => Start::read(node, place, report).map(Kind::Start),
            "set" => Some(Kind::Set(Set::read(node, place.each_attempt(), report))),
            _ => Fail::read(node, place.each_attempt(), report).map(Kind::Fail),
        }
    }

    /// The field that says it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Kind::Http(_) => "http",
            Kind::Run(_) => "run",
            Kind::Call(_) => "call",
            Kind::Wait(_) => "wait",
            Kind::Approve(_) => "approve",
            Kind::Start(_) => "start",
            Kind::Set(_) => "set",
            Kind::Fail(_) => "fail",
        }
    }

    /// Whether it has to do with the world outside, so that it may fail and be tried again.
    pub(crate) fn is_retried(&self) -> bool {
        matches!(self, Kind::Http(_) | Kind::Run(_) | Kind::Call(_))
    }

    /// Makes one attempt. Kinds that are not attempted but waited for have none.
    pub(crate) async fn attempt(&self, scope: &Scope, of: &Attempt, tools: &Tools) -> Result<Json, Failure> {
        match self {
            Kind::Http(http) => http.attempt(scope, of, tools).await,
            Kind::Run(run) => run.attempt(scope, of, tools).await,
            Kind::Call(call) => call.attempt(scope, of, tools).await,
            Kind::Set(set) => set.attempt(scope, of),
            Kind::Fail(fail) => fail.attempt(scope, of),
            Kind::Wait(_) | Kind::Approve(_) | Kind::Start(_) => Ok(Json::Null),
        }
    }
}
