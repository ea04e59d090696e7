//! What a key holds, as it is shown.

use crate::Error;
use serde::de::DeserializeOwned;
use std::time::Duration;
use steadfast_kernel::{Held, KeyName, Payload, Revision, Target, Timestamp};
use steadfast_store::KeyRow;

/// A key and what it holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HeldKey {
    /// Its name.
    pub key: KeyName,
    /// Which change of it this is: it rises with every one, and is never given twice, also not to a later key of the same name.
    pub revision: Revision,
    /// Its value as it came; [`value`](HeldKey::value) reads it.
    pub payload: Payload,
    /// For how long it lives, from its last change on.
    pub ttl: Duration,
    /// Until then.
    pub expires_at: Timestamp,
    /// Who may change it; everybody if there is none.
    pub owner: Option<String>,
    /// The keys below it end with it.
    pub directory: bool,
    /// Who is told of its expiry.
    pub on_expire: Option<Target>,
    /// When it was put.
    pub put_at: Timestamp,
}

impl HeldKey {
    /// Its value.
    ///
    /// # Errors
    /// If it is something else than a `T`.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let unreadable = |source| Error::Unreadable { what: format!("the value of key {}", self.key), source };
        serde_json::from_slice(&self.payload.bytes).map_err(unreadable)
    }

    pub(super) fn new(key: KeyName, held: Held) -> Self {
        let Held { revision, value: payload, ttl, expires_at, owner, directory, on_expire, put_at } = held;
        HeldKey { key, revision, payload, ttl, expires_at, owner, directory, on_expire, put_at }
    }
}

impl From<KeyRow> for HeldKey {
    fn from(row: KeyRow) -> Self {
        HeldKey::new(row.key, row.held)
    }
}

/// What a change made of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyStamp {
    /// Which change of it this is.
    pub revision: Revision,
    /// When its time is over.
    pub expires_at: Timestamp,
}

impl From<(Revision, Timestamp)> for KeyStamp {
    fn from((revision, expires_at): (Revision, Timestamp)) -> Self {
        KeyStamp { revision, expires_at }
    }
}
