//! `fail`: says that it cannot go on, and why.

use super::Attempt;
use crate::document::{Fields, Node};
use crate::problem::Report;
use crate::suggest;
use crate::template::{Place, Scope, Template};
use serde_json::Value as Json;
use steadfast_kernel::{Class, Code, Failure};

const CLASSES: [Class; 3] = [Class::Transient, Class::Permanent, Class::Poison];

#[derive(Clone, Debug)]
pub(crate) struct Fail {
    message: Template,
    code: Code,
    class: Class,
}

impl Fail {
    pub(super) fn read(node: &Node, place: Place, report: &mut Report) -> Option<Self> {
        let mut fields = Fields::of(node, "fail", report)?;
        let message = fields.need("message", report).map(|node| Template::read_one(node, "message", place, report));
        let code = fields.take("code").and_then(|node| read_code(node, report));
        let class = fields.take("class").and_then(|node| read_class(node, report));
        fields.end(report);
        Some(Fail { message: message?, code: code.unwrap_or(Code::FailedPrecondition), class: class.unwrap_or(Class::Permanent) })
    }

    pub(super) fn attempt(&self, scope: &Scope, of: &Attempt) -> Result<Json, Failure> {
        let message = self.message.text(scope, &of.step, "fail.message")?;
        Err(Failure::new(self.code, message).class(self.class))
    }
}

fn read_code(node: &Node, report: &mut Report) -> Option<Code> {
    let name = node.text("code", report)?;
    let code = Code::parse(name);
    if code.is_none() {
        let help = suggest::help(name, Code::ALL.iter().map(|code| code.as_str()));
        report.add(node.at, format!("there is no failure code `{name}`"), help);
    }
    code
}

fn read_class(node: &Node, report: &mut Report) -> Option<Class> {
    let name = node.text("class", report)?;
    let class = CLASSES.into_iter().find(|class| class.as_str() == name);
    if class.is_none() {
        report.add(node.at, format!("there is no class `{name}`"), suggest::help(name, CLASSES.map(Class::as_str)));
    }
    class
}
