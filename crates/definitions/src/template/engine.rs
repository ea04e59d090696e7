//! The template engine, strict and bounded.

use super::bounded;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, escape_formatter};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// How many instructions one template may take: enough for lists of thousands of items.
const FUEL: u64 = 200_000;

/// How deep templates may call themselves.
const RECURSION_MAX: usize = 64;

pub(super) static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(RECURSION_MAX);
    engine.set_debug(true); // so that errors know the names that are not there
    engine.remove_global("debug"); // it would show everything
    bounded::install(&mut engine);
    engine.set_formatter(|out, state, value| {
        let is_plain = value.is_undefined() || value.as_str().is_some();
        if is_plain { escape_formatter(out, state, value) } else { escape_formatter(out, state, &as_json(value)?.into()) }
    });
    engine
});

/// A value inside a text is written as JSON would write it.
fn as_json(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|_| Error::new(ErrorKind::BadSerialization, "a value cannot be written as JSON"))
}

/// What the templates of one place see. Clones share their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope(BTreeMap<&'static str, Value>);

impl Scope {
    /// The same scope with one name more.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.insert(name, value.into());
        self
    }
}

/// A JSON value as templates see it.
pub(crate) fn value(json: &Json) -> Value {
    Value::from(Serde(json))
}

/// The expression that the text consists of, if it is only one.
pub(super) fn only_expression(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
    let inside = inside.strip_suffix(['-', '+']).unwrap_or(inside);
    ENGINE.compile_expression(inside).is_ok().then_some(inside)
}

/// The value of an expression, or what is wrong with it.
pub(super) fn evaluate(source: &str, Scope(names): &Scope) -> Result<Json, String> {
    let expression = ENGINE.compile_expression(source).map_err(|error| why(&error))?;
    let value = expression.eval(Value::from(names.clone())).map_err(|error| why(&error))?;
    if value.is_undefined() {
        return Err(format!("`{}` is undefined", source.trim()));
    }
    serde_json::to_value(&value).map_err(|_| "it gave something that JSON cannot hold".into())
}

/// The text, or what is wrong with it.
pub(super) fn render(source: &str, Scope(names): &Scope) -> Result<String, String> {
    let template = ENGINE.template_from_str(source).map_err(|error| why(&error))?;
    let mut text = bounded::Text::default();
    let rendered = template.render_captured_to(Value::from(names.clone()), &mut text).map(drop);
    match rendered {
        Err(_) if text.is_full() => Err(bounded::TOO_LONG.into()),
        Err(error) => Err(why(&error)),
        Ok(()) => Ok(text.into_string()),
    }
}

/// What is wrong, without the values that were at hand: only details that speak of the template's own text are told.
pub(super) fn why(error: &Error) -> String {
    let detail = match error.kind() {
        ErrorKind::UndefinedError
        | ErrorKind::SyntaxError
        | ErrorKind::UnknownFilter
        | ErrorKind::UnknownTest
        | ErrorKind::UnknownFunction
        | ErrorKind::UnknownMethod
        | ErrorKind::BadEscape => error.detail(),
        _ => None,
    };
    match (error.kind(), detail) {
        _ if bounded::is_too_long(error) => bounded::TOO_LONG.into(),
        (_, Some(detail)) => detail.to_string(),
        (ErrorKind::OutOfFuel, None) => "it takes more work than a template may".into(),
        (kind, None) => kind.to_string(),
    }
}
