//! Three servers under load, to which everything happens that can: nothing is lost, nothing that is on record is done again, and work goes on soon.
//!
//! Subject: `crates/runtime/src/cluster/mod.rs`.

use super::database::Database;
use super::http::{ask, is_done};
use super::load::{CLIMB, Load, STUMBLE, WALK};
use super::{SHARDS, join, meanwhile, now, record};
use crate::planned::define;
use crate::served::Served;
use crate::steadfast::until;
use rustix::process::Signal;
use serde_json::json;
use std::time::{Duration, Instant};
use steadfast_test_servers::{PostgresServer, Proxy};
use tempfile::TempDir;

const LEASE: Duration = Duration::from_secs(3);

/// Work goes on so long after its server has been heard of for the last time, at the latest.
const PROMISED: Duration = LEASE.saturating_add(Duration::from_secs(2));

/// A machine on which one look at the tables takes long gets so many looks of that length on top.
const LOOKS: u32 = 10;

/// But no more than that: what takes longer is late on any machine.
const SPARED_MAX: Duration = Duration::from_secs(3);

/// So many steps are to be tried again while a server is stopped.
const STUMBLES: usize = 40;

const NAMES: [&str; 3] = ["a", "b", "c"];

struct Storm {
    servers: Vec<Served>,
    load: Option<Load>,
    proxy: Proxy,
    database: String,
    postgres: PostgresServer,
    dir: TempDir,
}

/// What a server had when something happened to it.
struct Had {
    instance: String,
    shards: Vec<String>,
    /// Runs that are under way there, to which something happens all the time.
    strolls: Vec<String>,
}

/// When something happened to a server.
struct Fell {
    at: Instant,
    /// By the clock of the database.
    since: String,
}

impl Storm {
    fn begin() -> Self {
        let dir = tempfile::tempdir().unwrap();
        define(dir.path(), "walk", WALK);
        define(dir.path(), "climb", CLIMB);
        define(dir.path(), "stroll", &stroll());
        define(dir.path(), "stumble", STUMBLE);
        let postgres = PostgresServer::start();
        let (database, proxy) = (postgres.database(), Proxy::before(postgres.port()));
        let mut storm = Storm { servers: Vec::new(), load: None, proxy, database, postgres, dir };
        storm.servers = (0..NAMES.len()).map(|number| storm.serve(number, "127.0.0.1:0")).collect();
        storm.until_shared();
        storm.load = Some(Load::begin(storm.servers.iter().map(|served| served.url.clone()).collect()));
        storm
    }

    /// The last of them reaches the database through something that loses what they say.
    fn serve(&self, number: usize, listen: &str) -> Served {
        let port = if number == 2 { self.proxy.port() } else { self.postgres.port() };
        let url = format!("postgresql://postgres@127.0.0.1:{port}/{}", self.database);
        let lease = format!("cluster.lease={}s", LEASE.as_secs());
        join(self.dir.path(), &url, NAMES[number], &["--listen", listen, "--set", &lease])
    }

