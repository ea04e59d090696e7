//! How long steps say that they live, and how far they have come.

use crate::Ctx;
use crate::workflow::{decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_kernel::Failure;
use steadfast_runtime::host;

/// Belongs to one attempt of a step. It can be moved into a task or a thread that does the work.
#[derive(Clone)]
pub struct Heartbeat(Option<host::Heartbeat>);

impl Ctx {
    /// Inside a step: how the attempt says that it lives, and how far it has come. Outside of a step nothing comes of it.
    ///
    /// ```
    /// # use steadfast::{Ctx, Failure, SECOND, workflow};
    /// #[workflow]
    /// async fn import(ctx: Ctx, rows: u64) -> Result<u64, Failure> {
    ///     ctx.step("copy", || async {
    ///         let mut done = ctx.last_heartbeat::<u64>()?.unwrap_or_default(); // where the attempt before this one had come to
    ///         let heartbeat = ctx.heartbeat();
    ///         while done < rows {
    ///             done += 1; // copy a row
    ///             heartbeat.beat(&done)?;
    ///         }
    ///         Ok::<_, Failure>(done)
    ///     })
    ///     .heartbeat_timeout(30 * SECOND)
    ///     .await
    /// }
    /// ```
    pub fn heartbeat(&self) -> Heartbeat {
        Heartbeat(self.context().heartbeat())
    }

    /// Inside a step: what the attempt before this one said last, or this one before the process died.
    ///
    /// # Errors
    /// If it is not a `T`.
    pub fn last_heartbeat<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.context().last_heartbeat().map(|details| decode(&details, "the last heartbeat")).transpose()
    }
}

impl Heartbeat {
    /// Says that the attempt lives, and how far it has come.
    ///
    /// # Errors
    /// If what is said cannot be written as JSON, or is larger than allowed.
    ///
    /// # Durability
    /// The last word before a failure is recorded with it. Words before a crash are recorded at intervals
    /// ([`Config::heartbeat_every`](crate::Config::heartbeat_every)), so the last ones may be lost.
    pub fn beat<T: Serialize + ?Sized>(&self, details: &T) -> Result<(), Failure> {
        if let Some(heartbeat) = &self.0 {
            heartbeat.beat(encode(details, "the heartbeat")?)?;
        }
        Ok(())
    }
}
