//! The directory of a key has ended, and the key with it, if it was there then.
//! held --EndKey--> gone: KEY_EXPIRED | KEY_DELETED, as its directory; if its own time was over by then, it has expired
//!
//! Tested by `crates/sdk/tests/it/keys/directories.rs`.

use super::delete::delete;
use super::expire::expire;
use super::{Key, not_found};
use crate::machine::Decision;
use crate::{Answer, EndKey, Timestamp};

pub(super) fn decide(key: &Key, command: &EndKey, now: Timestamp) -> Decision {
    let EndKey { directory, ended_at, deleted, handled } = command;
    let with = Some(directory.clone());
    match &key.held {
        None => not_found(),
        Some(held) if held.put_at > *ended_at => Decision::answer(Answer::Mismatch),
        Some(held) if held.is_over(*ended_at) => expire(key, held, held.expires_at, None, *handled, now),
        Some(held) if *deleted => delete(key, held, with, now),
        Some(held) => expire(key, held, *ended_at, with, *handled, now),
    }
}
