//! Ends of keys that are still to be told.

use crate::{Engine, Error};
use steadfast_kernel::{KeyName, Timestamp};
use steadfast_runtime as runtime;
use steadfast_store::{CallbackCursor, CallbackRow};

/// One page of ends that are still to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct CallbackPage {
    /// The ends, those that have waited for longest first.
    pub items: Vec<CallbackRow>,
    /// Where the list goes on, if it does.
    pub next: Option<String>,
}

impl Engine {
    /// Ends of keys that begin so and that are still to be told, those that have waited for longest first, with what came of the last attempt and when the next one is due: at
    /// most `limit`, from the one after the page that ended with that [`next`](CallbackPage::next). What nobody will tell by itself is among the
    /// [dead letters](Engine::letters).
    ///
    /// # Errors
    /// If no key begins so, the cursor is not one that a list has given, or they cannot be read now.
    pub async fn callbacks(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<CallbackPage, Error> {
        let wrong = |cursor: &str| runtime::Error::InvalidSetting(format!("{cursor:?} is not a cursor that a list has given"));
        let after = after.map(|cursor| parse(cursor).ok_or_else(|| wrong(cursor))).transpose()?;
        let limit = limit.clamp(1, 1000);
        let mut items = self.inner.callbacks(prefix, after.as_ref(), limit + 1).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items
            .last()
            .filter(|_| more)
            .map(|last| format!("{}.{}.{}", last.ended_at.as_micros(), last.revision, last.key));
        Ok(CallbackPage { items, next })
    }
}

fn parse(cursor: &str) -> Option<CallbackCursor> {
    let (ended_at, rest) = cursor.split_once('.')?;
    let (revision, key) = rest.split_once('.')?;
    let ended_at = Timestamp::from_micros(ended_at.parse().ok()?);
    Some(CallbackCursor { ended_at, key: KeyName::new(key).ok()?, revision: revision.parse().ok()? })
}
