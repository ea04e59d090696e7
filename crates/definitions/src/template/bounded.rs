//! Bounds on how long a text may get. Fuel counts instructions, and one instruction can make a text of any length out of what a run was given.

use minijinja::{Environment, Error, ErrorKind, Value};
use std::io::{self, Write};

/// The longest text that a template may give, and that a filter may make on the way.
const TEXT_MAX: usize = 4 << 20;

/// The longest template, in bytes: a chain of a hundred thousand operators would be followed by recursion.
pub(super) const TEMPLATE_MAX: usize = 16 << 10;

pub(super) const TOO_LONG: &str = "it gives a text of more than 4 MiB";

/// Replaces the filters whose result can be longer than what they are given by some that look first, and leaves out those that nobody needs.
pub(super) fn install(engine: &mut Environment<'_>) {
    for name in ["indent", "format", "batch", "slice", "pprint"] {
        engine.remove_filter(name);
    }
    engine.add_filter("replace", replace);
    engine.add_filter("join", join);
}

fn replace(text: String, from: String, to: String) -> Result<String, Error> {
    let count = if from.is_empty() { text.chars().count() + 1 } else { text.matches(&from).count() };
    fits(text.len().saturating_add(count.saturating_mul(to.len())))?;
    Ok(text.replace(&from, &to))
}

fn join(items: Value, between: Option<String>) -> Result<String, Error> {
    let between = between.unwrap_or_default();
    let mut joined = String::new();
    for (index, item) in items.try_iter()?.enumerate() {
        let item = item.as_str().map_or_else(|| item.to_string(), str::to_string);
        fits(joined.len() + between.len() + item.len())?;
        if index > 0 {
            joined.push_str(&between);
        }
        joined.push_str(&item);
    }
    Ok(joined)
}

fn fits(length: usize) -> Result<(), Error> {
    if length > TEXT_MAX { Err(Error::new(ErrorKind::InvalidOperation, TOO_LONG)) } else { Ok(()) }
}

pub(super) fn is_too_long(error: &Error) -> bool {
    error.detail() == Some(TOO_LONG)
}

/// A text that does not grow without end.
#[derive(Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    full: bool,
}

impl Text {
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn into_string(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.full |= self.bytes.len() + bytes.len() > TEXT_MAX;
        if self.full {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
