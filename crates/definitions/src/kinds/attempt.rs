//! What attempts are given beside their templates.

use parking_lot::Mutex;
use reqwest::Client;
use reqwest::redirect;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use steadfast_kernel::{Code, Failure, RunId};
use steadfast_messaging::Node;
use steadfast_runtime::host::TimeLeft;

/// One attempt of a step or of its undo.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// The run it belongs to.
    pub(crate) run: RunId,
    /// The name of the step.
    pub(crate) step: String,
    /// Its number, from 1.
    pub(crate) attempt: u32,
    /// What is equal for all attempts of this execution, and for no other.
    pub(crate) idempotency_key: String,
    /// The span of the attempt, as W3C Trace Context writes it, if somebody follows traces.
    pub(crate) traceparent: Option<String>,
    /// How long it may take, where the kind itself has to end it.
    pub(crate) timeout: Option<Duration>,
    /// What is left for it and for those that may follow, where others have to know.
    pub(crate) left: TimeLeft,
}

/// What the operator decides about all steps.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The largest answer to an `http` step, in bytes; a larger one fails the step.
    pub response_bytes_max: usize,
    /// How much a `run` step may write to stdout and to stderr, in bytes each; the rest is dropped.
    pub output_bytes_max: usize,
    /// How long an attempt of an `http` step may take if the step does not say.
    pub http_timeout: Duration,
    /// The same of a `call` step.
    pub call_timeout: Duration,
    /// How many redirects an `http` step follows.
    pub redirects_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            response_bytes_max: 1 << 20,
            output_bytes_max: 256 << 10,
            http_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(30),
            redirects_max: 5,
        }
    }
}

/// What attempts work with.
pub(crate) struct Tools {
    pub(crate) settings: Settings,
    /// The folder of the definitions, which working folders are relative to.
    pub(crate) folder: PathBuf,
    client: Mutex<Option<Client>>,
    node: OnceLock<Node>,
}

impl Tools {
    pub(crate) fn new(settings: Settings, folder: &Path) -> Self {
        Tools { settings, folder: folder.into(), client: Mutex::new(None), node: OnceLock::new() }
    }

    /// Calls go out by that node from here on. The first one stays.
    pub(crate) fn set_node(&self, node: Node) {
        let _the_first_one_stays = self.node.set(node);
    }

    /// Whom calls go out by.
    pub(crate) fn node(&self) -> Result<&Node, Failure> {
        let missing = || {
            let message = "there is no node here to call others by: carry the definition out by `steadfast serve`, or give its library one";
            Failure::permanent(message).code(Code::FailedPrecondition)
        };
        self.node.get().ok_or_else(missing)
    }

    /// The HTTP client, which is made when it is needed first: reading the certificates of the machine takes a while.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let mut client = self.client.lock();
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        steadfast_tls::install_default();
        let made = Client::builder()
            .redirect(redirects(self.settings.redirects_max))
            .referer(false) // it would tell the address with its query
            .user_agent(concat!("steadfast/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::new(Code::Internal, "the HTTP client cannot be made").cause(error))?;
        Ok(client.insert(made).clone())
    }
}

/// Redirects are followed within an origin only: headers, bodies and keys are meant for who was asked, and nobody else is to say whom this server asks next.
fn redirects(max: usize) -> redirect::Policy {
    redirect::Policy::custom(move |attempt| {
        let origin = |url: &reqwest::Url| (url.scheme().to_string(), url.host_str().map(str::to_string), url.port_or_known_default());
        let stays = attempt.previous().first().is_some_and(|first| origin(first) == origin(attempt.url()));
        match (stays, attempt.previous().len() > max) {
            (true, false) => attempt.follow(),
            (true, true) => attempt.error("too many redirects"),
            (false, _) => attempt.stop(),
        }
    })
}
