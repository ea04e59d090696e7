//! Reads, beside the writer: each sees the last commit that was announced before it, and waits for none.

use crate::error::{self, stopped};
use crate::open::connect_read_only;
use parking_lot::Mutex;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use steadfast_store::Error;
use tokio::sync::oneshot;

/// Two, so that a short read need not wait for a long one.
const THREADS: usize = 2;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// The threads. Dropping them waits for the reads that are under way.
#[derive(Debug)]
pub(crate) struct Readers {
    path: Arc<Path>,
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(crate) fn start(path: &Arc<Path>) -> Result<Self, Error> {
        let (jobs, line) = channel();
        let line = Arc::new(Mutex::new(line));
        let mut readers = Readers { path: Arc::clone(path), jobs: Some(jobs), threads: vec![] };
        for number in 1..=THREADS {
            let thread = spawn(number, connect_read_only(path)?, Arc::clone(&line));
            readers.threads.push(thread.map_err(|error| error::io(path, "start a reader of", error))?);
        }
        Ok(readers)
    }

    /// Runs a query on one of the threads. A query whose caller is gone by then is left out.
    pub(crate) async fn read<T, Q>(&self, what: &'static str, query: Q) -> Result<T, Error>
    where
        T: Send + 'static,
        Q: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (answer, result) = oneshot::channel();
        let job = move |connection: &Connection| {
            if !answer.is_closed() {
                let _gone = answer.send(query(connection));
            }
        };
        let jobs = self.jobs.as_ref().ok_or_else(|| stopped("reader"))?;
        jobs.send(Box::new(job)).map_err(|_| stopped("reader"))?;
        let result = result.await.map_err(|_| stopped("reader"))?;
        result.map_err(|error| error::sqlite(&self.path, what, error))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a reader of the store has panicked");
            }
        }
    }
}

fn spawn(number: usize, connection: Connection, line: Arc<Mutex<Receiver<Job>>>) -> std::io::Result<JoinHandle<()>> {
    let run = move || {
        while let Some(job) = next(&line) {
            job(&connection);
        }
    };
    thread::Builder::new().name(format!("steadfast-reader-{number}")).spawn(run)
}

/// The next in line; whoever waits for it holds the line, the others wait for the line. The line is free again before the job runs.
fn next(line: &Mutex<Receiver<Job>>) -> Option<Job> {
    line.lock().recv().ok()
}
