//! What a connection does when its transaction does not begin, and with values that cannot be sent.

use super::*;
use crate::settings::Settings;
use crate::tables::{Steps, events, shards};
use bytes::BytesMut;
use std::time::Duration;
use steadfast_kernel::{EntityId, Record, Timestamp};
use steadfast_store::{Append, Batch, Fence};
use steadfast_test_servers::PostgresServer;
use tokio_postgres::types::{IsNull, Type, to_sql_checked};

struct Fixture {
    server: &'static PostgresServer,
    database: String,
    session: Session,
}

impl Fixture {
    async fn new() -> Self {
        let server = PostgresServer::shared();
        let database = server.database();
        let settings = Settings { connect_timeout: Duration::from_secs(60), ..Settings::new(server.url(&database)) };
        let connector = Connector::new(settings).unwrap();
        crate::migrate::migrate(&connector).await.unwrap();
        let session = Session::open(&connector, &Name::new().unwrap(), 1).await.unwrap();
        server.psql(&database, &format!("UPDATE steadfast.shards SET term = 1, writer = '{}'", session.writer));
        Fixture { server, database, session }
    }

    /// What is there of it: the number of the last batch, and events.
    fn found(&self) -> String {
        let found = "SELECT seq, place, (SELECT count(*) FROM steadfast.workflow_events) FROM steadfast.shards WHERE id = 0";
        self.server.psql(&self.database, found)
    }
}

fn batch() -> Batch {
    let record = Record {
        seq: 1,
        epoch: 1,
        kind: "X".into(),
        at: Timestamp::EPOCH,
        subject: None,
        attempt: None,
        backoff_ms: None,
        reason: None,
        payload: None,
        body: vec![].into(),
    };
    let events = vec![Append { shard: 0, entity: EntityId::from_stored("a").unwrap(), record }];
    Batch { fences: vec![Fence { shard: 0, term: 1, after: 0, upto: 1 }], events, ..Batch::default() }
}

/// Whatever the reason is for which BEGIN alone failed, the statements behind it do not commit themselves one by one.
#[tokio::test]
async fn nothing_is_done_if_the_transaction_did_not_begin() {
    let fixture = Fixture::new().await;
    let batches = [batch()];
    let mut steps = Steps::default();
    events::append(&batches, true, &mut steps);
    assert!(fixture.session.pipeline(Some("SELECT 1 / 0"), &steps.0).await.is_err());
    assert_eq!(fixture.found(), "0|0|0");
    let mut steps = Steps::default();
    shards::fence(&batches, &fixture.session.writer, &mut steps);
    events::append(&batches, true, &mut steps);
    assert!(fixture.session.pipeline(Some("SELECT 1 / 0"), &steps.0).await.is_err());
    assert_eq!(fixture.found(), "0|0|0");
    fixture.session.transact(&steps.0).await.unwrap();
    assert_eq!(fixture.found(), "1|1|1");
}

/// A value that the driver cannot write.
#[derive(Debug)]
struct Unwritable;

impl ToSql for Unwritable {
    fn to_sql(&self, _: &Type, _: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        Err("it cannot be written".into())
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[tokio::test]
async fn a_value_that_cannot_be_sent_undoes_all_and_keeps_the_connection() {
    let fixture = Fixture::new().await;
    let batches = [batch()];
    let mut steps = Steps::default();
    shards::fence(&batches, &fixture.session.writer, &mut steps);
    let last = Step { sql: "SELECT $1::text WHERE steadfast.begun()", params: vec![param(Unwritable)] };
    steps.0.push(last);
    let error = fixture.session.transact(&steps.0).await.unwrap_err();
    assert!(!crate::error::is_broken(&error), "{error:?}");
    assert_eq!(fixture.found(), "0|0|0");
    steps.0.pop();
    fixture.session.transact(&steps.0).await.unwrap();
    assert_eq!(fixture.found(), "1|1|0");
}
