//! Why a line to a server is over.

use std::fmt;
use steadfast_kernel::Failure;

/// Why a line to a server is over. Nothing of what the worker hosted over it is left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parted {
    /// The worker had to drain, and nothing is left.
    Drained,
    /// The worker had to drain, and what was in flight took longer than its patience: it is done again elsewhere.
    OutOfPatience,
    /// The line has ended.
    Ended,
    /// The server was not heard for so long that it may have given the runs to others.
    Silent,
    /// What the server said cannot be read.
    Broken(String),
    /// The server does not let it come, and that will not pass by itself.
    Refused(Failure),
    /// The server has ended the line, and said why.
    Dismissed {
        /// Why.
        why: String,
        /// It makes no sense to come again as it is.
        for_good: bool,
    },
}

impl Parted {
    /// True if the worker may come again: whatever it was may pass.
    pub fn may_come_again(&self) -> bool {
        match self {
            Parted::Drained | Parted::OutOfPatience | Parted::Refused(_) | Parted::Dismissed { for_good: true, .. } => false,
            Parted::Ended | Parted::Silent | Parted::Broken(_) | Parted::Dismissed { for_good: false, .. } => true,
        }
    }
}

impl fmt::Display for Parted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parted::Drained => f.write_str("the worker has drained"),
            Parted::OutOfPatience => f.write_str("the worker was to drain, and what was in flight took too long"),
            Parted::Ended => f.write_str("the line has ended"),
            Parted::Silent => f.write_str("the server was silent for too long"),
            Parted::Broken(why) => write!(f, "what the server said cannot be read: {why}"),
            Parted::Refused(failure) => write!(f, "the server does not take this worker: {failure}"),
            Parted::Dismissed { why, .. } => write!(f, "the server has ended the line: {why}"),
        }
    }
}
