//! Messages: the node of a server, who is connected to it, and what it has to do.

use super::Time;
use serde::{Deserialize, Serialize};
use steadfast_kernel::Timestamp;
use steadfast_messaging::{Connected, Node};
use utoipa::ToSchema;

/// The node of this server, and who is connected to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Messages)]
#[serde(rename_all = "camelCase")]
pub struct Messages {
    /// What the node is called; nothing if this server takes no messages.
    pub node: Option<String>,
    /// The routes that it answers, in the order of their names.
    pub routes: Vec<String>,
    /// Who is connected, in the order of their names.
    pub connections: Vec<ConnectedNode>,
    /// Requests of others that run or wait here.
    pub requests: u64,
    /// Its own calls and tells that wait for their answer.
    pub calls: u64,
    /// Streams that are open, those of workers among them.
    pub streams: u64,
    /// What waits to be written to others.
    pub outgoing_bytes: u64,
    /// What it knows of requests, against duplicates.
    pub inbox: Inbox,
    /// What it has done since the start.
    pub totals: MessageTotals,
}

/// Somebody who is connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConnectedNode)]
#[serde(rename_all = "camelCase")]
pub struct ConnectedNode {
    /// What it calls itself.
    pub name: String,
    /// Where it is.
    pub address: String,
    /// Who it is by its token, if it was asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The fingerprint of the certificate that it has shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The name that an authority vouches for by that certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouched: Option<String>,
    /// Since when.
    pub since: Time,
}

/// What a node knows of requests, against duplicates; runs that answer are not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Inbox)]
#[serde(rename_all = "camelCase")]
pub struct Inbox {
    /// Requests that run.
    pub running: u64,
    /// Requests that have finished and are known.
    pub finished: u64,
    /// How long ids, callers and results are together.
    pub bytes: u64,
    /// How many were forgotten before their window was over, since the start.
    pub forgotten_early: u64,
}

/// What a node has done since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MessageTotals)]
#[serde(rename_all = "camelCase")]
pub struct MessageTotals {
    /// Calls of others that have come, each as often as it was delivered.
    pub calls_received: u64,
    /// Tells of others that have come, likewise.
    pub tells_received: u64,
    /// Calls that were sent.
    pub calls_sent: u64,
    /// Tells that were sent.
    pub tells_sent: u64,
    /// Attempts beyond the first, of both.
    pub retried: u64,
    /// Calls that have failed for good.
    pub calls_failed: u64,
    /// Tells that have failed for good.
    pub tells_failed: u64,
    /// Messages that became dead letters.
    pub letters: u64,
    /// Dead letters that could not be kept: they are in the log and nowhere else.
    pub letters_lost: u64,
}

impl Messages {
    pub(crate) fn of(node: &Node, now: Timestamp) -> Self {
        let (counts, mut connections) = (node.counts(), node.connections());
        connections.sort_by(|a, b| (&a.name, &a.address).cmp(&(&b.name, &b.address)));
        let (inbox, totals) = (counts.inbox, counts.totals);
        Messages {
            node: Some(node.name().to_owned()),
            routes: node.routes(),
            connections: connections.into_iter().map(|connected| ConnectedNode::of(connected, now)).collect(),
            requests: counts.requests as u64,
            calls: counts.calls as u64,
            streams: counts.streams as u64,
            outgoing_bytes: counts.outgoing_bytes as u64,
            inbox: Inbox {
                running: inbox.running as u64,
                finished: inbox.finished as u64,
                bytes: inbox.bytes as u64,
                forgotten_early: inbox.forgotten_early,
            },
            totals: MessageTotals {
                calls_received: totals.calls_received,
                tells_received: totals.tells_received,
                calls_sent: totals.calls,
                tells_sent: totals.tells,
                retried: totals.retries,
                calls_failed: totals.calls_failed,
                tells_failed: totals.tells_failed,
                letters: totals.letters,
                letters_lost: totals.letters_lost,
            },
        }
    }
}

impl ConnectedNode {
    fn of(connected: Connected, now: Timestamp) -> Self {
        let since = now.as_micros().saturating_sub(i64::try_from(connected.since.as_micros()).unwrap_or(i64::MAX));
        ConnectedNode {
            name: connected.name,
            address: connected.address,
            principal: connected.principal.map(|principal| principal.to_string()),
            fingerprint: connected.fingerprint.map(|fingerprint| fingerprint.to_string()),
            vouched: connected.vouched.map(|name| name.to_string()),
            since: Time(Timestamp::from_micros(since)),
        }
    }

    /// What it has shown to be who it is, for people.
    pub fn known_by(&self) -> String {
        match (&self.vouched, &self.fingerprint, &self.principal) {
            (Some(name), _, _) => format!("certificate of {}", name.strip_prefix("dns:").unwrap_or(name)),
            (None, Some(fingerprint), _) => format!("certificate {}", fingerprint.get(..12).unwrap_or(fingerprint)),
            (None, None, Some(_)) => "the token".into(),
            (None, None, None) => "its name".into(),
        }
    }
}
