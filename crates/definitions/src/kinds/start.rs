//! `start`: starts another run, and waits for it unless told not to.

use crate::document::{Fields, Node};
use crate::problem::Report;
use crate::template::{Place, Template};
use steadfast_kernel::WorkflowName;

#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) workflow: String,
    pub(crate) input: Option<Template>,
    pub(crate) id: Option<Template>,
    pub(crate) wait: bool,
}

impl Start {
    pub(super) fn read(node: &Node, place: Place, report: &mut Report) -> Option<Self> {
        let mut fields = Fields::of(node, "start", report)?;
        let workflow = fields.need("workflow", report).and_then(|node| read_name(node, report));
        let input = fields.take("input").map(|node| Template::read(node, place, report));
        let id = fields.take("id").map(|node| Template::read_one(node, "id", place, report));
        let wait = fields.truth("wait", report).unwrap_or(true);
        fields.end(report);
        Some(Start { workflow: workflow?, input, id, wait })
    }
}

fn read_name(node: &Node, report: &mut Report) -> Option<String> {
    let name = node.text("workflow", report)?;
    match WorkflowName::new(name) {
        Ok(name) => Some(name.to_string()),
        Err(invalid) => {
            report.wrong(node.at, invalid.to_string());
            None
        }
    }
}
