//! The connection that writes. It has an id, which stands in the rows of the shards that it writes; what is sent over another one is refused there.

use crate::connect::{Connection, Connector};
use data_encoding::HEXLOWER;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, MaybeDone, join, join_all, maybe_done, poll_fn};
use rand::TryRng;
use rand::rngs::SysRng;
use std::fmt;
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

/// Who opens connections to write by, one after another: the beginning of their ids.
#[derive(Debug)]
pub(crate) struct Name(String);

impl Name {
    /// One that nobody else has.
    pub(crate) fn new() -> Result<Self, Error> {
        let mut bytes = [0; 8];
        let random = SysRng.try_fill_bytes(&mut bytes);
        random.map_err(|error| Error::unavailable("the system gives no random numbers", error))?;
        Ok(Name(HEXLOWER.encode(&bytes)))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.0)
    }
}

/// A connection that writes.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    /// What stands in the rows of its shards.
    pub(crate) writer: String,
}

/// Begins a transaction, and says so in it: every statement that changes something looks for that (`begun` in the migrations). So if this fails, what was sent
/// behind it changes nothing, instead of each for itself what it can.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL steadfast.transaction = 'begun'";

fn server_name(writer: &str) -> String {
    format!("steadfast writer {writer}")
}

const TERMINATE: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND starts_with(application_name, $1) AND pid <> pg_backend_pid()";

/// Waits for the transaction of a former connection that is still under way, whose outcome is known after that. Rows are locked in the order in which commits do.
const TAKE_OVER: &str = "WITH ours AS (SELECT id FROM steadfast.shards WHERE starts_with(writer, $2) ORDER BY id FOR NO KEY UPDATE)
UPDATE steadfast.shards s SET writer = $1 FROM ours WHERE s.id = ours.id";

impl Session {
    /// Makes the connection of that number.
    pub(crate) async fn open(connector: &Connector, name: &Name, number: u64) -> Result<Self, Error> {
        let writer = format!("{name}{number}");
        let connection = connector.connect(&server_name(&writer)).await?;
        Ok(Session { connection, writer })
    }

    /// Puts this connection in the place of all former ones of that name, of which nothing arrives any more after that.
    pub(crate) async fn take_over(&self, name: &Name) -> Result<(), tokio_postgres::Error> {
        let former = name.to_string();
        self.connection.query(TERMINATE, &[&server_name(&former)]).await?;
        self.connection.query(TAKE_OVER, &[&self.writer, &former]).await.map(drop)
    }

    /// Begins a transaction; what follows ends with [`finish`](Self::finish) or [`rollback`](Self::rollback).
    pub(crate) async fn begin(&self) -> Result<(), tokio_postgres::Error> {
        self.connection.client.batch_execute(BEGIN).await
    }

    pub(crate) async fn rollback(&self) -> Result<(), tokio_postgres::Error> {
        self.connection.client.batch_execute("ROLLBACK").await
    }

    /// Carries all of it out in one transaction and one round trip.
    pub(crate) async fn transact(&self, steps: &[Step<'_>]) -> Result<(), tokio_postgres::Error> {
        self.pipeline(Some(BEGIN), steps).await
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

#[cfg(test)]
mod tests;
