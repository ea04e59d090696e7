//! Connections: how one is made, and what it remembers.

use crate::error::{CONNECT, Database};
use crate::settings::{Address, Settings};
use crate::tls;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_store::Error;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    settings: Settings,
    address: Address,
    pub(crate) database: Database,
}

impl Connector {
    pub(crate) fn new(settings: Settings) -> Result<Self, Error> {
        let address = settings
            .address()
            .map_err(|error| Error::unavailable("a setting of PostgreSQL cannot be used", error))?;
        let database = Database(format!("PostgreSQL at {address}"));
        Ok(Connector { settings, address, database })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How long to wait for an answer: the server has its own limit, which comes first.
    pub(crate) fn patience(&self) -> Duration {
        self.settings.statement_timeout + self.settings.connect_timeout
    }

    /// A connection of that name. A task of its own speaks to the server until the connection is dropped.
    pub(crate) async fn connect(&self, name: &str) -> Result<Connection, Error> {
        match tokio::time::timeout(self.settings.connect_timeout, self.dial(name)).await {
            Ok(connected) => connected,
            Err(_) => Err(self.database.too_slow(CONNECT)),
        }
    }

    async fn dial(&self, name: &str) -> Result<Connection, Error> {
        let mut config = self.address.config.clone();
        config.application_name(name).connect_timeout(self.settings.connect_timeout);
        config.keepalives_idle(Duration::from_secs(30)).tcp_user_timeout(self.patience());
        if let Some(file) = &self.settings.password_file {
            let password = std::fs::read_to_string(file);
            let unreadable = |error| Error::unavailable(format!("the password file {} cannot be read", file.display()), error);
            config.password(password.map_err(unreadable)?.trim_end_matches(['\r', '\n']));
        }
        let tls = tls::connector(&self.address).map_err(|error| Error::unavailable("TLS cannot be used", error))?;
        let (client, speaking) = config.connect(tls).await.map_err(|error| self.database.trouble(CONNECT, error))?;
        tokio::spawn(async move {
            if let Err(error) = speaking.await {
                tracing::debug!(%error, "a connection to PostgreSQL has ended");
            }
        });
        let trouble = |error| self.database.trouble(CONNECT, error);
        client.batch_execute(&self.greeting()).await.map_err(trouble)?;
        let pid = client
            .query_one("SELECT pg_backend_pid()", &[])
            .await
            .and_then(|row| row.try_get(0))
            .map_err(trouble)?;
        Ok(Connection { client, pid, statements: Mutex::default() })
    }

    /// What every connection is set to, whatever the server or the user says: time limits, and that a commit is durable.
    fn greeting(&self) -> String {
        let limit = self.settings.statement_timeout.as_millis();
        format!(
            "SET statement_timeout = {limit}; SET lock_timeout = {limit}; SET idle_in_transaction_session_timeout = {limit}; SET jit = off;
SET client_min_messages = error; SET default_transaction_isolation = 'read committed';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
    }
}

/// A connection, and the statements that were prepared on it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The process that serves it.
    pub(crate) pid: i32,
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
}
