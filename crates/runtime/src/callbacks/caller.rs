//! Who can reach an address. The engine itself knows no HTTP.

use futures_util::future::BoxFuture;
use steadfast_kernel::{Attempt, Failure, KeyName, Payload, Revision, Timestamp};

/// What is told of an expiry.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The key.
    pub key: KeyName,
    /// The revision that expired.
    pub revision: Revision,
    /// The value that it had.
    pub value: Payload,
    /// The owner that it had.
    pub owner: Option<String>,
    /// When its time was over.
    pub expired_at: Timestamp,
    /// Which attempt this is.
    pub attempt: Attempt,
}

impl Call {
    /// The same for all attempts to tell of this expiry, and for no other: what lets the one who is told see each expiry once.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.key, self.revision)
    }
}

/// Tells those who answer at an address.
pub trait Caller: Send + Sync + 'static {
    /// Whether that address can be called at all.
    ///
    /// # Errors
    /// Why not, and what to do about it.
    fn check(&self, url: &str) -> Result<(), String>;

    /// What stands for the target of that address: those that share it also share their fate.
    fn target(&self, url: &str) -> String;

    /// Tells. It is dropped when its time is over.
    fn call(&self, url: &str, call: Call) -> BoxFuture<'static, Result<(), Failure>>;
}
