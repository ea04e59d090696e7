//! `set`: a value that is worked out once and recorded.

use super::Call;
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

    pub(super) fn attempt(&self, scope: &Scope, call: &Call) -> Result<Json, Failure> {
        self.0.render(scope, &call.step, "set")
    }
}
