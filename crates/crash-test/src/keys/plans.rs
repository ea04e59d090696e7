//! What becomes of the keys: every name goes through all plans, process by process and round by round.

use super::{BAD, DIRECTORY, FLAKY, HOPELESS, HOT, MS, PLAIN, QUIET, RUN, SLOW, wait};
use anyhow::{Result, ensure};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use steadfast::{Clock, Engine, Error, KeyStamp, PutKey, SystemClock};

/// How many names there are of each kind.
const NAMES: u32 = 4;

/// How many plans a process carries out for each name.
const ROUNDS: u32 = 3;

/// How often a process renews the same key.
const RENEWALS: u32 = 60;

/// Carries out the plans of a process.
pub(super) async fn carry_out(engine: &Engine, process: u32) -> Result<()> {
    let values = AtomicU32::new(0);
    let name = |prefix: &str, n: u32| Name { engine, process, n, key: format!("{prefix}{n}"), values: &values };
    let simple = [PLAIN, FLAKY, SLOW, BAD, HOPELESS, RUN, QUIET];
    let simple = simple.into_iter().flat_map(|prefix| (0..NAMES).map(move |n| (prefix, n)));
    let mut plans: Vec<BoxFuture<'_, Result<()>>> = simple.map(|(prefix, n)| simply(name(prefix, n)).boxed()).collect();
    plans.extend((0..NAMES).map(|n| directory(name(DIRECTORY, n)).boxed()));
    plans.extend((0..NAMES / 2).map(|n| hot(name(HOT, n)).boxed()));
    try_join_all(plans).await.map(drop)
}

/// A name, and who asks something of it.
struct Name<'a> {
    engine: &'a Engine,
    process: u32,
    n: u32,
    key: String,
    values: &'a AtomicU32,
}

async fn simply(name: Name<'_>) -> Result<()> {
    for round in 0..ROUNDS {
        let ttl = (8 + (7 * name.n + 11 * round + 5 * name.process) % 30) * MS;
        name.put(ttl).await?;
        match (name.n + name.process + round) % 6 {
            0 => wait(ttl + 10 * MS).await,
            1 => {
                wait(ttl / 2).await;
                name.renew(ttl).await?;
                wait(ttl / 2).await;
                name.renew(ttl / 2).await?;
                wait(ttl).await;
            }
            2 => {
                wait(ttl / 3).await;
                name.delete().await?;
            }
            3 => {
                wait(ttl / 2).await;
                name.put(ttl).await?;
                wait(ttl + 5 * MS).await;
            }
            4 => wait(ttl + round * MS / 2).await, // put again when it has hardly expired
            _ => {
                wait(ttl / 4).await;
                name.is_not_for_others().await?;
                name.delete().await?;
                name.put(2 * ttl).await?;
            }
        }
    }
    Ok(())
}

/// A directory and the keys below it, all seen to by one.
async fn directory(name: Name<'_>) -> Result<()> {
    for round in 0..ROUNDS {
        let ttl = (20 + (9 * name.n + 5 * name.process) % 30) * MS;
        let below = |child: &str| Name { key: format!("{}/{child}", name.key), ..name };
        name.put(ttl).await?;
        for (child, ttl) in [("long", 40 * ttl), ("other/long", 40 * ttl), ("short", ttl / 2)] {
            below(child).put(ttl).await?;
        }
        match (name.n + name.process + round) % 4 {
            0 => {}
            1 => {
                wait(ttl / 2).await;
                name.delete().await?;
                below("late").put(ttl / 2).await?;
            }
            2 => {
                wait(ttl / 2).await;
                name.renew(ttl).await?;
            }
            _ => {
                wait(ttl / 2).await;
                name.put(ttl).await?;
            }
        }
        wait(ttl + round * MS).await;
        below("late").put(ttl / 2).await?;
        wait(10 * MS).await;
    }
    Ok(())
}

/// It outlives most kills, so that its journal becomes long, and is shortened.
async fn hot(name: Name<'_>) -> Result<()> {
    for _ in 0..RENEWALS {
        if !name.renew(2000 * MS).await? {
            name.put(2000 * MS).await?;
        }
        wait(MS).await;
    }
    Ok(())
}

impl Name<'_> {
    /// Some belong to somebody: always to the same one, who is the one that asks.
    fn owner(&self) -> Option<&'static str> {
        self.n.is_multiple_of(2).then_some("me")
    }

    fn owned(&self, put: PutKey) -> PutKey {
        match self.owner() {
            Some(owner) => put.owner(owner),
            None => put,
        }
    }

    async fn put(&self, ttl: Duration) -> Result<bool> {
        let value = format!("{}-{}", self.process, self.values.fetch_add(1, Ordering::Relaxed));
        let mut put = self.owned(self.engine.put(&self.key, &value).ttl(ttl));
        if self.key.starts_with(RUN) {
            put = put.start("noted", &value);
        }
        if self.key == format!("{DIRECTORY}{}", self.n) {
            put = put.directory();
        }
        self.asks(&format!("put {} {value}", ttl.as_micros()));
        self.did(put.await)
    }

    async fn renew(&self, ttl: Duration) -> Result<bool> {
        self.asks(&format!("renew {}", ttl.as_micros()));
        let renew = self.engine.renew(&self.key, ttl);
        let renew = match self.owner() {
            Some(owner) => renew.owner(owner),
            None => renew,
        };
        self.did(renew.await)
    }

    async fn delete(&self) -> Result<()> {
        self.asks("delete");
        let delete = self.engine.delete(&self.key);
        let delete = match self.owner() {
            Some(owner) => delete.owner(owner),
            None => delete,
        };
        match delete.await {
            Ok(revision) => self.say("did", &revision.to_string()),
            Err(error) => self.refused(error)?,
        }
        Ok(())
    }

    /// Somebody else may not renew it, nor may they who do not say who they are.
    async fn is_not_for_others(&self) -> Result<()> {
        if self.owner().is_some() {
            let refused = [self.engine.renew(&self.key, MS).owner("you").await, self.engine.renew(&self.key, MS).await];
            ensure!(refused.iter().all(Result::is_err), "{} was renewed by somebody else", self.key);
        }
        Ok(())
    }

    fn asks(&self, what: &str) {
        self.say("asks", what);
    }

    fn did(&self, answer: Result<KeyStamp, Error>) -> Result<bool> {
        match answer {
            Ok(stamp) => {
                self.say("did", &format!("{} {}", stamp.revision, stamp.expires_at.as_micros()));
                Ok(true)
            }
            Err(error) => self.refused(error).map(|()| false),
        }
    }

    /// It is gone: that may be. Nothing else may.
    fn refused(&self, error: Error) -> Result<()> {
        ensure!(error.code() == "SF0117", "{} refuses: {error}", self.key);
        self.say("refused", "");
        Ok(())
    }

    fn say(&self, verb: &str, what: &str) {
        println!("{}", format!("{verb} {} {} {what}", SystemClock.now().as_micros(), self.key).trim_end());
    }
}
