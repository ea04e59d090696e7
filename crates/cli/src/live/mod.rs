//! Following a run or a plan: what changes, and what is shown of it while it goes on.

mod away;
pub(crate) mod grid;
mod plain;
mod screen;
pub(crate) mod steps;
mod watch;

pub(crate) use away::Away;
pub(crate) use watch::Watch;

use std::io::IsTerminal;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::Run;

/// What is shown of a run while it goes on: on a terminal a picture that is redrawn, elsewhere a line per change.
pub(crate) enum View {
    Screen(screen::Screen),
    Plain(plain::Plain),
}

impl View {
    /// The view that fits who looks.
    pub(crate) fn new() -> Self {
        if std::io::stderr().is_terminal() { View::Screen(screen::Screen::default()) } else { View::Plain(plain::Plain::default()) }
    }

    /// Shows a run as it is now.
    pub(crate) fn show(&mut self, run: &Run, now: Timestamp) {
        match self {
            View::Screen(screen) => screen.draw(&steps::lines(run, now)),
            View::Plain(plain) => plain.tell(run, now),
        }
    }

    /// Whether time alone changes what is shown.
    pub(crate) fn ticks(&self) -> bool {
        matches!(self, View::Screen(_))
    }

    /// Something that is said beside it.
    pub(crate) fn say(&mut self, text: &str) {
        if let View::Screen(screen) = self {
            screen.leave();
        }
        crate::output::say(text);
    }
}
