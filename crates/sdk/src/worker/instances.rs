//! Which instances a server has. Each of them has runs of its own, so a worker goes to all of them.

use crate::cluster::INSTANCES;
use crate::messages::{Node, Peer};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::{Class, Failure, Policy};

/// An instance that has not answered by then is not waited for: another one may know.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The instances of a server by address, with their ids; none if it has none beside itself.
pub(super) type Instances = BTreeMap<Peer, String>;

#[derive(Deserialize)]
struct Answer {
    instances: Vec<Instance>,
}

#[derive(Deserialize)]
struct Instance {
    id: String,
    address: String,
}

/// Asks an instance which others there are.
///
/// # Errors
/// If it cannot be reached, or has no time. One that does not have the route, or does not let this worker use it, has no others as far as is known: if it does not want this worker, it says so when
/// that comes.
pub(super) async fn ask(node: &Node, server: &Peer) -> Result<Instances, Failure> {
    let call = node.call(server.clone(), INSTANCES, Bytes::new());
    match call.timeout(ANSWERS_WITHIN).policy(Policy::once()).await {
        Ok(answer) => Ok(read(&answer).unwrap_or_else(|error| {
            tracing::warn!(%server, %error, "what the server says of its instances cannot be read");
            Instances::new()
        })),
        Err(failure) if failure.class == Class::Transient => Err(failure),
        Err(failure) => {
            tracing::debug!(%server, %failure, "the server does not say which instances it has");
            Ok(Instances::new())
        }
    }
}

fn read(answer: &[u8]) -> serde_json::Result<Instances> {
    let Answer { instances } = serde_json::from_slice(answer)?;
    Ok(instances.into_iter().map(|Instance { id, address }| (Peer::at(address), id)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_a_later_version_can_be_read_and_one_that_is_none_is_an_error() {
        let answer = br#"{"instances":[{"id":"b","address":"http://10.0.0.2:7373","since":1},{"id":"a","address":"http://10.0.0.1:7373"}],"next":null}"#;
        let instances: Vec<_> = read(answer).unwrap().into_iter().collect();
        assert_eq!(instances, [("http://10.0.0.1:7373".into(), "a".to_owned()), ("http://10.0.0.2:7373".into(), "b".to_owned())]);
        assert!(read(br#"{"instances":[]}"#).unwrap().is_empty());
        assert!(read(b"").is_err() && read(br#"{"instances":[{"id":"a"}]}"#).is_err());
    }
}
