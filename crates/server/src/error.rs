//! Why a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;
use steadfast_kernel::code;

/// How a token is made.
pub(crate) const MAKE_ONE: &str = "make one with: (umask 077; head -c 32 /dev/urandom | base64 > FILE)";

/// Why a server does not start, or has stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Others could reach it, and there is no token.
    #[error(
        "{listen} can be reached from other machines, so the server needs a token: start it with --token-file FILE ({MAKE_ONE}), or listen on 127.0.0.1"
    )]
    TokenNeeded {
        /// The address.
        listen: SocketAddr,
    },
    /// The token would keep nobody out, or cannot be read.
    #[error("the token file {} cannot be used: {why}", path.display())]
    TokenUnusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// Nobody could be called back so.
    #[error("callbacks cannot be made so: {why}")]
    CallerUnusable {
        /// What is wrong, and what to do.
        why: String,
    },
    /// The address is taken, or is not ours.
    #[error("cannot listen on {listen}; is another server running there?")]
    CannotListen {
        /// The address.
        listen: SocketAddr,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// The stable code; `docs/errors/` has a page for each.
    pub fn code(&self) -> &'static str {
        match self {
            Error::TokenNeeded { .. } => code::TOKEN_NEEDED,
            Error::TokenUnusable { .. } => code::TOKEN_UNUSABLE,
            Error::CallerUnusable { .. } => code::INVALID_SETTING,
            Error::CannotListen { .. } => code::CANNOT_LISTEN,
        }
    }
}
