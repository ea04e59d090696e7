//! Free pages go back to the disk, a few at a time and while the writer has nothing better to do.
//!
//! What is removed leaves free pages in the file, and what is written next takes them. So some are left for that, and more of them under load; only what is over is given back.
//! A step moves pages from the end of the file to free places and is a transaction of its own, so a commit that comes meanwhile waits for one step at most. The file becomes
//! shorter when the log is moved into it the next time.

use rusqlite::Connection;
use std::time::Duration;

/// How many pages (256 KiB) one step gives back: about a millisecond.
const STEP_PAGES: u32 = 64;

/// The line is called empty when nobody has come for this long.
pub(crate) const QUIET: Duration = Duration::from_millis(2);

/// Under load there is one step for so many requests.
const REQUESTS_PER_STEP: u32 = 50;

/// So many free pages (1 MiB) are nothing to be worried about.
const FREE_PAGES_MIN: i64 = 256;

/// One page in twenty may be free, and one in four while there is load.
const FREE_SHARE: i64 = 20;
const FREE_SHARE_UNDER_LOAD: i64 = 4;

/// Whether there is something to give back.
#[derive(Debug)]
pub(crate) struct Vacuum {
    due: bool,
    requests: u32,
}

impl Vacuum {
    /// A file that was just opened may have free pages from before.
    pub(crate) fn new() -> Self {
        Vacuum { due: true, requests: 0 }
    }

    /// True if there may be something to do.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Something was removed.
    pub(crate) fn something_was_removed(&mut self) {
        self.due = true;
    }

    /// A request was served: there is a step now and then, if very much is free. True if something was given back.
    pub(crate) fn after_request(&mut self, db: &Connection) -> bool {
        self.requests += u32::from(self.due);
        if self.requests < REQUESTS_PER_STEP {
            return false;
        }
        self.requests = 0;
        step(db, FREE_SHARE_UNDER_LOAD).unwrap_or_else(warned) // it is still due when the load is over
    }

    /// Nobody is in line. True if something was given back; when there is nothing more, it is not due any more.
    pub(crate) fn when_quiet(&mut self, db: &Connection) -> bool {
        self.due = step(db, FREE_SHARE).unwrap_or_else(warned);
        self.due
    }
}

/// What cannot be given back now stays in the file, where it is used again, until the next time that something is removed.
fn warned(error: rusqlite::Error) -> bool {
    tracing::warn!(%error, "free pages could not be given back to the disk");
    false
}

/// Gives some pages back if more than that share of the file is free.
fn step(db: &Connection, share: i64) -> rusqlite::Result<bool> {
    let count = |pragma| db.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let free = count("freelist_count")?;
    if free <= FREE_PAGES_MIN || free <= count("page_count")? / share {
        return Ok(false);
    }
    // Every row is a page that was given back.
    let mut statement = db.prepare_cached(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
    let mut pages = statement.query([])?;
    while pages.next()?.is_some() {}
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    /// A database of about that many pages of which three in four are free.
    fn database(pages: u32) -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        schema::create(&mut db).unwrap();
        db.execute_batch(&format!(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {pages})
             INSERT INTO events (entity, seq, epoch, type, at, encoding, payload, body) SELECT 'a', n, 1, 'X', 0, 'json', zeroblob(3500), x'' FROM n;
             DELETE FROM events WHERE seq % 4 > 0",
        ))
        .unwrap();
        db
    }

    fn pages(db: &Connection, pragma: &str) -> i64 {
        db.pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
    }

    #[test]
    fn free_pages_are_given_back_in_small_steps_until_few_are_left() {
        let (db, mut vacuum) = (database(2_000), Vacuum::new());
        let (mut all, mut steps) = (pages(&db, "page_count"), 0);
        while vacuum.when_quiet(&db) {
            let left = pages(&db, "page_count");
            assert!((1..=i64::from(STEP_PAGES) + 2).contains(&(all - left)), "{all} pages, then {left}"); // a page that tells where others are may go too
            (all, steps) = (left, steps + 1);
        }
        assert!(steps > 10, "{steps}");
        assert!(!vacuum.is_due());
        assert_eq!(pages(&db, "freelist_count").max(FREE_PAGES_MIN), FREE_PAGES_MIN);
        let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        let events: i64 = db.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
        assert_eq!(events, 500);
    }

    #[test]
    fn under_load_there_is_a_step_now_and_then_and_more_is_left() {
        let (db, mut vacuum) = (database(8_000), Vacuum::new());
        let steps = (0..10_000).filter(|_| vacuum.after_request(&db)).count();
        assert!((10..100).contains(&steps), "{steps}");
        let (free, all) = (pages(&db, "freelist_count"), pages(&db, "page_count"));
        assert!(free > FREE_PAGES_MIN && free <= all / FREE_SHARE_UNDER_LOAD, "{free} of {all}");
        assert!(vacuum.is_due(), "the rest is for quiet times");
    }

    #[test]
    fn nothing_is_done_when_nothing_was_removed() {
        let mut db = Connection::open_in_memory().unwrap();
        schema::create(&mut db).unwrap();
        let mut vacuum = Vacuum::new();
        assert!(!vacuum.when_quiet(&db) && !vacuum.is_due());
        assert_eq!((0..1_000).filter(|_| vacuum.after_request(&db)).count(), 0);
    }
}
