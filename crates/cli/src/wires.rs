//! How this process connects to other nodes: over HTTP/2, with a token for those who are to see it.

use crate::config::{Config, settings};
use futures_util::future::BoxFuture;
use http::uri::Authority;
use std::net::IpAddr;
use steadfast_kernel::Failure;
use steadfast_messaging::wire::http2::{Http2, Settings};
use steadfast_messaging::wire::tls::{self, Identity, Trust};
use steadfast_messaging::wire::{Link, Wire};

/// Connects with a token to those who are named, and without one to all others: a definition may call any address, and nobody else is to learn the token.
pub(crate) struct Wires {
    plain: Http2,
    /// Who is shown the token.
    hosts: Vec<Shown>,
    known: Http2,
}

impl Wires {
    /// As the settings say.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn of(config: &Config) -> Result<Self, String> {
        let hosts: Result<Vec<Shown>, String> = config.list(settings::MESSAGES_TOKEN_HOSTS).iter().map(|host| Shown::parse(host)).collect();
        let (file, hosts) = (config.path(settings::MESSAGES_TOKEN_FILE), hosts?);
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
        Place::parse(address).is_some_and(|place| self.hosts.iter().any(|shown| shown.is(&place)))
    }
}

/// Where something is: a scheme, a host, and a port if that is said.
#[derive(Debug)]
struct Place {
    scheme: Scheme,
    host: String,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// Where it leads if no port is said.
    fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl Place {
    /// Nothing if that is no address of a node.
    fn parse(address: &str) -> Option<Self> {
        let (scheme, authority) = address.split_once("://")?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        let authority: Authority = authority.strip_suffix('/').unwrap_or(authority).parse().ok()?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return None;
        }
        let port = match authority.as_str()[authority.host().len()..].strip_prefix(':') {
            Some(port) => Some(port.parse().ok()?),
            None => None,
        };
        Some(Place { scheme, host: authority.host().to_ascii_lowercase(), port })
    }

    fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// Somebody who is shown the token.
#[derive(Debug)]
struct Shown {
    place: Place,
    /// It was said whether it is shown with TLS or without.
    with_scheme: bool,
}

impl Shown {
    /// # Errors
    /// If that can be nobody.
    fn parse(text: &str) -> Result<Self, String> {
        let with_scheme = text.contains("://");
        let place = if with_scheme { Place::parse(text) } else { Place::parse(&format!("https://{text}")) };
        let wrong = || format!("messages.token_hosts: {text:?} is no host; use HOST, HOST:PORT, https://HOST:PORT or http://HOST:PORT");
        Ok(Shown { place: place.ok_or_else(wrong)?, with_scheme })
    }

    /// Without a scheme it is shown over TLS alone, or where nobody else listens: whoever wants it on the network in plain text has to say so.
    fn is(&self, other: &Place) -> bool {
        let fits = match (self.with_scheme, other.scheme) {
            (true, scheme) => scheme == self.place.scheme,
            (false, Scheme::Https) => true,
            (false, Scheme::Http) => other.is_loopback(),
        };
        let port = self.place.port.is_none_or(|port| port == other.port.unwrap_or_else(|| other.scheme.port()));
        fits && port && self.place.host == other.host
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

    fn wires(hosts: &[&str]) -> Wires {
        let hosts = hosts.iter().map(|host| Shown::parse(host).unwrap()).collect();
        Wires { plain: Http2::default(), known: Http2::default(), hosts }
    }

    #[test]
    fn the_token_is_for_those_who_are_named() {
        let wires = wires(&["bank.example", "http://10.0.0.7:7400", "[::1]", "https://safe:7400"]);
        for address in
            ["https://bank.example:7400", "https://BANK.example", "http://10.0.0.7:7400", "http://[::1]:7400", "https://safe:7400/"]
        {
            assert!(wires.is_known(address), "{address}");
        }
        for address in [
            "https://bank.example.evil:7400",
            "http://10.0.0.7:7401",
            "http://10.0.0.7",
            "http://evil",
            "http://evil/bank.example",
            "https://bank.example@evil",
            "bank.example",
        ] {
            assert!(!wires.is_known(address), "{address}");
        }
    }

    #[test]
    fn the_token_does_not_go_in_plain_text_where_tls_is_meant() {
        let wires = wires(&["bank.example:7400", "https://safe", "https://127.0.0.1:7400", "localhost:7400"]);
        for address in ["http://bank.example:7400", "http://safe", "http://safe:443", "http://127.0.0.1:7400"] {
            assert!(!wires.is_known(address), "{address}");
        }
        for address in ["https://bank.example:7400", "https://safe", "https://127.0.0.1:7400", "http://localhost:7400"] {
            assert!(wires.is_known(address), "{address}");
        }
    }

    #[test]
    fn hosts_that_can_be_nobody_are_refused() {
        for text in ["", "bank/api", "ftp://bank", "ada@bank", "https://", "bank:99999", "bank:", "a b", "::1"] {
            let wrong = Shown::parse(text).expect_err(text);
            assert!(wrong.contains("messages.token_hosts") && wrong.contains(text), "{wrong}");
        }
    }
}
