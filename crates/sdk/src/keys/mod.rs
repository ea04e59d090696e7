//! Keys: values with a time to live whose expiry is not forgotten.
//!
//! A key has a value, a time to live, perhaps an owner, and a revision that rises with every change. When its time is over it is gone, and somebody is told: a handler of
//! this process, an address, or a run that is started for it. Who is told is told again until it has worked, across restarts; what cannot be told becomes a dead letter.

mod callbacks;
mod change;
mod handler;
mod held;
mod list;
mod put;
mod watch;

pub use callbacks::CallbackPage;
pub use change::{DeleteKey, RenewKey};
pub use handler::Expired;
pub use held::{HeldKey, KeyStamp};
pub use list::{KeyPage, ListKeys};
pub use put::PutKey;
pub use watch::{Change, Watch, WatchKeys, Watched};

use crate::{Engine, Error};
use steadfast_kernel::KeyName;
use steadfast_runtime as runtime;

impl Engine {
    /// A key; nothing if there is none, or its time is over.
    ///
    /// ```
    /// # use steadfast::{Engine, MINUTE};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// # let engine = Engine::in_memory().start().await?;
    /// engine.put("session:42", &"ada").ttl(30 * MINUTE).await?;
    /// let session = engine.get("session:42").await?.unwrap();
    /// assert_eq!(session.value::<String>()?, "ada");
    /// assert_eq!(engine.get("session:43").await?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If that cannot be a key, or it cannot be read now.
    pub async fn get(&self, key: &str) -> Result<Option<HeldKey>, Error> {
        Ok(self.inner.key(&name(key)?).await?.map(HeldKey::from))
    }
}

fn name(key: &str) -> Result<KeyName, runtime::Error> {
    Ok(KeyName::new(key)?)
}
