//! Those who read: a few connections beside the one that writes.

use crate::connect::{Connection, Connector};
use crate::error::{is_broken, is_outdated};
use parking_lot::Mutex;
use std::sync::Arc;
use steadfast_store::Error;
use tokio::sync::Semaphore;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Connections to read by. One is made when it is needed and none is free, up to a number; then those who read wait for each other.
pub(crate) struct Readers {
    connector: Arc<Connector>,
    places: Semaphore,
    free: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        let places = Semaphore::new(connector.settings().connections_max - 1);
        Readers { connector, places, free: Mutex::default() }
    }

    /// Reads by one statement.
    pub(crate) async fn query(&self, what: &str, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        match tokio::time::timeout(self.connector.patience(), self.ask(what, sql, params)).await {
            Ok(rows) => rows,
            Err(_) => Err(self.connector.database.too_slow(what)), // and the connection is gone
        }
    }

    async fn ask(&self, what: &str, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let closed = |_| Error::Unavailable { what: "the store is closed".into(), source: None };
        let _place = self.places.acquire().await.map_err(closed)?;
        // One that was not used for a while may have been closed by the server meanwhile, or prepared its statements before a newer program changed the tables.
        while let Some(connection) = self.take() {
            match connection.query(sql, params).await {
                Err(error) if is_broken(&error) || is_outdated(&error) => drop(connection),
                outcome => return self.give_back(what, connection, outcome),
            }
        }
        let connection = self.connector.connect("steadfast reader").await?;
        let outcome = connection.query(sql, params).await;
        self.give_back(what, connection, outcome)
    }

    fn take(&self) -> Option<Connection> {
        self.free.lock().pop()
    }

    fn give_back(&self, what: &str, connection: Connection, outcome: Result<Vec<Row>, tokio_postgres::Error>) -> Result<Vec<Row>, Error> {
        if !connection.is_closed() {
            self.free.lock().push(connection);
        }
        outcome.map_err(|error| self.connector.database.trouble(what, error))
    }
}
