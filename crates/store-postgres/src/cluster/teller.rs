//! Who tells the other instances of commits: at once after a pause, and then once for all that came meanwhile.

use super::{Task, statements};
use crate::Postgres;
use crate::desk::pause;
use crate::readers::For;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The shortest time between two notifications. People who look do not notice it, and the database has hardly any work with it.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Teller {
    /// There was a commit; of several that nobody was told of, one is remembered.
    committed: Arc<Notify>,
    _task: Task,
}

impl Teller {
    pub(super) fn start(store: Postgres) -> Self {
        let committed = Arc::new(Notify::new());
        let task = Task(tokio::spawn(run(store, Arc::clone(&committed))));
        Teller { committed, _task: task }
    }

    /// There was a commit. It waits for nothing.
    pub(super) fn tell(&self) {
        self.committed.notify_one();
    }
}

/// What cannot be told is not told again: the others look from time to time.
async fn run(store: Postgres, committed: Arc<Notify>) {
    loop {
        committed.notified().await;
        let told = store.list(For::Work, "tell of commits", statements::TELL, &[&store.0.process], |_| Ok(())).await;
        if let Err(error) = told {
            tracing::debug!(%error, "other instances were not told of commits");
        }
        pause(PAUSE).await;
    }
}
