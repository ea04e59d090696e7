//! Why a worker is gone.

use std::fmt;
use std::time::Duration;

/// Why a worker is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gone {
    /// It had drained, and left.
    Left,
    /// It could not wait for all that it had in flight, let go of it, and left.
    GaveUp,
    /// Its line has ended.
    Ended,
    /// It was silent for that long.
    Silent(Duration),
    /// It did not read what it was sent; so many bytes waited.
    Slow(usize),
    /// Another of its name has come.
    Replaced,
    /// What it said cannot be read.
    Broken(String),
    /// It cannot be taken in.
    Refused(String),
    /// So many others are there already, and more are not taken.
    TooMany(usize),
    /// The engine has stopped.
    Stopped,
}

impl Gone {
    /// True if it was lost in the middle of its work: nobody wanted it to go.
    pub fn is_lost(&self) -> bool {
        !matches!(self, Gone::Left | Gone::Stopped | Gone::Refused(_) | Gone::TooMany(_))
    }

    /// True if nothing is left of what it hosted: it has said so itself, or there was nothing.
    pub(super) fn leaves_nothing(&self) -> bool {
        matches!(self, Gone::Left | Gone::GaveUp | Gone::Refused(_))
    }

    /// True if it makes no sense that it comes again as it is.
    pub(super) fn is_for_good(&self) -> bool {
        matches!(self, Gone::Refused(_) | Gone::Replaced)
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gone::Left => f.write_str("it had drained, and left"),
            Gone::GaveUp => f.write_str("it could not wait for what it had in flight, and left"),
            Gone::Ended => f.write_str("its line has ended"),
            Gone::Silent(time) => write!(f, "it was silent for {time:?}"),
            Gone::Slow(bytes) => write!(f, "it did not read what it was sent; {bytes} bytes waited"),
            Gone::Replaced => f.write_str("another worker of its name has come"),
            Gone::Broken(why) => write!(f, "what it said cannot be read: {why}"),
            Gone::Refused(why) => write!(f, "it cannot be taken in: {why}"),
            Gone::TooMany(workers) => write!(f, "{workers} workers are connected already, and more are not taken (workers.max)"),
            Gone::Stopped => f.write_str("the engine has stopped"),
        }
    }
}
