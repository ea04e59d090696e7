//! Renders encoded values as text, so that a changed byte shows as a changed line.
//!
//! Labels come from the caller and never from the names of Rust types: a renamed type keeps its
//! snapshot.

mod labels;
mod protobuf;
mod schema;
mod text;

pub use schema::Schema;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

/// A page of encoded values, one form after the other.
#[derive(Default)]
pub struct Page {
    text: String,
    headings: BTreeMap<String, u32>,
    covered: BTreeSet<&'static str>,
}

impl Page {
    /// Begins a form. The second form of a label gets the number 2.
    pub fn form(&mut self, label: &str) {
        let count = self.headings.entry(label.into()).or_default();
        *count += 1;
        let number = if *count == 1 { String::new() } else { format!(" {count}") };
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let _strings_always_grow = writeln!(self.text, "{gap}## {label}{number}");
    }

    /// Appends a named value to the current form.
    pub fn value(&mut self, name: &str, value: impl Display) {
        self.lines(&format!("{name}: {value}"));
    }

    /// Appends a message of protobuf: its fields, each with the path of its numbers, then its
    /// bytes.
    pub fn protobuf(&mut self, bytes: &[u8], schema: &mut Schema) {
        let mut fields = String::new();
        protobuf::write(bytes, schema, &mut fields);
        self.lines(&fields);
        self.hex(bytes);
    }

    /// Appends JSON with a line per element. No character of it is left out.
    pub fn json(&mut self, bytes: &[u8]) {
        self.lines(&text::json(&String::from_utf8_lossy(bytes), "  "));
    }

    /// Appends bytes in hexadecimal.
    pub fn hex(&mut self, bytes: &[u8]) {
        self.lines(&format!("hex, {} bytes", bytes.len()));
        self.lines(&text::hex(bytes, "  "));
    }

    /// Notes that the page has a value of the variant with that label.
    pub fn cover(&mut self, label: &'static str) {
        self.covered.insert(label);
    }

    /// Fails if a variant has no value on the page.
    ///
    /// # Panics
    /// Names the labels that [`cover`](Self::cover) has not noted.
    pub fn assert_covers(&self, labels: &[&'static str]) {
        let missing: Vec<_> = labels.iter().filter(|label| !self.covered.contains(*label)).collect();
        assert!(missing.is_empty(), "the snapshot lacks a value of {missing:?}; add one to the list of values");
    }

    /// The rendered text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Appends lines, indented below their form: a diff names the form of each hunk by its heading.
    fn lines(&mut self, lines: &str) {
        let indent = if self.headings.is_empty() { "" } else { "  " };
        for line in lines.lines() {
            let _strings_always_grow = writeln!(self.text, "{indent}{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Shape {
        Dot,
        Line,
    }

    crate::labels!(Shapes of Shape { Shape::Dot => "DOT", Shape::Line => "LINE" });

    #[test]
    fn repeated_label_is_numbered() {
        let mut page = Page::default();
        page.form("A");
        page.value("size", 7);
        page.form("A");
        page.json(b"{}");
        assert_eq!(page.text(), "## A\n  size: 7\n\n## A 2\n    {}\n");
    }

    #[test]
    #[should_panic(expected = "lacks a value of [\"LINE\"]")]
    fn missing_variant_panics() {
        let mut page = Page::default();
        page.cover(Shapes::of(&Shape::Dot));
        assert_eq!(Shapes::of(&Shape::Line), "LINE");
        page.assert_covers(Shapes::ALL);
    }
}
