//! `wait`: for a while, or until a time.

use crate::document::{Fields, Node, Value};
use crate::duration;
use crate::problem::Report;
use crate::template::{Place, Scope, Template, invalid};
use serde_json::Value as Json;
use std::time::Duration;
use steadfast_kernel::{Failure, Timestamp};
use steadfast_runtime::host::Until;

#[derive(Clone, Debug)]
pub(crate) enum Wait {
    For(Template),
    Until(Template),
}

impl Wait {
    pub(super) fn read(node: &Node, place: Place, report: &mut Report) -> Option<Self> {
        if let Value::Map(_) = &node.value {
            let mut fields = Fields::of(node, "wait", report)?;
            let until = fields.need("until", report).map(|node| (node, Template::read_one(node, "until", place, report)));
            fields.end(report);
            let (node, until) = until?;
            if until.constant().is_some_and(|value| time(&value).is_none()) {
                report.wrong_with_help(node.at, "`until` is not a time", "write a time as `2026-12-24T18:00:00Z`");
            }
            return Some(Wait::Until(until));
        }
        let template = Template::read(node, place, report);
        if template.constant().is_some() {
            node.duration("wait", report)?;
        }
        Some(Wait::For(template))
    }

    /// How long it takes, if that is the same for every run.
    pub(crate) fn constant(&self) -> Option<Duration> {
        match self {
            Wait::For(template) => duration::parse(template.constant()?.as_str()?),
            Wait::Until(_) => None,
        }
    }

    /// When it is over.
    pub(crate) fn until(&self, scope: &Scope, step: &str) -> Result<Until, Failure> {
        match self {
            Wait::For(template) => {
                let text = template.text(scope, step, "wait")?;
                duration::parse(&text)
                    .map(Until::After)
                    .ok_or_else(|| invalid(step, "wait", &format!("it gave no duration; {}", duration::HOW)))
            }
            Wait::Until(template) => {
                let value = template.render(scope, step, "wait.until")?;
                time(&value)
                    .map(Until::At)
                    .ok_or_else(|| invalid(step, "wait.until", "it gave no time such as 2026-12-24T18:00:00Z"))
            }
        }
    }
}

fn time(value: &Json) -> Option<Timestamp> {
    let time: jiff::Timestamp = value.as_str()?.parse().ok()?;
    Some(Timestamp::from_micros(time.as_microsecond()))
}
