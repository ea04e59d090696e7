//! `approve`: waits for a person.

use crate::document::{Fields, Node};
use crate::problem::Report;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Approve {
    pub(crate) roles: Vec<String>,
    pub(crate) within: Option<Duration>,
}

impl Approve {
    pub(super) fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if node.is_null() {
            return Some(Approve { roles: Vec::new(), within: None });
        }
        let mut fields = Fields::of(node, "approve", report)?;
        let roles = fields.take("roles").map(|node| read_roles(node, report));
        let within = fields.time_limit("within", report);
        fields.end(report);
        Some(Approve { roles: roles.unwrap_or_default(), within })
    }
}

fn read_roles(node: &Node, report: &mut Report) -> Vec<String> {
    let items = node.list("roles", report).unwrap_or_default();
    items.iter().filter_map(|item| item.text("roles", report).map(str::to_string)).collect()
}
