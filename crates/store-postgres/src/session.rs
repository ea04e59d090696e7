//! The connection that writes. It has an id, which stands in the rows of the shards that it writes; what is sent over another one is refused there.

use crate::connect::{Connection, Connector};
use data_encoding::HEXLOWER;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, MaybeDone, join, join_all, maybe_done, poll_fn};
use rand::TryRng;
use rand::rngs::SysRng;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use steadfast_store::Error;
use tokio_postgres::types::ToSql;

/// A value of a statement.
pub(crate) type Param<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// A value of a statement.
pub(crate) fn param<'a>(value: impl ToSql + Sync + Send + 'a) -> Param<'a> {
    Box::new(value)
}

/// A statement of a transaction.
pub(crate) struct Step<'a> {
    pub(crate) sql: &'static str,
    pub(crate) params: Vec<Param<'a>>,
}

/// A connection that writes.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) id: Former,
}

/// What is known of a connection that writes, or wrote.
#[derive(Clone, Debug)]
pub(crate) struct Former {
    pub(crate) writer: String,
    pid: i32,
}

impl Former {
    fn name(&self) -> String {
        name(&self.writer)
    }
}

fn name(writer: &str) -> String {
    format!("steadfast writer {writer}")
}

const TERMINATE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2";

/// Waits for the transaction of a former connection that is still under way, whose outcome is known after that.
const TAKE_OVER: &str = "UPDATE steadfast.shards SET writer = $1 WHERE writer = $2";

impl Session {
    pub(crate) async fn open(connector: &Connector) -> Result<Self, Error> {
        let mut bytes = [0; 8];
        let random = SysRng.try_fill_bytes(&mut bytes);
        random.map_err(|error| Error::unavailable("the system gives no random numbers", error))?;
        let writer = HEXLOWER.encode(&bytes);
        let connection = connector.connect(&name(&writer)).await?;
        let pid = connection.pid;
        Ok(Session { connection, id: Former { writer, pid } })
    }

    /// Puts this connection in the place of another one, of which nothing arrives any more after that.
    pub(crate) async fn take_over(&self, former: &Former) -> Result<(), tokio_postgres::Error> {
        self.connection.query(TERMINATE, &[&former.pid, &former.name()]).await?;
        self.connection.query(TAKE_OVER, &[&self.id.writer, &former.writer]).await.map(drop)
    }

    /// Carries all of it out in one transaction and one round trip.
    pub(crate) async fn transact(&self, steps: &[Step<'_>]) -> Result<(), tokio_postgres::Error> {
        self.pipeline(Some("BEGIN ISOLATION LEVEL READ COMMITTED"), steps).await
    }

    /// The same at the end of a transaction that has begun.
    pub(crate) async fn finish(&self, steps: &[Step<'_>]) -> Result<(), tokio_postgres::Error> {
        self.pipeline(None, steps).await
    }

    async fn pipeline(&self, begin: Option<&str>, steps: &[Step<'_>]) -> Result<(), tokio_postgres::Error> {
        let mut statements = Vec::with_capacity(steps.len());
        for step in steps {
            statements.push(self.connection.prepared(step.sql).await?);
        }
        let client = &self.connection.client;
        let params: Vec<Vec<&(dyn ToSql + Sync)>> = steps
            .iter()
            .map(|step| step.params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect())
            .collect();
        let begin = begin.map(|begin| client.batch_execute(begin).boxed());
        let execute = |(statement, params)| async move { client.execute(statement, params).await.map(drop) }.boxed();
        let mut sent: Vec<Sent<'_>> = begin
            .into_iter()
            .chain(statements.iter().zip(params.iter().map(Vec::as_slice)).map(execute))
            .map(|step| Box::pin(maybe_done(step)))
            .collect();
        let all_sent = send(&mut sent).await;
        // What could not be sent is missing in what the server has, so that must not be committed.
        let end = client.batch_execute(if all_sent { "COMMIT" } else { "ROLLBACK" });
        let (_, end) = join(join_all(sent.iter_mut().map(Pin::as_mut)), end).await;
        // After an error the rest fails, and COMMIT undoes what was before it; so the first error tells.
        sent.iter_mut().try_for_each(|step| step.as_mut().take_output().unwrap_or(Ok(())))?;
        end
    }
}

type Sent<'a> = Pin<Box<MaybeDone<BoxFuture<'a, Result<(), tokio_postgres::Error>>>>>;

/// Sends all of them, in order: the first poll of each does. True if none has failed at once.
async fn send(steps: &mut [Sent<'_>]) -> bool {
    poll_fn(|context| {
        for step in steps.iter_mut() {
            let _its_answer_is_waited_for_later = step.as_mut().poll(context);
        }
        Poll::Ready(steps.iter_mut().all(|step| !matches!(step.as_mut().output_mut(), Some(Err(_)))))
    })
    .await
}