    fn database(&self) -> Database<'_> {
        Database { server: &self.postgres, name: self.database.clone() }
    }

    /// Waits until each of them works on its share.
    fn until_shared(&self) {
        let share = SHARDS.div_ceil(NAMES.len());
        until("they share the work", || {
            let holders = self.database().holders();
            (holders.values().sum::<usize>() == SHARDS && holders.len() == 3 && holders.values().all(|held| *held <= share)).then_some(())
        });
    }

    /// Looks what a server has, once some strolls are under way there.
    fn had(&self, number: usize, what: &str) -> Had {
        let database = self.database();
        let of = format!(
            "FROM steadfast.instances i JOIN steadfast.leases l ON l.holder = i.id WHERE i.address = '{}'",
            self.servers[number].url
        );
        let column = |sql: &str| database.rows(sql).into_iter().map(|row| row[0].clone()).collect::<Vec<_>>();
        let shards = column(&format!("SELECT l.shard {of}"));
        let mut strolls = Vec::new();
        for nth in 0..40 {
            let id = format!("stroll-{what}-{nth}");
            self.start("stroll", &id, nth);
            if shards.contains(&database.value(&format!("SELECT shard FROM steadfast.workflow_state WHERE workflow_id = '{id}'"))) {
                strolls.push(id);
            }
            if strolls.len() == 2 {
                break;
            }
        }
        assert_eq!(strolls.len(), 2, "none of them is at the server");
        Had { instance: database.value(&format!("SELECT i.id {of} LIMIT 1")), shards, strolls }
    }

    /// All that a server had is held by one that lives and goes on, in time.
    #[expect(clippy::print_stdout, reason = "how long it took is worth to be seen")]
    fn goes_on_elsewhere(&self, what: &str, had: &Had, Fell { at, since }: Fell) {
        let database = self.database();
        let orphans = format!(
            "SELECT count(*) FROM steadfast.leases l LEFT JOIN steadfast.instances i ON i.id = l.holder
            WHERE l.shard IN ({}) AND (l.holder IS NOT DISTINCT FROM '{}' OR i.id IS NULL OR l.until <= clock_timestamp())",
            had.shards.join(","),
            had.instance
        );
        let held = Took::until(at, "somebody else has what it had", || database.value(&orphans) == "0");
        let moved = format!(
            "SELECT count(DISTINCT workflow_id) FROM steadfast.workflow_events WHERE occurred_at > '{since}' AND workflow_id IN ('{}')",
            had.strolls.join("','")
        );
        let went_on = Took::until(at, "its runs go on", || database.value(&moved) == had.strolls.len().to_string());
        println!("{what}: {} shards taken over after {held}, their runs went on after {went_on}", had.shards.len());
        held.is_in_time();
        went_on.is_in_time();
    }

    fn start(&self, workflow: &str, id: &str, nth: usize) {
        let run = json!({ "workflow": workflow, "id": id });
        until("it begins", || is_done(&ask(&self.servers[nth % 3].url, "POST", "/v1/runs", &run)).then_some(()));
    }

    fn fell(&self, at: Instant) -> Fell {
        Fell { at, since: self.database().value("SELECT clock_timestamp()") }
    }

    fn killed(&mut self, number: usize) -> Fell {
        let at = now();
        self.servers[number].tell(Signal::KILL);
        self.servers[number].ended();
        self.fell(at)
    }

    fn starts_again(&mut self, number: usize, listen: &str) {
        self.servers[number] = self.serve(number, listen);
        self.load.as_ref().unwrap().moved(number, &self.servers[number].url);
    }

    fn listens(&self, number: usize) -> String {
        self.servers[number].url.strip_prefix("http://").unwrap().to_owned()
    }

    fn is_stopped_for_longer_than_its_lease(&self, number: usize) {
        let (had, served) = (self.had(number, "stopped"), &self.servers[number]);
        let before = served.log().len();
        (0..STUMBLES).for_each(|nth| self.start("stumble", &format!("stumble-{nth}"), nth));
        let stumbled = "SELECT count(DISTINCT workflow_id) FROM steadfast.workflow_events WHERE workflow_id LIKE 'stumble-%' AND event_type = 'RETRY_SCHEDULED'";
        until("all have stumbled", || (self.database().value(stumbled) == STUMBLES.to_string()).then_some(()));
        let at = now();
        served.tell(Signal::STOP);
        self.goes_on_elsewhere("stopped for longer than its lease", &had, self.fell(at));
        let open = "SELECT count(*) FROM steadfast.workflow_state WHERE workflow_id LIKE 'stumble-%' AND status <> 'COMPLETED'";
        until("all that stumbled are done elsewhere", || (self.database().value(open) == "0").then_some(()));
        served.tell(Signal::CONT);
        let sees = ["could not be renewed in time", "another instance has the shard", "the shard is over for this instance"];
        until("it sees that it has lost everything", || {
            let log = &served.log()[before..];
            sees.iter().any(|part| log.contains(part)).then_some(())
        });
    }

    /// What is asked of the database arrives, and what it answers does not: whether a commit was made is not known until it is asked again.
    fn loses_answers(&self) {
        let before = self.servers[2].log().len();
        let in_doubt = || self.servers[2].log()[before..].matches("a commit failed").count();
        for nth in 0.. {
            self.proxy.swallow_answers();
            meanwhile(Duration::from_millis(40 * (nth % 6)));
            self.proxy.let_go();
            self.proxy.cut();
            meanwhile(Duration::from_millis(300));
            if nth >= 6 && in_doubt() >= 2 {
                return;
            }
            assert!(nth < 60, "no commit was ever in doubt: {}", &self.servers[2].log()[before..]);
        }
    }

    /// The database is back: all shards have somebody who works on them soon.
    fn is_owned_again(&self) {
        let owned = "SELECT count(*) FROM steadfast.leases WHERE holder IS NOT NULL AND until > clock_timestamp()";
        let took = Took::until(now(), "every shard has an owner", || self.database().value(owned) == SHARDS.to_string());
        took.is_in_time();
        self.until_shared();
    }

    fn does_not_reach_the_database(&self, number: usize) {
        let had = self.had(number, "cut-off");
        let at = now();
        self.proxy.swallow();
        self.goes_on_elsewhere("cut off from the database", &had, self.fell(at));
        self.proxy.let_go();
        self.proxy.cut();
    }
}

