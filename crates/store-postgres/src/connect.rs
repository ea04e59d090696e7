//! Connections: how one is made, and what it remembers.

use crate::error::{CONNECT, Database, said};
use crate::settings::{Address, Settings};
use crate::tls;
use futures_util::future::poll_fn;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::Error;
use tokio::sync::watch;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Notification, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long somebody may hold up others: in a transaction that it does not go on with, or by waiting for a row with others behind it. A take-over waits for
/// that, so it is much shorter than what a long list may take.
const HOLD_UP_MAX: Duration = Duration::from_secs(2);

/// How long the network may confirm nothing of what was sent before a connection is given up: a server that is gone without a word is found out by that, however long
/// an answer may take.
const UNHEARD_MAX: Duration = Duration::from_secs(10);

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    settings: Settings,
    address: Address,
    pub(crate) database: Database,
    /// Rises when the database may have another place: connections that were made before are not used any more.
    generation: Arc<watch::Sender<u64>>,
}

impl Connector {
    pub(crate) fn new(settings: Settings) -> Result<Self, Error> {
        let address = settings
            .address()
            .map_err(|error| Error::unavailable("a setting of PostgreSQL cannot be used", error))?;
        let database = Database(format!("PostgreSQL at {address}"));
        Ok(Connector { settings, address, database, generation: Arc::default() })
    }

    /// Those connections that were made up to now are not used any more.
    pub(crate) fn leave_all(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// The server of that connection may not be written any more: others are at the same one. If they have left it already, those that they have now stay.
    pub(crate) fn leave(&self, connection: &Connection) {
        self.generation.send_if_modified(|generation| {
            let is_first = *generation == connection.generation;
            *generation += u64::from(is_first);
            is_first
        });
    }

    /// Whether that connection may still be used.
    pub(crate) fn is_current(&self, connection: &Connection) -> bool {
        *self.generation.borrow() == connection.generation
    }

    /// Changes when connections that were made before are not used any more.
    pub(crate) fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How long to wait for an answer: the server has its own limit, which comes first.
    pub(crate) fn patience(&self) -> Duration {
        self.settings.statement_timeout + self.connect_within()
    }

    /// How long it may take to connect: every host that is named has its time, or the second one would never be tried while the first one is silent.
    fn connect_within(&self) -> Duration {
        self.settings.connect_timeout * u32::try_from(self.address.config.get_hosts().len().max(1)).unwrap_or(u32::MAX)
    }

    /// A connection of that name. A task of its own speaks to the server until the connection is dropped.
    pub(crate) async fn connect(&self, name: &str) -> Result<Connection, Error> {
        self.connect_to_hear(name, |_| ()).await
    }

    /// The same, with what the server says unasked, as it comes. It is dropped when the connection has ended.
    pub(crate) async fn connect_to_hear(&self, name: &str, hear: impl FnMut(Notification) + Send + 'static) -> Result<Connection, Error> {
        match tokio::time::timeout(self.connect_within(), self.dial(name, hear)).await {
            Ok(connected) => connected,
            Err(_) => Err(self.database.too_slow(CONNECT)),
        }
    }

    async fn dial(&self, name: &str, mut hear: impl FnMut(Notification) + Send + 'static) -> Result<Connection, Error> {
        let (trouble, generation) = (|error| self.database.trouble(CONNECT, error), *self.generation.borrow());
        // Files are read at each connect, because they change; that may take a while.
        let connector = self.clone();
        let read = tokio::task::spawn_blocking(move || connector.read_files()).await;
        let (mut config, tls) = read.map_err(|error| Error::unavailable("files cannot be read", error))??;
        config.application_name(name);
        let (client, mut speaking) = config.connect(tls.clone()).await.map_err(trouble)?;
        tokio::spawn(async move {
            while let Some(message) = poll_fn(|context| speaking.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notification(note)) => hear(note),
                    Ok(_) => {}
                    Err(error) => return tracing::debug!(error = said(&error), "a connection to PostgreSQL has ended"),
                }
            }
        });
        client.batch_execute(&self.greeting()).await.map_err(trouble)?;
        let about = "SELECT pg_is_in_recovery(), current_setting('server_encoding')";
        let row = client.query_one(about, &[]).await.map_err(trouble)?;
        self.admit(row.try_get(0).map_err(trouble)?, row.try_get(1).map_err(trouble)?)?;
        Ok(Connection { client, tls, generation, statements: Mutex::default() })
    }

    fn read_files(&self) -> Result<(Config, MakeRustlsConnect), Error> {
        let mut config = self.address.config.clone();
        config.connect_timeout(self.settings.connect_timeout);
        config
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3);
        config.tcp_user_timeout(self.patience().min(UNHEARD_MAX));
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if let Some(file) = &self.settings.password_file {
            let password = std::fs::read_to_string(file);
            let unreadable = |error| Error::unavailable(format!("the password file {} cannot be read", file.display()), error);
            config.password(password.map_err(unreadable)?.trim_end_matches(['\r', '\n']));
        }
        let tls = tls::connector(&self.address).map_err(|error| Error::unavailable("TLS cannot be used", error))?;
        Ok((config, tls))
    }

    /// A standby has what was committed a while ago, and another encoding cannot have every text.
    fn admit(&self, is_standby: bool, encoding: &str) -> Result<(), Error> {
        if is_standby {
            return Err(Error::ReadOnly { what: format!("use {}", self.database.0), source: "it is a standby of another server".into() });
        }
        if encoding != "UTF8" {
            let why = format!("its encoding is {encoding}, and it has to be UTF8");
            return Err(Error::Foreign { path: self.database.0.clone().into(), why });
        }
        Ok(())
    }

    /// What every connection is set to, whatever the server or the user says: time limits, and that a commit is durable. A server that does not hear from us
    /// any more finds out as soon as we do. Everything that is long is read in the order of an index and no further than somebody wants it; a bitmap of all that
    /// fits, which is sorted then, looks cheaper whenever there is more of it than the server believes.
    fn greeting(&self) -> String {
        let (limit, hold_up) = (self.settings.statement_timeout, self.settings.statement_timeout.min(HOLD_UP_MAX));
        let (limit, hold_up) = (limit.as_millis(), hold_up.as_millis());
        format!(
            "SET statement_timeout = {limit}; SET lock_timeout = {hold_up}; SET idle_in_transaction_session_timeout = {hold_up}; SET jit = off; SET enable_bitmapscan = off;
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
SET client_min_messages = error; SET default_transaction_isolation = 'read committed';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
    }
}

