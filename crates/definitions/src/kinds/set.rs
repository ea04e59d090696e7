//! `set`: a value that is worked out once and recorded.

use super::Attempt;
use crate::document::Node;
use crate::problem::Report;
use crate::template::{Place, Scope, Template};
use serde_json::Value as Json;
use steadfast_kernel::Failure;

#[derive(Clone, Debug)]
pub(crate) struct Set(Template);

impl Set {
    pub(super) fn read(node: &Node, place: Place, report: &mut Report) -> Self {
        Set(Template::read(node, place, report))
    }

    pub(super) fn attempt(&self, scope: &Scope, of: &Attempt) -> Result<Json, Failure> {
        self.0.render(scope, &of.step, "set")
    }
}
