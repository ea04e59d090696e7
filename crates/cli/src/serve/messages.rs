//! The node of the server: what it is called, where it listens beside the API, and whom it shows a token.

use super::unusable;
use crate::config::{Config, Origin, settings};
use crate::error::Error;
use crate::wires::{self, Wires};
use std::path::Path;
use std::sync::Arc;
use steadfast::messages::Post;
use steadfast_kernel::{Code, Failure};
use steadfast_messaging::wire::http2::{ListenSettings, REFUSED_MAX};
use steadfast_messaging::{Caller, Limits, Node};
use steadfast_store_postgres::Postgres;

/// What the node is called if nobody says: as the instance of the data folder. The database keeps the name of the first one, because calls that were begun by one server go on at the
/// next, and whoever is called knows them by it.
///
/// # Errors
/// If the name cannot be read or kept.
pub(super) async fn name(config: &Config, data: &Path, database: Option<&Postgres>) -> Result<String, Error> {
    match config.text(settings::MESSAGES_NAME).or_else(|| config.text(settings::REDIS_INSTANCE)) {
        Some(name) => Ok(name.to_owned()),
        None => kept(data, database).await,
    }
}

/// The name that the database keeps, the same for all of its servers; that of the data folder if there is no database.
///
/// # Errors
/// If it cannot be read or kept.
pub(super) async fn kept(data: &Path, database: Option<&Postgres>) -> Result<String, Error> {
    let told = |error: steadfast_store::Error| super::with_code(&error, error.code());
    let instance = steadfast_store_embedded::instance(data).map_err(told)?;
    match database {
        Some(database) => database.node_name(instance.as_str()).await.map_err(told),
        None => Ok(instance.to_string()),
    }
}

/// The node, which is not reached by anybody yet.
///
/// # Errors
/// If its settings cannot be.
pub(super) fn node(config: &Config, name: String, letters: Post) -> Result<Node, Error> {
    let wires = Wires::of(config).map_err(unusable)?;
    let mut limits = limits(config);
    limits.payload_bytes_max = payload_bytes_max(config)?;
    let node = Node::builder().name(name).limits(limits).letters(Arc::new(letters)).wire(Arc::new(wires));
    // Whoever connects passes the door of the API or of the port. Whom a definition calls has not, and gets an answer from nobody here.
    node.only_for_those_who_connect().build().map_err(unusable)
}