/// A connection, and the statements that were prepared on it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    tls: MakeRustlsConnect,
    generation: u64,
    statements: Mutex<BTreeMap<String, Statement>>,
}

impl Connection {
    /// The statement, prepared once.
    pub(crate) async fn prepared(&self, sql: &str) -> Result<Statement, tokio_postgres::Error> {
        if let Some(statement) = self.statements.lock().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(crate) async fn query(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, params).await
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Ends a query that nobody waits for any more, and returns when the server is done with it.
    pub(crate) async fn cancel(self) {
        let cancelled = self.client.cancel_token().cancel_query(self.tls.clone()).await;
        if let Err(error) = cancelled {
            tracing::debug!(error = said(&error), "a query that nobody waits for goes on to its end");
        }
        let _its_answer_comes_after_that_of_the_query = self.client.batch_execute("").await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_test_servers::PostgresServer;

    /// Somebody who has stopped in the middle of a commit does not keep a shard from others for long.
    #[tokio::test]
    async fn nobody_is_held_up_for_long() {
        let server = PostgresServer::shared();
        let settings = Settings { connect_timeout: Duration::from_secs(60), ..Settings::new(server.url("postgres")) };
        let connection = Connector::new(settings).unwrap().connect("test").await.unwrap();
        for name in ["lock_timeout", "idle_in_transaction_session_timeout"] {
            let row = connection.client.query_one(&format!("SHOW {name}"), &[]).await.unwrap();
            assert_eq!(row.get::<_, &str>(0), "2s", "{name}");
        }
    }
}