/// Something happens every half second.
pub(super) fn stroll() -> String {
    let steps = (0..24).map(|nth| format!("  - {{ name: s{nth}, wait: 500ms }}\n"));
    format!("workflow: stroll\nsteps:\n{}", steps.collect::<String>())
}

/// How long something took.
struct Took {
    time: Duration,
    /// How long the slowest look took.
    slowest: Duration,
}

impl Took {
    fn until(begun: Instant, what: &str, mut look: impl FnMut() -> bool) -> Self {
        let mut slowest = Duration::ZERO;
        until(what, || {
            let looked = now();
            let there = look();
            slowest = slowest.max(looked.elapsed());
            there.then_some(())
        });
        Took { time: begun.elapsed(), slowest }
    }

    #[track_caller]
    fn is_in_time(&self) {
        assert!(self.time <= PROMISED + (self.slowest * LOOKS).min(SPARED_MAX), "it took {self}");
    }
}

impl std::fmt::Display for Took {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{:.2?} (slowest look {:.2?})", self.time, self.slowest)
    }
}

#[test]
fn whatever_happens_to_servers_and_database_nothing_is_lost_or_done_again() {
    let (begun, mut storm) = (now(), Storm::begin());

    let had = storm.had(0, "killed");
    let fell = storm.killed(0);
    storm.goes_on_elsewhere("killed", &had, fell);
    storm.starts_again(0, &storm.listens(0));
    storm.until_shared();

    let had = storm.had(1, "moved");
    let fell = storm.killed(1);
    storm.starts_again(1, "127.0.0.1:0");
    storm.goes_on_elsewhere("killed and started again elsewhere", &had, fell);
    storm.until_shared();

    storm.is_stopped_for_longer_than_its_lease(1);
    storm.until_shared();

    storm.postgres.restart();
    storm.is_owned_again();

    storm.loses_answers();
    storm.until_shared();
    storm.does_not_reach_the_database(2);
    storm.until_shared();

    storm.postgres.kill();
    storm.postgres.restart();
    storm.is_owned_again();

    let had = storm.had(0, "again");
    let fell = storm.killed(0);
    storm.starts_again(0, &storm.listens(0));
    storm.goes_on_elsewhere("killed and started again at once", &had, fell);

    let acknowledged = storm.load.take().unwrap().end();
    let database = storm.database();
    let open = "SELECT workflow_id, status, wait_reason FROM steadfast.workflow_state WHERE status <> 'COMPLETED' LIMIT 5";
    until("all runs have completed", || database.rows(open).is_empty().then_some(()));
    storm.until_shared();

    record::nothing_is_lost(&database, &acknowledged);
    record::nothing_is_missing_in_between(&database);
    let (lines, recorded) = (record::lines(storm.dir.path()), record::recorded(&database));
    let late = record::begun_after_the_end(&lines, &recorded);
    assert_eq!(late, [""; 0], "steps were begun again that are on record");
    let (runs, failures) = (acknowledged.runs.len(), acknowledged.failures);
    println!(
        "{runs} runs, {} signals, {} keys acknowledged, {failures} answers were none; {} steps recorded, begun {} times; {:.1?}",
        acknowledged.signals.len(),
        acknowledged.keys.len(),
        recorded.len(),
        lines.len(),
        begun.elapsed()
    );
    assert!(runs > 60 && lines.len() >= recorded.len(), "there was load: {runs} runs");
}
