//! Keys: put, looked at, renewed, deleted, listed; and those who are told of their ends.
//!
//! Tested by `crates/sdk/tests/it/keys/reads.rs`.

use super::{Engine, PAGE};
use crate::callbacks::Handler;
use crate::error::Error;
use crate::metrics;
use crate::shard::Control;
use futures_util::{StreamExt, TryStreamExt};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_kernel::{
    Answer, Command, DeleteKey, EndKey, EntityId, InvalidId, KeyName, Payload, PutKey, RenewKey, Revision, Target, Timestamp, check_prefix,
};
use steadfast_store::{CallbackCursor, CallbackFilter, CallbackRow, EndedBelow, KeyRow, Store};

/// How many keys below a directory are ended at once.
const ENDING: usize = 64;

/// The longest name of an owner, in bytes.
const OWNER_MAX: usize = 256;

/// What a key is to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    /// Its value.
    pub value: Payload,
    /// For how long it lives.
    pub ttl: Duration,
    /// Who may change it; everybody if there is none.
    pub owner: Option<String>,
    /// The keys below it end with it.
    pub directory: bool,
    /// Who is told of its expiry.
    pub on_expire: Option<Target>,
    /// Only if that is its revision; 0 if there is to be no such key.
    pub if_revision: Option<Revision>,
}

impl Engine {
    /// Gives a key a value and a time to live. It is durable when this returns: its revision, and when it expires.
    ///
    /// # Errors
    /// If it belongs to somebody else, has another revision than expected, or the request cannot be; nothing was changed then.
    pub async fn put_key(&self, key: &KeyName, put: Put) -> Result<(Revision, Timestamp), Error> {
        let Put { value, ttl, owner, directory, on_expire, if_revision } = put;
        check_ttl(ttl)?;
        check_owner(owner.as_deref())?;
        self.check_size(&value)?;
        self.check_target(key, on_expire.as_ref())?;
        self.end_with_directory(key).await?;
        let command = PutKey { revision: 0, value, ttl, owner, directory, on_expire, if_revision, handled: false };
        match self.tell_key(key, Command::PutKey(command)).await? {
            Answer::Put { revision, expires_at } => Ok((revision, expires_at)),
            other => Err(unexpected(key, other)),
        }
    }

    /// Gives a key another time to live, from now on: its revision, and when it expires.
    ///
    /// # Errors
    /// If there is no such key, it belongs to somebody else, or has another revision than expected.
    pub async fn renew_key(
        &self,
        key: &KeyName,
        ttl: Duration,
        owner: Option<String>,
        if_revision: Option<Revision>,
    ) -> Result<(Revision, Timestamp), Error> {
        check_ttl(ttl)?;
        check_owner(owner.as_deref())?;
        self.end_with_directory(key).await?;
        match self.tell_key(key, Command::RenewKey(RenewKey { revision: 0, ttl, owner, if_revision })).await? {
            Answer::Renewed { revision, expires_at } => Ok((revision, expires_at)),
            other => Err(unexpected(key, other)),
        }
    }

    /// Removes a key. Nobody is called back for that. The revision that is gone.
    ///
    /// # Errors
    /// If there is no such key, it belongs to somebody else, or has another revision than expected.
    pub async fn delete_key(&self, key: &KeyName, owner: Option<String>, if_revision: Option<Revision>) -> Result<Revision, Error> {
        check_owner(owner.as_deref())?;
        self.end_with_directory(key).await?;
        match self.tell_key(key, Command::DeleteKey(DeleteKey { owner, if_revision })).await? {
            Answer::Deleted { revision } => Ok(revision),
            other => Err(unexpected(key, other)),
        }
    }

