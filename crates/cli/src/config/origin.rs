//! Where a value came from. Later ones win.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from, in the order in which they win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    /// A line of the configuration file.
    File(PathBuf, usize),
    /// A variable of the environment.
    Env(String),
    Flag(&'static str),
}

impl Origin {
    /// A later layer wins over an earlier one, whatever their values.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Origin::Default => 0,
            Origin::File(..) => 1,
            Origin::Env(_) => 2,
            Origin::Flag(_) => 3,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Env(name) => f.write_str(name),
            Origin::Flag(name) => f.write_str(name),
        }
    }
}
