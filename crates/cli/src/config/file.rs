//! The configuration file: TOML, with the line of every value.

use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value of the file, under its whole key.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) value: serde_json::Value,
}

/// Reads a file: its values in the order of their lines.
///
/// # Errors
/// A sentence with file and line.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<Found>, String> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        format!("{}:{line}: {}", path.display(), error.message())
    })?;
    let mut found = Vec::new();
    flatten("", table.get_ref(), text, &mut found);
    found.sort_by_key(|found| found.line);
    Ok(found)
}

/// Sections become parts of keys. What stands in `vars` is kept whole.
fn flatten(section: &str, table: &DeTable<'_>, text: &str, found: &mut Vec<Found>) {
    for (name, value) in table {
        let key = if section.is_empty() { name.get_ref().to_string() } else { format!("{section}.{}", name.get_ref()) };
        match value.get_ref() {
            DeValue::Table(inner) if section != super::settings::VARS => flatten(&key, inner, text, found),
            _ => found.push(Found { key, line: line_of(text, name.span().start), value: json(value) }),
        }
    }
}

fn json(value: &Spanned<DeValue<'_>>) -> serde_json::Value {
    match value.get_ref() {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(yes) => (*yes).into(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or_else(|_| number.to_string().into(), Into::into)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or_else(|_| number.as_str().into(), Into::into),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Array(parts) => parts.iter().map(json).collect::<Vec<_>>().into(),
        DeValue::Table(inner) => inner
            .iter()
            .map(|(name, value)| (name.get_ref().to_string(), json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}
