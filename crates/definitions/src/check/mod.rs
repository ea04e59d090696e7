//! From a text to a definition, or to everything that is wrong with it.

mod graph;
mod plan;
mod step;
mod steps;
mod templates;
mod workflow;

use crate::definition::Definition;
use crate::document::{At, Value, parse};
use crate::problem::{Problem, Report};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// The longest text.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// The most steps of a workflow.
pub const STEPS_MAX: usize = 1000;

/// The most stages of a plan.
pub const STAGES_MAX: usize = 100;

/// Reads a definition and checks all of it.
///
/// # Errors
/// Everything that is wrong, from top to bottom, with its place and what was probably meant.
pub fn check(file_name: &str, text: &str) -> Result<Definition, Vec<Problem>> {
    let mut report = Report::new(file_name);
    match read(file_name, text, &mut report) {
        Some(definition) if report.is_clean() => Ok(definition),
        _ => Err(report.into_problems()),
    }
}

/// What tells a text from all others: its SHA-256 in hexadecimal.
pub(crate) fn hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

fn read(file: &str, text: &str, report: &mut Report) -> Option<Definition> {
    if text.len() > TEXT_BYTES_MAX {
        report.wrong(At::START, format!("the file has {} bytes, at most {TEXT_BYTES_MAX} are allowed", text.len()));
        return None;
    }
    let document = parse(text, report)?;
    if document.is_null() {
        report.wrong_with_help(
            At::START,
            "there is no definition in this file",
            "a definition begins with `workflow: NAME` or `plan: NAME`",
        );
        return None;
    }
    let has = |name: &str| matches!(&document.value, Value::Map(entries) if entries.iter().any(|(key, _)| key.name == name));
    if !has("workflow") && (has("plan") || has("stages")) {
        return plan::read(&document, file, text, report);
    }
    workflow::read(&document, file, text, report)
}
