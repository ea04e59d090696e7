//! How this process connects to other nodes: over HTTP/2, with a token for those who are to see it.

use crate::config::{Config, settings};
use futures_util::future::BoxFuture;
use steadfast_kernel::Failure;
use steadfast_messaging::wire::http2::{Http2, Settings};
use steadfast_messaging::wire::tls::{self, Identity, Trust};
use steadfast_messaging::wire::{Link, Wire};

/// Connects with a token to those who are named, and without one to all others: a definition may call any address, and nobody else is to learn the token.
pub(crate) struct Wires {
    plain: Http2,
    /// Who is shown the token.
    hosts: Vec<String>,
    known: Http2,
}

impl Wires {
    /// As the settings say.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn of(config: &Config) -> Result<Self, String> {
        let (file, hosts) = (config.path(settings::MESSAGES_TOKEN_FILE), config.list(settings::MESSAGES_TOKEN_HOSTS));
        let plain = http2(config)?;
        let known = match file {
            None => plain.clone(),
            Some(_) if hosts.is_empty() => {
                return Err("messages.token_file is set, but messages.token_hosts names nobody who is shown it".into());
            }
            Some(path) => {
                let token =
                    std::fs::read_to_string(&path).map_err(|error| format!("cannot read the token file {}: {error}", path.display()))?;
                plain.clone().token(token.trim()).map_err(|failure| failure.message)?
            }
        };
        Ok(Wires { plain, hosts, known })
    }

    fn is_known(&self, address: &str) -> bool {
        let Some((_, authority)) = address.split_once("://") else { return false };
        let authority = authority.trim_end_matches('/');
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        self.hosts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(authority) || known.eq_ignore_ascii_case(host))
    }
}

impl Wire for Wires {
    fn connect(&self, address: &str) -> BoxFuture<'static, Result<Link, Failure>> {
        if self.is_known(address) { self.known.connect(address) } else { self.plain.connect(address) }
    }
}

/// Connects without a token, and with TLS where the settings say whom to trust.
///
/// # Errors
/// What is wrong with the settings.
pub(crate) fn http2(config: &Config) -> Result<Http2, String> {
    let (wire, identity) = (Http2::new(Settings::default()), identity(config)?);
    let Some(authorities) = config.path(settings::MESSAGES_CA_FILE) else { return Ok(wire) };
    let client = Trust::file(&authorities).and_then(|trust| tls::Client::new(trust, identity.as_ref()));
    Ok(wire.tls(client.map_err(|failure| format!("messages.ca_file: {}", failure.message))?))
}

/// What a port of our own shows, and whom it asks for a certificate; nothing if it is to speak no TLS.
///
/// # Errors
/// What is wrong with the settings.
pub(crate) fn of_port(config: &Config) -> Result<Option<tls::Server>, String> {
    let clients = config.path(settings::MESSAGES_CLIENT_CA_FILE);
    let Some(identity) = identity(config)? else {
        return match clients {
            Some(_) => Err("messages.client_ca_file is set, but there is no TLS without messages.cert_file".into()),
            None => Ok(None),
        };
    };
    let wrong = |failure: Failure| format!("messages.client_ca_file: {}", failure.message);
    let clients = clients.map(|path| Trust::file(&path)).transpose().map_err(wrong)?;
    tls::Server::new(&identity, clients).map(Some).map_err(wrong)
}

fn identity(config: &Config) -> Result<Option<Identity>, String> {
    let (certificate, key) = (config.path(settings::MESSAGES_CERT_FILE), config.path(settings::MESSAGES_KEY_FILE));
    match (certificate, key) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err("messages.key_file is set, but messages.cert_file is not".into()),
        (Some(certificate), key) => Identity::files(&certificate, key.as_ref().unwrap_or(&certificate))
            .map(Some)
            .map_err(|failure| format!("messages.cert_file: {}", failure.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_for_those_who_are_named() {
        let (plain, known) = (Http2::default(), Http2::default());
        let wires = Wires { plain, known, hosts: vec!["bank.example".into(), "10.0.0.7:7400".into(), "[::1]".into()] };
        for address in ["http://bank.example:7400", "https://BANK.example", "http://10.0.0.7:7400", "http://[::1]:7400"] {
            assert!(wires.is_known(address), "{address}");
        }
        for address in ["http://bank.example.evil:7400", "http://10.0.0.7:7401", "http://evil", "http://evil/bank.example", "bank.example"]
        {
            assert!(!wires.is_known(address), "{address}");
        }
    }
}
