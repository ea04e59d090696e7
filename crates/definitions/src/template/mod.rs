//! Templates: values whose texts may hold expressions.
//!
//! A text that is one expression, `{{ … }}`, keeps the type of its value; any other text with expressions in it becomes a text. Maps and lists
//! are rendered item by item. A name that is not there is a failure, never an empty text. Templates reach no files and no clock, and each has
//! a bounded amount of work to spend.

mod bounded;
mod engine;
mod names;
mod place;
mod scan;

pub(crate) use engine::{Scope, value};
pub(crate) use names::{Names, OfSteps};
pub(crate) use place::{Place, Use, Whose};

use crate::document::{Node, Value};
use crate::problem::Report;
use serde_json::Value as Json;
use steadfast_kernel::{Code, Failure};

/// A value that may hold templates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Template {
    /// As it is.
    Literal(Json),
    /// One expression, without its braces.
    Expression(String),
    /// A text with expressions in it.
    Text(String),
    List(Vec<Template>),
    Map(Vec<(String, Template)>),
}

impl Template {
    /// Reads a value that may hold templates. Mistakes go into the report; which names it uses is kept there until all steps are known.
    pub(crate) fn read(node: &Node, place: Place, report: &mut Report) -> Self {
        match &node.value {
            Value::Text(text) => Template::read_text(node, text, place, report),
            Value::List(items) => Template::List(items.iter().map(|item| Template::read(item, place, report)).collect()),
            Value::Map(entries) => Template::Map(
                entries
                    .iter()
                    .map(|(key, value)| (key.name.clone(), Template::read(value, place, report)))
                    .collect(),
            ),
            _ => Template::Literal(node.json()),
        }
    }

    /// Reads a field that has to give a text in the end.
    pub(crate) fn read_one(node: &Node, name: &str, place: Place, report: &mut Report) -> Self {
        if let Value::List(_) | Value::Map(_) | Value::Null = &node.value {
            report.wrong(node.at, format!("`{name}` has to be a text, but this is {}", node.what()));
        }
        Template::read(node, place, report)
    }

    fn read_text(node: &Node, text: &str, place: Place, report: &mut Report) -> Self {
        if text.len() > bounded::TEMPLATE_MAX && text.contains("{{") {
            report.wrong(node.at, format!("a template may have {} bytes, this one has {}", bounded::TEMPLATE_MAX, text.len()));
            return Template::Literal(Json::Null);
        }
        let template = Template::of(text);
        match template.names() {
            Ok(names) => report.uses.push(Use { at: node.at, place, names }),
            Err(why) => report.wrong(node.at, format!("this template cannot be read: {why}")),
        }
        template
    }

    /// The template that a text is.
    pub(crate) fn of(text: &str) -> Self {
        if !["{{", "{%", "{#"].iter().any(|opening| text.contains(opening)) {
            return Template::Literal(Json::String(text.into()));
        }
        match engine::only_expression(text) {
            Some(expression) => Template::Expression(expression.into()),
            None => Template::Text(text.into()),
        }
    }

    /// The names that it uses, itself and not those inside it.
    fn names(&self) -> Result<Names, String> {
        match self {
            Template::Expression(source) => Names::of_expression(source),
            Template::Text(source) => Names::of_text(source),
            _ => Ok(Names::default()),
        }
    }

    /// Its value, if that is the same for every run.
    pub(crate) fn constant(&self) -> Option<Json> {
        match self {
            Template::Literal(value) => Some(value.clone()),
            Template::Expression(_) | Template::Text(_) if self.names().is_ok_and(|names| names.roots.is_empty()) => {
                self.render(&Scope::default(), "", "").ok()
            }
            _ => None,
        }
    }

    /// The value in that scope.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, permanent, naming step and field and what of the template is wrong. No value of the run is ever part of it.
    pub(crate) fn render(&self, scope: &Scope, step: &str, field: &str) -> Result<Json, Failure> {
        let rendered = match self {
            Template::Literal(value) => return Ok(value.clone()),
            Template::Expression(source) => engine::evaluate(source, scope),
            Template::Text(source) => engine::render(source, scope).map(Json::String),
            Template::List(items) => {
                let items = items.iter().enumerate().map(|(index, item)| item.render(scope, step, &format!("{field}[{index}]")));
                return items.collect();
            }
            Template::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), value.render(scope, step, &format!("{field}.{key}"))?)));
                return entries.collect();
            }
        };
        rendered.map_err(|why| invalid(step, field, &why))
    }

    /// The value as text: texts as they are, numbers and truths as they are written.
    pub(crate) fn text(&self, scope: &Scope, step: &str, field: &str) -> Result<String, Failure> {
        match self.render(scope, step, field)? {
            Json::String(text) => Ok(text),
            Json::Null => Err(invalid(step, field, "it gave nothing where a text is needed")),
            value @ (Json::Bool(_) | Json::Number(_)) => Ok(value.to_string()),
            Json::Array(_) | Json::Object(_) => {
                Err(invalid(step, field, "it gave a list or a map where a text is needed; use the filter `tojson`"))
            }
        }
    }
}

/// The failure of a template.
pub(crate) fn invalid(step: &str, field: &str, why: &str) -> Failure {
    let whose = if step.is_empty() { field.to_string() } else { format!("step {step}, {field}") };
    Failure::permanent(format!("{whose}: {why}")).code(Code::InvalidArgument)
}

#[cfg(test)]
mod tests;
