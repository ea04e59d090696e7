//! Lists of keys: by name, page by page.

use super::HeldKey;
use crate::{Engine, Error};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::IntoFuture;

/// How many keys a page has unless somebody says otherwise, and how many it may have.
const PAGE: usize = 50;
const PAGE_MAX: usize = 1000;

/// A list of keys that is being put together. Await it for its first page, or the one after a cursor.
#[must_use = "a list is read when this is awaited"]
pub struct ListKeys {
    engine: Engine,
    prefix: String,
    limit: usize,
    after: Option<String>,
}

/// One page of a list of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPage {
    /// The keys, by name.
    pub items: Vec<HeldKey>,
    /// Where the list goes on, if it may.
    pub next: Option<String>,
}

impl Engine {
    /// Lists the keys whose names begin so, by name; all if it is empty. Keys whose time is over are not among them.
    ///
    /// ```
    /// # use steadfast::{Engine, MINUTE};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// # let engine = Engine::in_memory().start().await?;
    /// for user in ["bob", "ada"] {
    ///     engine.put(&format!("session:{user}"), &user).ttl(MINUTE).await?;
    /// }
    /// let page = engine.keys("session:").limit(10).await?;
    /// assert_eq!(page.items[0].key.as_str(), "session:ada");
    /// assert_eq!((page.items.len(), page.next), (2, None));
    /// # Ok(()) }
    /// ```
    pub fn keys(&self, prefix: &str) -> ListKeys {
        ListKeys { engine: self.clone(), prefix: prefix.into(), limit: PAGE, after: None }
    }
}

impl ListKeys {
    /// How many at most: 50 unless this says otherwise, and never more than 1,000.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit.clamp(1, PAGE_MAX);
        self
    }

    /// Goes on where a page ended: its [`next`](KeyPage::next).
    pub fn after(mut self, cursor: &str) -> Self {
        self.after = Some(cursor.into());
        self
    }

    /// Every one of them, from where the list begins: page by page, and all in memory.
    ///
    /// # Errors
    /// If no key begins so, or they cannot be read now.
    pub async fn all(mut self) -> Result<Vec<HeldKey>, Error> {
        let (engine, prefix) = (self.engine.clone(), self.prefix.clone());
        let mut all = Vec::new();
        loop {
            let KeyPage { items, next } = self.limit(PAGE_MAX).read().await?;
            all.extend(items);
            match next {
                Some(next) => self = ListKeys { engine: engine.clone(), prefix: prefix.clone(), limit: PAGE_MAX, after: Some(next) },
                None => return Ok(all),
            }
        }
    }

    async fn read(self) -> Result<KeyPage, Error> {
        let after = self.after.as_deref().map(super::name).transpose()?;
        let (rows, next) = self.engine.inner.keys(&self.prefix, after.as_ref(), self.limit).await?;
        Ok(KeyPage { items: rows.into_iter().map(HeldKey::from).collect(), next: next.map(|name| name.to_string()) })
    }
}

impl IntoFuture for ListKeys {
    type Output = Result<KeyPage, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.read().boxed()
    }
}
