//! What attempts are given beside their templates.

use parking_lot::Mutex;
use reqwest::Client;
use reqwest::redirect;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Code, Failure, RunId};

/// One attempt of a step or of its undo.
#[derive(Clone, Debug)]
pub struct Call {
    /// The run it belongs to.
    pub run: RunId,
    /// The name of the step.
    pub step: String,
    /// Its number, from 1.
    pub attempt: u32,
    /// What is equal for all attempts of this execution, and for no other.
    pub idempotency_key: String,
    /// How long it may take, where the kind itself sees to that.
    pub(crate) timeout: Option<Duration>,
}

/// Headers that are added to the requests of `http` steps.
type HeadersOf = Arc<dyn Fn(&Call) -> Vec<(String, String)> + Send + Sync>;

/// What the operator decides about all steps.
#[derive(Clone)]
pub struct Settings {
    /// The largest answer to an `http` step, in bytes; a larger one fails the step.
    pub response_bytes_max: usize,
    /// How much a `run` step may write to stdout and to stderr, in bytes each; the rest is dropped.
    pub output_bytes_max: usize,
    /// How long an attempt of an `http` step may take if the step does not say.
    pub http_timeout: Duration,
    /// How many redirects an `http` step follows.
    pub redirects_max: usize,
    /// Headers to add to the requests of `http` steps, for example of a trace. The definition's own go before them.
    pub headers: Option<HeadersOf>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            response_bytes_max: 1 << 20,
            output_bytes_max: 256 << 10,
            http_timeout: Duration::from_secs(30),
            redirects_max: 5,
            headers: None,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("response_bytes_max", &self.response_bytes_max)
            .field("output_bytes_max", &self.output_bytes_max)
            .field("http_timeout", &self.http_timeout)
            .field("redirects_max", &self.redirects_max)
            .finish_non_exhaustive()
    }
}

/// What attempts work with.
pub(crate) struct Tools {
    pub(crate) settings: Settings,
    /// The folder of the definitions, which working folders are relative to.
    pub(crate) folder: PathBuf,
    client: Mutex<Option<Client>>,
}

impl Tools {
    pub(crate) fn new(settings: Settings, folder: &Path) -> Self {
        Tools { settings, folder: folder.into(), client: Mutex::new(None) }
    }

    /// The HTTP client, which is made when it is needed first: reading the certificates of the machine takes a while.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let mut client = self.client.lock();
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let made = Client::builder()
            .redirect(redirect::Policy::limited(self.settings.redirects_max))
            .user_agent(concat!("steadfast/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::new(Code::Internal, "the HTTP client cannot be made").cause(error))?;
        Ok(client.insert(made).clone())
    }
}
