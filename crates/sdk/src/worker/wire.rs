//! How a worker connects if nobody says otherwise: over plain HTTP/2, with a token for its server alone.

use crate::messages::Peer;
use crate::messages::wire::http2::{Http2, Settings};
use crate::messages::wire::{Link, Wire};
use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::sync::Arc;
use steadfast_kernel::Failure;

/// The addresses of the server and its instances, to whom the token is shown.
#[derive(Clone, Default)]
pub(super) struct Shown(Arc<RwLock<BTreeSet<Peer>>>);

impl Shown {
    /// It is shown to the addresses that were given and to those of the instances, and to nobody else from now on. Whoever gave only addresses with TLS does not want it to be seen on
    /// the way.
    pub(super) fn set<'a>(&self, given: &'a [Peer], instances: impl IntoIterator<Item = &'a Peer>) {
        let is_plain = |peer: &Peer| peer.to_string().starts_with("http://");
        let all_plain = given.iter().any(is_plain);
        let instances = instances.into_iter().filter(|instance| all_plain || !is_plain(instance));
        *self.0.write() = given.iter().chain(instances).cloned().collect();
    }

    fn has(&self, address: &str) -> bool {
        self.0.read().contains(&Peer::at(address))
    }
}

/// Shows the token to the server, and to nobody else: a workflow may call any address.
pub(super) struct Usual {
    shown: Shown,
    known: Http2,
    plain: Http2,
}

impl Usual {
    pub(super) fn new(shown: Shown, token: Option<&str>) -> Result<Self, Failure> {
        let plain = Http2::new(Settings::default());
        let known = match token {
            Some(token) => plain.clone().token(token)?,
            None => plain.clone(),
        };
        Ok(Usual { shown, known, plain })
    }
}

impl Wire for Usual {
    fn connect(&self, address: &str) -> BoxFuture<'static, Result<Link, Failure>> {
        if self.shown.has(address) { self.known.connect(address) } else { self.plain.connect(address) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_for_the_server_and_its_instances_alone() {
        let shown = Shown::default();
        let usual = Usual::new(shown.clone(), Some("stf_x")).unwrap();
        let others = ["http://10.0.0.7:7374", "http://10.0.0.7:73731", "https://10.0.0.7:7373", "http://evil"];
        shown.set(&[Peer::at("http://10.0.0.7:7373")], []);
        assert!(usual.shown.has("http://10.0.0.7:7373") && !others.iter().any(|other| usual.shown.has(other)));
        shown.set(&[Peer::at("http://10.0.0.7:7374")], []);
        assert!(usual.shown.has("http://10.0.0.7:7374") && !usual.shown.has("http://10.0.0.7:7373"));
        let instances = ["https://10.0.0.8:7373", "http://10.0.0.9:7373"].map(Peer::at);
        shown.set(&[Peer::at("https://10.0.0.7:7373")], &instances);
        assert_eq!(instances.each_ref().map(|instance| usual.shown.has(&instance.to_string())), [true, false], "TLS was asked for");
        assert!(Usual::new(shown, Some("two\nlines")).is_err());
    }
}
