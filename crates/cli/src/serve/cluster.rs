//! The other servers on the same database: who this one is for them, and the way to them.

use super::{messages, unusable, with_code};
use crate::config::{Config, of_lease, settings};
use crate::error::Error;
use crate::wires;
use http::Uri;
use http::uri::Authority;
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
    Ok(seen.unwrap_or(on_this_machine))
}

/// Says so if what the others are told leads every machine to itself: servers elsewhere would ask themselves for what is here, and nothing would say why.
pub(super) fn warn_if_near(member: &Member) {
    if is_near(&member.address) {
        tracing::warn!(
            "other machines cannot reach this server: they are told {}; if there are any, have it listen at an address of its network (--listen, with --token-file), or set cluster.address",
            member.address
        );
    }
}

/// Whether that leads every machine to itself.
fn is_near(address: &str) -> bool {
    let authority = address.parse::<Uri>().ok().and_then(|uri| uri.into_parts().authority);
    let Some(host) = authority.as_ref().map(Authority::host) else { return false };
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

/// What this machine is called.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_near_if_it_leads_everybody_to_himself() {
        for near in ["http://127.0.0.1:7373", "http://127.0.0.3:1", "https://localhost", "http://LocalHost:7373", "http://[::1]:7373"] {
            assert!(is_near(near), "{near}");
        }
        for far in ["http://10.0.0.7:7373", "http://localhost.example.com:7373", "https://a.example.com", "http://[2001:db8::1]:7373"] {
            assert!(!is_near(far), "{far}");
        }
    }
}
