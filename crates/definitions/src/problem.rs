//! What is wrong with a definition, where, and what was meant.

use crate::document::At;
use crate::template::Use;
use serde::Serialize;
use std::fmt;

/// A mistake in a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// `file:line:column: message`, and the help on a line of its own.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// Collects what is wrong with one file.
#[derive(Debug)]
pub(crate) struct Report {
    file: String,
    problems: Vec<Problem>,
    /// The templates that were read: what they name is looked up when all steps are known.
    pub(crate) uses: Vec<Use>,
}

impl Report {
    pub(crate) fn new(file: &str) -> Self {
        Report { file: file.into(), problems: Vec::new(), uses: Vec::new() }
    }

    /// Something is wrong there.
    pub(crate) fn wrong(&mut self, at: At, message: impl Into<String>) {
        self.add(at, message.into(), None);
    }

    /// Something is wrong there, and that can be done about it.
    pub(crate) fn wrong_with_help(&mut self, at: At, message: impl Into<String>, help: impl Into<String>) {
        self.add(at, message.into(), Some(help.into()));
    }

    /// Something is wrong there, and perhaps it is known what was meant.
    pub(crate) fn add(&mut self, At { line, column }: At, message: String, help: Option<String>) {
        self.problems.push(Problem { file: self.file.clone(), line, column, message, help });
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Everything, from top to bottom.
    pub(crate) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        self.problems.dedup();
        self.problems
    }
}
