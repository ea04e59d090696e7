//! Several real servers on one real PostgreSQL.

mod database;
mod feed;
mod http;
mod killed;
mod load;
mod pair;
mod reach;
mod record;
mod stop;
mod storm;

use crate::served::Served;
use crate::steadfast::until;
use database::Database;
use std::path::Path;
use std::time::{Duration, Instant};
use steadfast_test_servers::PostgresServer;
use tempfile::TempDir;

/// The shards of a database.
const SHARDS: usize = 64;

/// A server of that name, on a database.
fn join(dir: &Path, url: &str, name: &str, more: &[&str]) -> Served {
    let me = format!("me={name}");
    let args = ["--postgres", url, "--data", name, "--var", &me];
    Served::start(dir, &[&args, more].concat())
}

/// Two servers, of which each works on a half of the shards. Their leases are as long as they are by default: nothing here may wait for the end of one.
struct Pair {
    a: Served,
    b: Served,
    database: Database<'static>,
    dir: TempDir,
}

impl Pair {
    fn start(define: impl FnOnce(&Path), more: &[&str]) -> Self {
        let (dir, database) = (tempfile::tempdir().unwrap(), Database::new(PostgresServer::shared()));
        define(dir.path());
        let [a, b] = ["a", "b"].map(|name| join(dir.path(), &database.url(), name, &[&["--listen", "127.0.0.1:0"], more].concat()));
        Pair { a, b, database, dir }.shared()
    }

    /// Waits until each of them works on its half.
    fn shared(self) -> Self {
        until("they share the work", || (self.database.holders().values().eq(&[SHARDS / 2; 2])).then_some(()));
        self
    }

    /// Starts things until there are some at each server; gives their names, and those that `b` has.
    fn spread(&self, entity: impl Fn(&str) -> String, mut start: impl FnMut(&str)) -> (Vec<String>, Vec<String>) {
        let (mut all, mut at_b) = (Vec::new(), Vec::new());
        while at_b.len() < 2 || all.len() - at_b.len() < 2 {
            let id = format!("n{}", all.len());
            start(&id);
            if self.database.place(&entity(&id)) == self.b.url {
                at_b.push(id.clone());
            }
            all.push(id);
            assert!(all.len() < 30, "all of them are at one server: {all:?} {at_b:?}");
        }
        (all, at_b)
    }
}

/// Lets time go by while something else happens; nothing is waited for by it.
fn meanwhile(time: Duration) {
    let begin = now();
    while begin.elapsed() < time {
        std::thread::park_timeout(time.saturating_sub(begin.elapsed()));
    }
}

#[expect(clippy::disallowed_methods, reason = "real servers live by the real clock")]
fn now() -> Instant {
    Instant::now()
}
