//! How a worker connects if nobody says otherwise: over plain HTTP/2, with a token for its server alone.

use crate::messages::Peer;
use crate::messages::wire::http2::{Http2, Settings};
use crate::messages::wire::{Link, Wire};
use futures_util::future::BoxFuture;
use steadfast_kernel::Failure;

/// Shows the token to the server, and to nobody else: a workflow may call any address.
pub(super) struct Usual {
    server: Peer,
    known: Http2,
    plain: Http2,
}

impl Usual {
    pub(super) fn new(server: Peer, token: Option<&str>) -> Result<Self, Failure> {
        let plain = Http2::new(Settings::default());
        let known = match token {
            Some(token) => plain.clone().token(token)?,
            None => plain.clone(),
        };
        Ok(Usual { server, known, plain })
    }

    fn is_server(&self, address: &str) -> bool {
        self.server == Peer::at(address)
    }
}

impl Wire for Usual {
    fn connect(&self, address: &str) -> BoxFuture<'static, Result<Link, Failure>> {
        if self.is_server(address) { self.known.connect(address) } else { self.plain.connect(address) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_for_the_server_alone() {
        let usual = Usual::new(Peer::at("http://10.0.0.7:7373"), Some("stf_x")).unwrap();
        assert!(usual.is_server("http://10.0.0.7:7373"));
        for other in ["http://10.0.0.7:7374", "http://10.0.0.7:73731", "https://10.0.0.7:7373", "http://evil"] {
            assert!(!usual.is_server(other), "{other}");
        }
        assert!(Usual::new(Peer::at("http://10.0.0.7:7373"), Some("two\nlines")).is_err());
    }
}
