//! What people and programs see: data on stdout, everything else on stderr.

pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod time;

use std::io::{ErrorKind, IsTerminal, Write};

/// Writes data to stdout. Colours go only where they are seen.
pub(crate) fn data(text: impl std::fmt::Display) {
    ended_if_nobody_reads(writeln!(anstream::stdout().lock(), "{text}"));
}

/// Says something to the person at the terminal: to stderr, so that data stays clean.
pub(crate) fn say(text: impl std::fmt::Display) {
    // If nobody hears it there is nobody to tell.
    let _unheard = writeln!(anstream::stderr().lock(), "{text}");
}

/// What comes from outside, as one line that does not steer the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Says something that only helps people, so not to programs.
pub(crate) fn hint(text: impl std::fmt::Display) {
    if std::io::stderr().is_terminal() {
        say(format_args!("{}{text}{}", style::FAINT.render(), style::FAINT.render_reset()));
    }
}

/// Whether a person reads stdout.
pub(crate) fn is_read_by_a_person() -> bool {
    std::io::stdout().is_terminal()
}

/// `steadfast run list | head` ends as soon as `head` has seen enough; that is no failure.
fn ended_if_nobody_reads(written: std::io::Result<()>) {
    if let Err(error) = written {
        std::process::exit(if error.kind() == ErrorKind::BrokenPipe { 0 } else { 1 });
    }
}