/// Listens at a port of its own, if there is to be one: the address of it.
///
/// # Errors
/// If the port cannot be taken, or everybody could connect.
pub(super) async fn listen(config: &Config, node: &Node) -> Result<Option<String>, Error> {
    let tls = wires::of_port(config).map_err(unusable)?;
    let Some(address) = config.text(settings::MESSAGES_LISTEN) else { return Ok(None) };
    let mut listen = ListenSettings::default();
    listen.connections_max = config.number(settings::MESSAGES_CONNECTIONS_MAX).saturating_add(REFUSED_MAX);
    let by_certificate = config.path(settings::MESSAGES_CLIENT_CA_FILE).is_some();
    if let Some(file) = config.path(settings::TOKEN_FILE).filter(|_| !by_certificate) {
        listen.authorize = Some(steadfast_server::authorize_by(&file).map_err(|error| super::with_code(&error, error.code()))?);
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    listen.tls = tls;
    let addr = node.listen(address, listen).await.map_err(unusable)?;
    Ok(Some(format!("{scheme}://{addr}")))
}

/// Whether somebody may be given runs, with all that is in them: whoever may use the API may, and somebody with no more than a certificate may call, but not host.
pub(super) fn may_host(caller: &Caller) -> Result<(), Failure> {
    match (&caller.fingerprint, &caller.principal) {
        (Some(_), None) => {
            let message = "a certificate is not enough to host runs: come to the address of the API, with its token if it has one";
            Err(Failure::new(Code::PermissionDenied, message))
        }
        _ => Ok(()),
    }
}

/// The longest message. It is a payload of the engine if it becomes a dead letter, which would be lost if the engine did not take it: as long as such a one at the most.
///
/// # Errors
/// If somebody has set it to more.
fn payload_bytes_max(config: &Config) -> Result<usize, Error> {
    let (longest, kept) = (config.number(settings::MESSAGES_PAYLOAD_BYTES_MAX), config.number(settings::PAYLOAD_BYTES_MAX));
    match config.origin(settings::MESSAGES_PAYLOAD_BYTES_MAX) {
        Origin::Default => Ok(longest.min(kept)),
        origin if longest > kept => Err(unusable(format!(
            "messages.payload_bytes_max ({origin}) is {longest}, and engine.payload_bytes_max is {kept}: a dead letter that is longer could not be kept"
        ))),
        _ => Ok(longest),
    }
}

pub(super) fn limits(config: &Config) -> Limits {
    let mut limits = Limits::default();
    limits.payload_bytes_max = config.number(settings::MESSAGES_PAYLOAD_BYTES_MAX);
    limits.connections_max = config.number(settings::MESSAGES_CONNECTIONS_MAX);
    limits.requests_max = config.number(settings::MESSAGES_REQUESTS_MAX);
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Given;

    fn config(set: &[&str]) -> Config {
        Config::load(&Given { set: set.iter().map(|text| (*text).into()).collect(), ..Given::default() }).unwrap()
    }

    async fn name_of(set: &[&str], data: &Path) -> String {
        name(&config(set), data, None).await.unwrap()
    }

    #[test]
    fn settings_of_messages_reach_the_node() {
        assert_eq!(limits(&config(&[])), Limits::default());
        let set = ["messages.payload_bytes_max=1MiB", "messages.connections_max=2", "messages.requests_max=3"];
        let node = node(&config(&set), "bank".into(), Post::default()).unwrap();
        let Limits { payload_bytes_max, connections_max, requests_max, .. } = node.limits();
        assert_eq!((node.name(), *payload_bytes_max, *connections_max, *requests_max), ("bank", 1 << 20, 2, 3));
    }

    #[test]
    fn a_message_is_not_longer_than_what_the_engine_keeps() {
        let longest = |set: &[&str]| node(&config(set), "bank".into(), Post::default()).unwrap().limits().payload_bytes_max;
        assert_eq!(longest(&["engine.payload_bytes_max=1MiB"]), 1 << 20, "nobody has asked for more");
        assert_eq!(longest(&["engine.payload_bytes_max=8MiB"]), 4 << 20);
        assert_eq!(longest(&["engine.payload_bytes_max=8MiB", "messages.payload_bytes_max=6MiB"]), 6 << 20);
    }

    #[tokio::test]
    async fn a_node_without_a_name_has_that_of_its_instance() {
        let dir = tempfile::tempdir().unwrap();
        let name = name_of(&[], dir.path()).await;
        assert_eq!((name.len(), name_of(&[], dir.path()).await), (32, name), "it stays");
        assert_eq!(name_of(&["redis.instance=a"], dir.path()).await, "a");
        assert_eq!(name_of(&["redis.instance=a", "messages.name=bank"], dir.path()).await, "bank");
    }

    #[test]
    fn what_cannot_be_is_told_with_its_code() {
        for (name, set, part) in [
            ("a@b", "messages.name=a@b", "the name of a node"),
            ("a", "messages.token_file=/none", "messages.token_hosts"),
            ("a", "messages.ca_file=/none", "messages.ca_file: "),
            ("a", "messages.key_file=/none", "messages.cert_file is not"),
            ("a", "messages.payload_bytes_max=5MiB", "engine.payload_bytes_max is 4194304"),
        ] {
            let error = node(&config(&[set]), name.into(), Post::default()).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("SF0142"), "{error}");
        }
    }
}
