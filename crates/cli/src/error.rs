//! Why a command did not do what it was asked, by the exit code that follows from it.

use std::fmt;

/// The exit code for wrong use: of a flag, of a setting, of a file's content.
pub(crate) const WRONG_USE: u8 = 2;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Error {
    /// The work failed: the run did, or the server refused what it was asked for.
    Failed(String),
    /// It was not asked in a way that can be understood.
    Usage(String),
    /// Nobody answers at the server's address.
    Unreachable(String),
    /// Everything was said already; only the exit code is left.
    Said(u8),
}

impl Error {
    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Error::Failed(_) => 1,
            Error::Usage(_) => WRONG_USE,
            Error::Unreachable(_) => 3,
            Error::Said(code) => *code,
        }
    }

    /// Trouble with `what`, with everything that led to it.
    pub(crate) fn failed(what: impl fmt::Display, source: &(dyn std::error::Error + 'static)) -> Self {
        Error::Failed(format!("{what}: {}", chain(source)))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Failed(text) | Error::Usage(text) | Error::Unreachable(text) => f.write_str(text),
            Error::Said(_) => Ok(()),
        }
    }
}

/// An error and its sources in one line. A source that the error above it has quoted already is not said twice.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let said = source.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = source.source();
    }
    text
}
