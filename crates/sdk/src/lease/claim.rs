//! What is known of the key of a lease, and what is done to it. Nothing is ever done to a key that somebody else has put.

use crate::{Engine, Error};
use std::time::Duration;
use steadfast_kernel::{KeyName, Payload, Refusal, Revision, Timestamp};
use steadfast_runtime as runtime;

/// How often a change of the key that nobody told us of is looked for. One renewal whose answer was lost is all that there can be.
const LOOKS: usize = 3;

/// Somebody's claim to a lease.
#[derive(Clone)]
pub(super) struct Claim {
    pub(super) engine: Engine,
    pub(super) key: KeyName,
    pub(super) owner: String,
    pub(super) ttl: Duration,
    /// The value of the key, which nobody else gives it: what tells this claim from another of the same owner.
    pub(super) token: Payload,
}

/// What came of a renewal.
pub(super) enum Renewed {
    /// It has that revision now.
    To(Revision),
    /// There is no such key any more.
    Gone,
    /// It is somebody else's.
    Taken,
}

impl Claim {
    pub(super) fn now(&self) -> Timestamp {
        self.engine.clock.now()
    }

    /// Puts the key, if there is none.
    pub(super) async fn put(&self) -> Result<Revision, runtime::Error> {
        let put = runtime::Put {
            value: self.token.clone(),
            ttl: self.ttl,
            owner: Some(self.owner.clone()),
            directory: false,
            on_expire: None,
            if_revision: Some(0),
        };
        Ok(self.engine.inner.put_key(&self.key, put).await?.0)
    }

    /// Renews the key, if it is ours.
    pub(super) async fn renew(&self, mut revision: Revision) -> Result<Renewed, Error> {
        for _ in 0..LOOKS {
            let renewed = self.engine.inner.renew_key(&self.key, self.ttl, Some(self.owner.clone()), Some(revision)).await;
            match renewed {
                Ok((revision, _)) => return Ok(Renewed::To(revision)),
                Err(error) => match refused(error)? {
                    Refused::Gone => return Ok(Renewed::Gone),
                    Refused::Owned => return Ok(Renewed::Taken),
                    Refused::Changed => match self.ours().await? {
                        Some(ours) => revision = ours,
                        None => return Ok(Renewed::Taken),
                    },
                },
            }
        }
        Ok(Renewed::Taken)
    }

    /// Deletes the key, if it is ours.
    pub(super) async fn delete(&self, mut revision: Revision) -> Result<(), Error> {
        for _ in 0..LOOKS {
            match self.engine.inner.delete_key(&self.key, Some(self.owner.clone()), Some(revision)).await {
                Ok(_) => return Ok(()),
                Err(error) => match refused(error)? {
                    Refused::Gone | Refused::Owned => return Ok(()),
                    Refused::Changed => match self.ours().await? {
                        Some(ours) => revision = ours,
                        None => return Ok(()),
                    },
                },
            }
        }
        Ok(())
    }

    /// The revision of the key, if it is ours: a change of it may have been made though its answer was lost.
    pub(super) async fn ours(&self) -> Result<Option<Revision>, Error> {
        let row = self.engine.inner.key(&self.key).await?;
        let ours = row.filter(|row| row.held.value == self.token && row.held.owner.as_deref() == Some(&self.owner));
        Ok(ours.map(|row| row.held.revision))
    }
}

/// Why a change of a key was refused.
pub(super) enum Refused {
    Gone,
    Owned,
    Changed,
}

/// # Errors
/// If that is not why.
pub(super) fn refused(error: runtime::Error) -> Result<Refused, Error> {
    match error {
        runtime::Error::Refused(Refusal::KeyNotFound { .. }) => Ok(Refused::Gone),
        runtime::Error::Refused(Refusal::KeyOwned { .. }) => Ok(Refused::Owned),
        runtime::Error::Refused(Refusal::KeyChanged { .. }) => Ok(Refused::Changed),
        error => Err(error.into()),
    }
}
