//! `call`: asks another node to do something, or tells it something.

use super::{Attempt, Tools};
use crate::document::{Fields, Node};
use crate::problem::Report;
use crate::template::{Place, Scope, Template, invalid};
use reqwest::Url;
use serde_json::Value as Json;
use steadfast_kernel::{Failure, Policy, WorkflowName};
use steadfast_messaging::{Peer, Sending, request_id};

/// How an address is written.
const FORM: &str = "write http://host:port or https://host:port";

#[derive(Clone, Debug)]
pub(crate) struct Call {
    to: To,
    route: Template,
    input: Option<Template>,
    /// False: it is over when the other side has taken it.
    answer: bool,
}

/// Who is called.
#[derive(Clone, Debug)]
enum To {
    /// Whoever listens at that address.
    Address(Template),
    /// Whoever has connected to this server under that name.
    Node(Template),
}

impl Call {
    pub(super) fn read(node: &Node, place: Place, report: &mut Report) -> Option<Self> {
        let mut fields = Fields::of(node, "call", report)?;
        let address = fields.take("to").map(|node| read_address(node, place, report));
        let name = fields.take("node").map(|node| read_text(node, "node", place, report));
        let route = fields.need("route", report).map(|node| read_route(node, place, report));
        let input = fields.take("input").map(|node| Template::read(node, place, report));
        let answer = fields.truth("answer", report).unwrap_or(true);
        let to = match (address, name) {
            (Some(address), None) => Some(To::Address(address)),
            (None, Some(name)) => Some(To::Node(name)),
            (Some(_), Some(_)) => {
                report.wrong_with_help(
                    fields.at("node"),
                    "call has both `to` and `node`",
                    "one request goes to one node; make it two steps",
                );
                None
            }
            (None, None) => {
                let help = "give it `to`, an address, or `node`, the name of a node that connects to this server";
                report.wrong_with_help(fields.at, "call does not say whom", help);
                None
            }
        };
        fields.end(report);
        Some(Call { to: to?, route: route?, input, answer })
    }

    pub(super) async fn attempt(&self, scope: &Scope, of: &Attempt, tools: &Tools) -> Result<Json, Failure> {
        let step = &of.step;
        let peer = self.to.peer(scope, step)?;
        let route = self.route.text(scope, step, "call.route")?;
        let input = self.input.as_ref().map(|input| input.render(scope, step, "call.input")).transpose()?;
        let (node, input) = (tools.node()?, input.unwrap_or_default().to_string());
        // What follows a failed attempt, the engine decides; what was given up, the step keeps.
        if !self.answer {
            return on_terms(node.tell(peer, route, input), of).unposted().await.map(|()| Json::Null);
        }
        let shown = peer.to_string();
        let answer = on_terms(node.call(peer, route, input), of).await?;
        serde_json::from_slice(&answer).map_err(|_| Failure::poison(format!("{shown} answered with something that is not JSON")))
    }
}

/// One attempt, under the id that all of them have, with the time that is left for this one and those after it. One that is dropped is never called off, not even the last: it is made again if
/// the server ends meanwhile. Otherwise the other side stops when that time is over.
fn on_terms<Answer>(sending: Sending<Answer>, of: &Attempt) -> Sending<Answer> {
    sending
        .id(request_id(&*of.idempotency_key))
        .timeout(of.left.whole)
        .policy(Policy::once().attempt_timeout(of.left.attempt))
        .attempt(of.attempt)
        .trace(of.traceparent.clone().unwrap_or_default())
}

impl To {
    fn peer(&self, scope: &Scope, step: &str) -> Result<Peer, Failure> {
        match self {
            To::Address(address) => {
                let address = address.text(scope, step, "call.to")?;
                origin(&address).map(Peer::at).map_err(|why| invalid(step, "call.to", &format!("{why}; {FORM}")))
            }
            To::Node(name) => match name.text(scope, step, "call.node")? {
                name if name.is_empty() => Err(invalid(step, "call.node", "it gave an empty name")),
                name => Ok(Peer::named(name)),
            },
        }
    }
}

/// The part of an address that is connected to. What is wrong with it is told without it: it may hold a secret.
fn origin(address: &str) -> Result<String, &'static str> {
    let url = Url::parse(address).map_err(|_| "it gave no address")?;
    match () {
        () if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() => Err("it gave no address"),
        () if !url.username().is_empty() || url.password().is_some() => Err("it has a name or password in its address"),
        () if url.path() != "/" || url.query().is_some() || url.fragment().is_some() => Err("it has more than a host and a port"),
        () => Ok(url.origin().ascii_serialization()),
    }
}

fn read_address(node: &Node, place: Place, report: &mut Report) -> Template {
    let address = Template::read_one(node, "to", place, report);
    if let Some(Json::String(text)) = address.constant()
        && let Err(why) = origin(&text)
    {
        report.wrong_with_help(node.at, format!("`to` is not the address of a node: {}", why.trim_start_matches("it gave ")), FORM);
    }
    address
}

fn read_text(node: &Node, name: &str, place: Place, report: &mut Report) -> Template {
    let text = Template::read_one(node, name, place, report);
    if text.constant().is_some_and(|value| value == "") {
        report.wrong(node.at, format!("`{name}` is empty"));
    }
    text
}

fn read_route(node: &Node, place: Place, report: &mut Report) -> Template {
    let route = Template::read_one(node, "route", place, report);
    if let Some(Json::String(name)) = route.constant() {
        check_route("route", &name, node, report);
    }
    route
}

/// Routes are named as workflows are.
pub(crate) fn check_route(field: &str, name: &str, node: &Node, report: &mut Report) {
    if WorkflowName::new(name).is_err() {
        let help = "use 1 to 128 characters of A-Z a-z 0-9 . _ - /, without empty or dot-only parts";
        report.wrong_with_help(node.at, format!("`{field}` is not the name of a route"), help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_a_host_and_a_port() {
        for (address, expected) in [
            ("http://bank:7400", "http://bank:7400"),
            ("http://bank:7400/", "http://bank:7400"),
            ("https://bank.example", "https://bank.example"),
            ("http://[::1]:7400", "http://[::1]:7400"),
        ] {
            assert_eq!(origin(address), Ok(expected.into()));
        }
        for wrong in
            ["bank:7400", "bank", "", "ftp://bank", "http://", "http://u:hunter2@bank", "http://bank/x", "http://bank?token=hunter2"]
        {
            assert!(!origin(wrong).unwrap_err().contains("hunter2"), "{wrong}");
        }
    }
}
