//! Those who read: a few connections beside the one that writes.

use crate::connect::{Connection, Connector};
use crate::error::{is_broken, is_outdated, is_read_only};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::Error;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Who waits for what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// Work goes on with it.
    Work,
    /// Somebody who looks at a list, which may be long. They never have all connections.
    People,
}

/// What becomes of a question that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// It is ended at the server, and nobody has its place before that: what is asked there at once has a bound.
    InPlace,
    /// It is ended apart. Who asks again does not wait for that, and has a new connection: the others may have gone the same way.
    Alone,
}

/// Connections to read by. One is made when it is needed and none is free, up to a number; then those who read wait for each other.
pub(crate) struct Readers {
    connector: Arc<Connector>,
    places: Arc<Semaphore>,
    /// As many of them as lists may have.
    places_of_people: Arc<Semaphore>,
    free: Arc<Mutex<Vec<Connection>>>,
    abandoned: Abandoned,
}

/// A connection while it is used. Should its user go away, what was asked is ended.
struct Used {
    connection: Option<Connection>,
    places: Option<(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>)>,
    patience: Duration,
    free: Arc<Mutex<Vec<Connection>>>,
    abandoned: Abandoned,
}

impl Readers {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        let places = connector.settings().connections_max - 1;
        Self::of(connector, places, Abandoned::InPlace)
    }

    /// So many of them.
    pub(crate) fn of(connector: Arc<Connector>, places: usize, abandoned: Abandoned) -> Self {
        let of_people = (places - places.div_ceil(3)).max(1);
        Readers {
            connector,
            places: Arc::new(Semaphore::new(places)),
            places_of_people: Arc::new(Semaphore::new(of_people)),
            free: Arc::default(),
            abandoned,
        }
    }

    /// Reads by one statement.
    pub(crate) async fn query(&self, who: For, what: &str, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        match tokio::time::timeout(self.connector.patience(), self.ask(who, what, sql, params)).await {
            Ok(rows) => rows,
            Err(_) => Err(self.connector.database.too_slow(what)),
        }
    }

    async fn ask(&self, who: For, what: &str, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let closed = |_| Error::Unavailable { what: "the store is closed".into(), source: None };
        let of_people = match who {
            For::Work => None,
            For::People => Some(Arc::clone(&self.places_of_people).acquire_owned().await.map_err(closed)?),
        };
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(closed)?;
        let places = Some((place, of_people));
        let (patience, free, abandoned) = (self.connector.patience(), Arc::clone(&self.free), self.abandoned);
        let mut used = Used { connection: None, places, patience, free, abandoned };
        // One that was not used for a while may have been closed by the server meanwhile, or prepared its statements before a newer program changed the tables, or
        // another server may be the one to be written by now.
        while let Some(connection) = self.take() {
            match used.ask(connection, sql, params).await {
                (connection, Err(error)) if self.is_spent(connection.as_ref(), &error) => drop(connection),
                (connection, outcome) => return self.give_back(what, connection, outcome),
            }
        }
        let connection = self.connector.connect("steadfast reader").await?;
        let (connection, outcome) = used.ask(connection, sql, params).await;
        self.give_back(what, connection, outcome)
    }

    fn take(&self) -> Option<Connection> {
        let mut free = self.free.lock();
        free.retain(|connection| self.connector.is_current(connection));
        free.pop()
    }

    /// Whether a connection is of no use after that error. If its server may not be written any more, everybody leaves it: who only reads there would not notice.
    fn is_spent(&self, connection: Option<&Connection>, error: &tokio_postgres::Error) -> bool {
        if let Some(connection) = connection.filter(|_| is_read_only(error)) {
            self.connector.leave(connection);
        }
        is_broken(error) || is_outdated(error) || is_read_only(error)
    }

    fn give_back(
        &self,
        what: &str,
        connection: Option<Connection>,
        outcome: Result<Vec<Row>, tokio_postgres::Error>,
    ) -> Result<Vec<Row>, Error> {
        let is_spent = outcome.as_ref().is_err_and(|error| self.is_spent(connection.as_ref(), error));
        let is_of_use = |connection: &Connection| !is_spent && !connection.is_closed() && self.connector.is_current(connection);
        self.free.lock().extend(connection.filter(is_of_use));
        outcome.map_err(|error| self.connector.database.trouble(what, error))
    }
}

impl Used {
    async fn ask(
        &mut self,
        connection: Connection,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> (Option<Connection>, Result<Vec<Row>, tokio_postgres::Error>) {
        let outcome = self.connection.insert(connection).query(sql, params).await;
        (self.connection.take(), outcome)
    }
}

/// A connection that was cancelled is not used again: the word for it may come late, and meet another query.
impl Drop for Used {
    fn drop(&mut self) {
        let (Some(connection), places, patience) = (self.connection.take(), self.places.take(), self.patience) else { return };
        let places = places.filter(|_| self.abandoned == Abandoned::InPlace);
        if places.is_none() {
            self.free.lock().clear();
        }
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let _it_is_dropped_in_any_case = tokio::time::timeout(patience, connection.cancel()).await;
            drop(places);
        });
    }
}
