//! Who listens to the other instances, by a connection of its own. As long as they do nothing, nothing is asked.

use super::{Task, statements};
use crate::connect::{Connection, Connector};
use crate::desk::pause;
use futures_util::future::{Either, join, select};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use steadfast_store::{Error, Heard, Hearing};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;
use tokio_postgres::Notification;

const LEASES: &str = "steadfast_leases";
const COMMITS: &str = "steadfast_commits";

/// How long the next connect waits after one that has failed or has not lasted, at first and at most.
const BACKOFF: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The shortest time between two looks that nobody has asked for.
const LOOK_MIN: Duration = Duration::from_millis(10);

pub(super) struct Ear {
    hearing: Arc<Hearing>,
    _task: Task,
}

impl Ear {
    /// Begins to listen. What `process` says of its commits is our own.
    pub(super) fn start(connector: Arc<Connector>, process: String, lease: Duration) -> Self {
        let hearing = Arc::new(Hearing::default());
        let heard = Arc::clone(&hearing);
        let task = tokio::spawn(async move {
            join(listen(&connector, &process, &heard), remind(lease, &heard)).await;
        });
        Ear { hearing, _task: Task(task) }
    }

    pub(super) async fn next(&self) -> Heard {
        self.hearing.next().await
    }
}

/// Listens for ever. Whatever happens while there is no connection is not heard, so each one begins with that.
async fn listen(connector: &Connector, process: &str, hearing: &Hearing) {
    let mut tries = 0_u32;
    loop {
        let mut generations = connector.generations();
        match connect(connector).await {
            Ok((_connection, mut notes)) => {
                hearing.hear_all();
                while let Some(note) = next(&mut notes, &mut generations).await {
                    tries = 0;
                    hear(&note, process, hearing);
                }
            }
            Err(error) => tracing::debug!(%error, "the other instances cannot be heard"),
        }
        pause(BACKOFF.saturating_mul(1 << tries.min(10)).min(BACKOFF_MAX)).await;
        tries = tries.saturating_add(1);
    }
}

/// What is heard next; nothing if the connection has ended, or is not to be used any more.
async fn next(notes: &mut UnboundedReceiver<Notification>, generations: &mut watch::Receiver<u64>) -> Option<Notification> {
    match select(pin!(notes.recv()), pin!(generations.changed())).await {
        Either::Left((note, _)) => note,
        Either::Right(_) => None,
    }
}

/// A connection that listens, and what it hears until it ends.
async fn connect(connector: &Connector) -> Result<(Connection, UnboundedReceiver<Notification>), Error> {
    let (what, (sender, notes)) = ("listen to other instances", mpsc::unbounded_channel());
    let connection = connector.connect_to_hear("steadfast listener", move |note| drop(sender.send(note))).await?;
    match tokio::time::timeout(connector.patience(), connection.client.batch_execute(statements::LISTEN)).await {
        Ok(Ok(())) => Ok((connection, notes)),
        Ok(Err(error)) => Err(connector.database.trouble(what, error)),
        Err(_) => Err(connector.database.too_slow(what)),
    }
}

fn hear(note: &Notification, process: &str, hearing: &Hearing) {
    match note.channel() {
        LEASES => hearing.hear(Heard::Leases),
        COMMITS if note.payload() != process => hearing.hear(Heard::Commits),
        _ => {}
    }
}

/// Nobody waits for longer than a lease to hear of commits, though a connection may be dead without our knowing. Whoever keeps leases looks by itself.
async fn remind(lease: Duration, hearing: &Hearing) {
    let mut looks = tokio::time::interval(lease.max(LOOK_MIN));
    looks.tick().await; // the first one is now
    loop {
        looks.tick().await;
        hearing.hear(Heard::Commits);
    }
}
