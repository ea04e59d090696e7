//! What can go wrong in a store, by what the caller can do about it.

use crate::ShardId;
use std::error::Error as StdError;
use std::path::PathBuf;
use steadfast_kernel::code;

/// Store trouble.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot write or read right now; later it may.
    #[error("the store is not available: {what}")]
    Unavailable {
        /// What was tried.
        what: String,
        /// What the layer below said.
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// There is no room left; it writes again when there is.
    #[error("the disk is full: cannot {what}; free some space, and the store goes on by itself")]
    Full {
        /// What was tried.
        what: String,
        /// What the layer below said.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// It may be read but not written.
    #[error("the disk is read-only: cannot {what}; make it writable, and the store goes on by itself")]
    ReadOnly {
        /// What was tried.
        what: String,
        /// What the layer below said.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Another claim has the shard: this holder must stop.
    #[error("shard {shard} has another holder (term {term} is over); this instance may no longer write it")]
    Fenced {
        /// The shard.
        shard: ShardId,
        /// The term that is over.
        term: u64,
    },
    /// The batch does not follow on from the last one that was applied.
    #[error("a batch of shard {shard} follows batch {after}, but that is not the last one applied")]
    Gap {
        /// The shard.
        shard: ShardId,
        /// The batch that should have come before.
        after: u64,
    },
    /// Another process has the data folder.
    #[error("{path} is in use by another process; stop that one, or choose another data folder")]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The file is not one of ours.
    #[error("{path} is not a Steadfast store: {why}; it was left as it is; choose another data folder")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// The file was written by a newer version.
    #[error("{path} has schema version {found}, this program knows versions up to {known}; it was left as it is; use a newer Steadfast")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The last one known here.
        known: u32,
    },
    /// The file is damaged.
    #[error("{path} is damaged: {why}; keep a copy of it, then restore a backup")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
}

impl Error {
    /// Trouble that may pass.
    pub fn unavailable(what: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Error::Unavailable { what: what.into(), source: Some(source.into()) }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Unavailable { .. } | Error::Gap { .. } => code::STORE_UNAVAILABLE,
            Error::Full { .. } => code::STORE_FULL,
            Error::ReadOnly { .. } => code::STORE_READ_ONLY,
            Error::Fenced { .. } => code::STORE_FENCED,
            Error::Locked { .. } => code::STORE_LOCKED,
            Error::Foreign { .. } => code::STORE_FOREIGN,
            Error::Newer { .. } => code::STORE_NEWER,
            Error::Corrupt { .. } => code::STORE_CORRUPT,
        }
    }

    /// True if the same call may succeed later without anybody doing anything.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Unavailable { .. } | Error::Full { .. } | Error::ReadOnly { .. } | Error::Gap { .. })
    }
}
