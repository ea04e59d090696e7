//! The change feed goes on when a server dies, and is gone on with at another one.
//!
//! Subject: `crates/server/src/api/feed.rs`.

use super::http::follow_with_cursors;
use super::storm::stroll;
use super::{Pair, SHARDS, join};
use crate::planned::define;
use crate::steadfast::until;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;

const SOON: [&str; 2] = ["--set", "cluster.lease=3s"];

/// What was heard of the feed.
#[derive(Default)]
struct Heard {
    /// By run, in the order in which it came.
    sequences: BTreeMap<String, Vec<u64>>,
    /// The last thing that happened to each run.
    last: BTreeMap<String, Value>,
    cursor: String,
}

impl Heard {
    /// Listens until all of these runs are so far.
    fn until(&mut self, what: &str, feed: impl Iterator<Item = (String, Value)>, runs: &[String], is_so_far: impl Fn(&Value) -> bool) {
        let mut feed = feed;
        while !runs.iter().all(|run| self.last.get(run).is_some_and(&is_so_far)) {
            let (cursor, told) = feed.next().unwrap_or_else(|| panic!("the feed ends before {what}: {:?}", self.sequences));
            let (run, event) = (told["id"].as_str().unwrap().to_owned(), told["event"].clone());
            self.sequences.entry(run.clone()).or_default().push(event["sequence"].as_u64().unwrap());
            self.last.insert(run, event);
            self.cursor = cursor;
        }
    }
}

fn happened_at(event: &Value) -> jiff::Timestamp {
    event["timestamp"].as_str().unwrap().parse().unwrap()
}

#[test]
fn the_feed_goes_on_over_the_death_of_a_server_and_by_cursor_at_a_third_one() {
    let mut pair = Pair::start(|dir| define(dir, "stroll", &stroll()), &SOON);
    let c = join(pair.dir.path(), &pair.database.url(), "c", &[&["--listen", "127.0.0.1:0"], &SOON[..]].concat());
    let share = SHARDS / 3;
    until("all three share the work", || {
        let holders = pair.database.holders();
        (holders.len() == 3 && holders.values().all(|held| *held >= share - 1)).then_some(())
    });
    let mut feed = follow_with_cursors(&pair.a.url, "kind=run");
    let (all, lost) = pair.spread(str::to_owned, |id| drop(pair.a.call(&["run", "start", "stroll", "--id", id]).ends_with(0)));
    let mut heard = Heard::default();
    heard.until("all are under way", &mut feed, &all, |_| true);

    pair.b.tell(Signal::KILL);
    pair.b.ended();
    let died_at = pair.database.value("SELECT to_json(clock_timestamp())");
    let died_at: jiff::Timestamp = died_at.trim_matches('"').parse().unwrap();
    heard.until("its runs go on elsewhere", &mut feed, &lost, |event| happened_at(event) > died_at);
    drop(feed);

    let has_ended = |event: &Value| event["eventType"] == "RUN_COMPLETED";
    assert!(!lost.iter().any(|run| has_ended(&heard.last[run])), "there is something left to hear of");
    let rest = follow_with_cursors(&c.url, &format!("kind=run&after={}", heard.cursor));
    heard.until("all have ended", rest, &all, has_ended);
    for run in &all {
        let length = pair
            .database
            .value(&format!("SELECT max(sequence) FROM steadfast.workflow_events WHERE workflow_id = '{run}'"));
        let each_once: Vec<u64> = (1..=length.parse().unwrap()).collect();
        assert_eq!(heard.sequences[run], each_once, "{run}: nothing is missing, doubled or out of order");
    }
}