    /// A key; nothing if there is none, or its time is over.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn key(&self, key: &KeyName) -> Result<Option<KeyRow>, Error> {
        let names: Vec<_> = key.above().chain([key.clone()]).collect();
        let rows = self.store()?.keys(&names).await.map_err(Error::from_store)?;
        let now = self.parts.clock.now();
        let row = rows.iter().find(|row| row.key == *key && row.is_live(now));
        Ok(row.filter(|row| !rows.iter().any(|above| above.key != *key && above.ends(row, now))).cloned())
    }

    /// Keys whose names begin so, by name, from the one after `after`, at most `limit`; and the last name that was looked at, if there may be more.
    ///
    /// # Errors
    /// If no key begins so, or they cannot be read.
    pub async fn keys(&self, prefix: &str, after: Option<&KeyName>, limit: usize) -> Result<(Vec<KeyRow>, Option<KeyName>), Error> {
        check_prefix(prefix)?;
        let store = self.store()?;
        let (mut shown, mut after) = (Vec::new(), after.cloned());
        loop {
            let wanted = (limit - shown.len()).max(1);
            let page = store.keys_below(prefix, after.as_ref(), wanted).await.map_err(Error::from_store)?;
            let is_last = page.len() < wanted;
            after = page.last().map(|row| row.key.clone()).or(after);
            shown.extend(self.live(&*store, page).await?);
            if is_last {
                return Ok((shown, None));
            }
            if shown.len() >= limit {
                return Ok((shown, after));
            }
        }
    }

    /// Those whose time is not over, and that of their directories neither.
    async fn live(&self, store: &dyn Store, rows: Vec<KeyRow>) -> Result<Vec<KeyRow>, Error> {
        let above: BTreeSet<_> = rows.iter().flat_map(|row| row.key.above()).collect();
        let above = store.keys(&above.into_iter().collect::<Vec<_>>()).await.map_err(Error::from_store)?;
        let now = self.parts.clock.now();
        let is_ended = |row: &KeyRow| {
            above
                .iter()
                .any(|directory| row.key.as_str().starts_with(&directory.key.below()) && directory.ends(row, now))
        };
        Ok(rows.into_iter().filter(|row| row.is_live(now) && !is_ended(row)).collect())
    }

    /// Ends of keys that are still to be told, those that have waited for longest first.
    ///
    /// # Errors
    /// If no key begins so, or they cannot be read.
    pub async fn callbacks(&self, prefix: &str, after: Option<&CallbackCursor>, limit: usize) -> Result<Vec<CallbackRow>, Error> {
        check_prefix(prefix)?;
        let filter = CallbackFilter { prefix: prefix.into(), ..CallbackFilter::default() };
        self.store()?.callbacks(&filter, after, limit).await.map_err(Error::from_store)
    }

    /// Measures how many ends are still to be told, and for how long the oldest has waited: metrics that change while nothing happens. Whoever shows metrics asks for it first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn measure_callbacks(&self) -> Result<(), Error> {
        let (store, first) = (self.store()?, CallbackFilter::default());
        let oldest = store.callbacks(&first, None, 1).await.map_err(Error::from_store)?;
        let pending = store.callbacks_count(&self.ways.here()).await.map_err(Error::from_store)?;
        let waited = oldest.first().map(|oldest| self.parts.clock.now().saturating_since(oldest.ended_at));
        metrics::callbacks(pending, waited.unwrap_or_default());
        Ok(())
    }

    /// Has code of this process told of the expiry of keys whose names begin so, unless they say who else is to be told; the longest prefix counts. It is told again until it
    /// has returned `Ok`. Keys that were put while there was a handler wait for one, also after a restart.
    ///
    /// # Errors
    /// If no key begins so.
    pub fn on_expire(&self, prefix: &str, handler: Handler) -> Result<(), InvalidId> {
        check_prefix(prefix)?;
        self.parts.handlers.insert(prefix, handler);
        self.ways.tell(|| Control::Handled);
        Ok(())
    }

    /// Ends every key below a directory that was there when it ended.
    pub(crate) async fn end_below(&self, directory: &KeyName, ended_at: Timestamp, deleted: bool) -> Result<(), Error> {
        let (prefix, mut after) = (directory.below(), None);
        loop {
            let page = self.store()?.keys_below(&prefix, after.as_ref(), PAGE).await.map_err(Error::from_store)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.key.clone());
            let concerned = page.into_iter().filter(|row| row.ended_at.is_none() && row.held.put_at <= ended_at);
            let end = |row: KeyRow| {
                let command = EndKey { directory: directory.clone(), ended_at, deleted, handled: false };
                async move { self.tell_key_patiently(&row.key, Command::EndKey(command)).await }
            };
            futures_util::stream::iter(concerned.map(end))
                .buffer_unordered(ENDING)
                .try_for_each(|_| async { Ok(()) })
                .await?;
        }
    }

    async fn tell_key(&self, key: &KeyName, command: Command) -> Result<Answer, Error> {
        self.tell_entity(EntityId::Key(key.clone()), command).await
    }

    /// Where there is too much to do already, or the store hiccups, it waits.
    async fn tell_key_patiently(&self, key: &KeyName, command: Command) -> Result<Answer, Error> {
        loop {
            match self.tell_key(key, command.clone()).await {
                Err(Error::Busy { retry_after, .. } | Error::Unavailable { retry_after, .. }) => self.parts.clock.sleep(retry_after).await,
                answer => return answer,
            }
        }
    }

    /// Ends a key whose directory has ended, though nobody has got to it yet: what is asked of it next finds it gone, and its end is told.
    async fn end_with_directory(&self, key: &KeyName) -> Result<(), Error> {
        let above: Vec<_> = key.above().collect();
        if above.is_empty() {
            return Ok(());
        }
        let rows = self.store()?.keys(&[above, vec![key.clone()]].concat()).await.map_err(Error::from_store)?;
        let now = self.parts.clock.now();
        let Some(row) = rows.iter().find(|row| row.key == *key && row.ended_at.is_none()) else { return Ok(()) };
        for directory in rows.iter().filter(|above| above.key != *key) {
            if let Some(EndedBelow { at, deleted }) = directory.end_of(row, now) {
                let command = EndKey { directory: directory.key.clone(), ended_at: at, deleted, handled: false };
                self.tell_key(key, Command::EndKey(command)).await?;
            }
        }
        Ok(())
    }

    fn check_target(&self, key: &KeyName, target: Option<&Target>) -> Result<(), Error> {
        match target {
            None => Ok(()),
            Some(Target::Handler) if self.parts.handlers.has(key.as_str()) => Ok(()),
            Some(Target::Handler) => {
                Err(Error::CallbackNotAllowed { why: "this process has no handler for such keys; give an address or a workflow".into() })
            }
            Some(Target::Url(url)) => match &self.parts.caller {
                Some(caller) => caller.check(url).map_err(|why| Error::CallbackNotAllowed { why }),
                None => Err(Error::CallbackNotAllowed { why: "this engine cannot call addresses; use a handler or start a run".into() }),
            },
            Some(Target::StartRun { workflow, input }) => {
                self.check_size(input)?;
                super::taken(&self.registered(workflow)?, input).map(drop)
            }
        }
    }
}

fn check_ttl(ttl: Duration) -> Result<(), Error> {
    if ttl < Duration::from_micros(1) { Err(Error::InvalidTtl) } else { Ok(()) }
}

fn check_owner(owner: Option<&str>) -> Result<(), Error> {
    match owner {
        Some(owner) if owner.is_empty() || owner.len() > OWNER_MAX => {
            Err(Error::InvalidSetting(format!("the owner has {} bytes; use 1 to {OWNER_MAX}, or leave it out", owner.len())))
        }
        _ => Ok(()),
    }
}

/// A key answers what it was asked.
fn unexpected(key: &KeyName, answer: Answer) -> Error {
    Error::JournalBroken { entity: EntityId::Key(key.clone()), why: format!("it answered {answer:?}") }
}
