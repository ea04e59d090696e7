//! The other servers on the same database: who this one is for them, and the way to them.

use super::{messages, unusable, with_code};
use crate::config::{Config, of_lease, settings};
use crate::error::Error;
use crate::wires;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use steadfast::cluster::{Cluster, Line, Member, answer_if};
use steadfast_messaging::Node;
use steadfast_runtime::Engine;
use steadfast_store_postgres::Postgres;

/// How this server shares the database with others.
///
/// # Errors
/// If its settings cannot be, or the database does not say where it sees us.
pub(super) async fn of_cluster(config: &Config, store: &Postgres, addr: SocketAddr) -> Result<Cluster, Error> {
    let id = store.process().to_owned();
    let address = match config.text(settings::CLUSTER_ADDRESS) {
        Some(address) => address.trim_end_matches('/').to_owned(),
        None => format!("http://{}", SocketAddr::new(reached_at(store, addr.ip()).await?, addr.port())),
    };
    let mut wire = wires::http2(config).map_err(unusable)?;
    if let Some(file) = config.path(settings::TOKEN_FILE) {
        let token = std::fs::read_to_string(&file).map_err(|error| unusable(format!("cannot read {}: {error}", file.display())))?;
        wire = wire.token(token.trim()).map_err(|failure| unusable(failure.message))?;
    }
    let node = Node::builder().name(format!("instance-{id}")).limits(messages::limits(config)).wire(Arc::new(wire));
    let carrier = Arc::new(Line::new(node.build().map_err(unusable)?));
    let member = Member { id, name: machine(), address, version: env!("CARGO_PKG_VERSION").into() };
    Ok(Cluster { leases: Arc::new(store.leases(of_lease(config))), member, carrier })
}

/// Answers what the others ask, at the address of the API.
pub(super) fn answer(node: &Node, engine: &Engine) {
    answer_if(node, engine, messages::may_host);
}

/// Where others reach a server that listens there: if that is everywhere, it is where the database sees us.
async fn reached_at(store: &Postgres, listens: IpAddr) -> Result<IpAddr, Error> {
    if !listens.is_unspecified() {
        return Ok(listens);
    }
    let seen = store.seen_at().await.map_err(|error| with_code(&error, error.code()))?;
    let on_this_machine = if listens.is_ipv4() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) };
    let reached = seen.unwrap_or(on_this_machine);
    if reached.is_loopback() {
        tracing::warn!("others are told to reach this server at {reached}, which only those of this machine do: set cluster.address");
    }
    Ok(reached)
}

/// What this machine is called.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
