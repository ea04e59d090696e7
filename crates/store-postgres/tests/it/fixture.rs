//! Databases for tests, and what is written to them.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::run::Recover;
use steadfast_kernel::{EntityId, Held, KeyName, Payload, Record, RunId, Seq, Status, Timestamp, WorkflowName};
use steadfast_store::{Append, Batch, Commit, Error, Fence, Head, KeyRow, RunRow, ShardId, Store};
use steadfast_store_postgres::{Postgres, Settings};
use steadfast_test_servers::{PostgresServer, Proxy};

/// A database of its own on the shared server.
pub(crate) struct Database {
    pub(crate) server: &'static PostgresServer,
    pub(crate) name: String,
}

impl Database {
    pub(crate) fn new() -> Self {
        let server = PostgresServer::shared();
        Database { server, name: server.database() }
    }

    /// Few connections, because many tests run at once.
    pub(crate) fn settings(&self) -> Settings {
        settings(self.server.url(&self.name))
    }

    pub(crate) async fn open(&self) -> Postgres {
        Postgres::open(self.settings()).await.unwrap()
    }

    /// Somebody else who uses the database.
    pub(crate) async fn client(&self) -> tokio_postgres::Client {
        let (client, speaking) = tokio_postgres::connect(&self.server.url(&self.name), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(speaking);
        client
    }

    /// From now on whoever reads that table waits, but for no lock, until it is [opened](Self::open_tables).
    pub(crate) fn close_table(&self, table: &str) {
        self.psql(&format!(
            "CREATE TABLE gate ();
             CREATE FUNCTION pass() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
               WHILE NOT EXISTS (SELECT FROM public.gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN 1; END $$;
             ALTER TABLE steadfast.{table} RENAME TO {table}_behind;
             CREATE VIEW steadfast.{table} AS SELECT t.* FROM (SELECT public.pass() AS one OFFSET 0) AS gate
             LEFT JOIN steadfast.{table}_behind t ON gate.one = 1 OFFSET 0"
        ));
    }

    pub(crate) fn open_tables(&self) {
        self.psql("INSERT INTO gate DEFAULT VALUES");
    }

    /// How many of the connections of stores are in such a state.
    pub(crate) fn connections(&self, clause: &str) -> usize {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'steadfast%'";
        self.psql(&format!("{count} AND {clause}")).parse().unwrap()
    }

    pub(crate) fn psql(&self, sql: &str) -> String {
        self.server.psql(&self.name, sql)
    }
}

/// Patient, because the machine may have much else to do.
pub(crate) fn settings(url: String) -> Settings {
    let connect_timeout = Duration::from_secs(60);
    Settings { connections_max: 3, connect_timeout, ..Settings::new(url) }
}

/// The database behind a proxy.
pub(crate) fn behind(proxy: &Proxy, database: &Database) -> Settings {
    let url = database
        .server
        .url(&database.name)
        .replace(&format!(":{}/", database.server.port()), &format!(":{}/", proxy.port()));
    settings(url)
}

pub(crate) fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

pub(crate) fn entity(id: &str) -> EntityId {
    EntityId::from_stored(id).unwrap()
}

/// The beginning of 2026.
pub(crate) fn new_year() -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000)
}

pub(crate) fn record(seq: Seq) -> Record {
    Record {
        seq,
        epoch: 1,
        kind: "STEP_COMPLETED".into(),
        at: new_year(),
        subject: None,
        attempt: Some(1),
        backoff_ms: None,
        reason: None,
        payload: None,
        body: Bytes::from_static(b"\0body"),
    }
}

pub(crate) fn row(id: &str) -> RunRow {
    RunRow {
        shard: 0,
        run: run(id),
        workflow: WorkflowName::new("bill").unwrap(),
        tenant: None,
        status: Status::Running,
        wait: None,
        text: None,
        recover: Some(Recover::Host),
        started_at: new_year(),
        ended_at: None,
        task: None,
    }
}

pub(crate) fn key(name: &str, value: &'static [u8]) -> KeyRow {
    let held = Held {
        value: Payload::json(value),
        owner: None,
        ttl: Duration::from_secs(60),
        expires_at: new_year(),
        revision: 1,
        put_at: new_year(),
        directory: false,
        on_expire: None,
    };
    KeyRow { shard: 0, key: KeyName::new(name).unwrap(), held, ended_at: None, ended_below: None }
}

/// An entry of a run in that shard.
pub(crate) fn event(shard: ShardId, id: &str, seq: Seq) -> Append {
    Append { shard, entity: entity(id), record: record(seq) }
}

/// The batch with a new claim of shard 0.
pub(crate) async fn batch(store: &Postgres, batch: Batch) -> Batch {
    let Head { term, seq } = store.claim(0).await.unwrap();
    Batch { fences: vec![Fence { shard: 0, term, after: seq, upto: seq + 1 }], ..batch }
}

/// Somebody who has a shard. Its batches have one event each, and follow on from each other.
pub(crate) struct Holder<'a> {
    store: &'a Postgres,
    pub(crate) shard: ShardId,
    pub(crate) head: Head,
    /// How many events each journal has.
    written: BTreeMap<String, Seq>,
    /// Whose was the last one.
    last: String,
}

impl<'a> Holder<'a> {
    pub(crate) async fn claim(store: &'a Postgres, shard: ShardId) -> Self {
        let head = store.claim(shard).await.unwrap();
        Holder { store, shard, head, written: BTreeMap::new(), last: String::new() }
    }

    /// Puts the next event of that run in line.
    pub(crate) fn send(&mut self, id: &str) -> Commit {
        let (after, seq) = (self.head.seq, self.written.entry(id.into()).or_default());
        (self.head.seq, *seq, self.last) = (after + 1, *seq + 1, id.into());
        let fences = vec![Fence { shard: self.shard, term: self.head.term, after, upto: after + 1 }];
        self.store.commit(Batch { fences, events: vec![event(self.shard, id, *seq)], ..Batch::default() })
    }

    /// Sends one that will fail; the next one takes its place.
    pub(crate) async fn fail(&mut self, id: &str) -> Error {
        let error = self.send(id).await.unwrap_err();
        self.undo();
        error
    }

    /// The last one was not applied.
    pub(crate) fn undo(&mut self) {
        self.head.seq -= 1;
        *self.written.entry(self.last.clone()).or_default() -= 1;
    }
}

/// How many events a journal has, which has no gaps.
pub(crate) async fn seqs(store: &Postgres, id: &str) -> Seq {
    let journal = store.journal(&entity(id), 0, 9999).await.unwrap();
    assert!(journal.iter().map(|record| record.seq).eq(1..=journal.len() as u64), "{journal:?}");
    journal.len() as u64
}

/// Looks again and again until something holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looking)
        .await
        .unwrap_or_else(|_| panic!("waited for nothing: {what}"));
}
