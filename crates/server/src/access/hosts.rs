//! The names that the server goes by. A page that makes its own name point at this machine would still send that name.

use std::net::{IpAddr, SocketAddr};

/// The names that the server goes by.
pub(crate) struct Hosts {
    /// What it listens on, as most clients write it.
    usual: String,
    listen: IpAddr,
    others: Vec<String>,
}

impl Hosts {
    pub(crate) fn new(listen: SocketAddr, others: &[String]) -> Self {
        let others = others.iter().map(|host| name(host).to_ascii_lowercase()).collect();
        Hosts { usual: listen.to_string(), listen: listen.ip(), others }
    }

    pub(crate) fn listens_on(&mut self, addr: SocketAddr) {
        self.usual = addr.to_string();
    }

    /// Whether that is one of them; its port does not matter.
    pub(crate) fn allow(&self, host: &str) -> bool {
        if host == self.usual {
            return true;
        }
        let name = name(host);
        name.eq_ignore_ascii_case("localhost")
            || self.others.iter().any(|other| name.eq_ignore_ascii_case(other))
            || address(name).is_some_and(|ip| self.is_ours(ip))
    }

    /// An address cannot be made to point elsewhere, so every one is ours if we listen on all of them.
    fn is_ours(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || ip == self.listen || self.listen.is_unspecified()
    }
}

/// A host without its port.
fn name(host: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    }
}

fn address(name: &str) -> Option<IpAddr> {
    match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
        None => name.parse().ok().map(IpAddr::V4),
    }
}

/// Whether a page of that origin belongs to that host: port and all.
pub(super) fn is_same(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listen: &str) -> Hosts {
        Hosts::new(listen.parse().unwrap(), &["Steadfast.example.com".into()])
    }

    #[test]
    fn its_own_names_are_allowed_whatever_the_port() {
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:7373", "127.0.0.1", "[::1]", "[::1]:80", "steadfast.EXAMPLE.com:443"] {
            assert!(hosts("127.0.0.1:7373").allow(host), "{host}");
        }
        assert!(hosts("10.0.0.7:7373").allow("10.0.0.7:7373") && hosts("0.0.0.0:7373").allow("192.168.1.1:7373"));
    }

    #[test]
    fn other_names_are_not() {
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "::1",
            "[::1",
            "localhost:x",
            "a@localhost",
        ] {
            assert!(!hosts("127.0.0.1:7373").allow(host), "{host}");
        }
        assert!(!hosts("0.0.0.0:7373").allow("evil.example"), "a name can be made to point here");
    }

    #[test]
    fn a_page_of_another_port_is_of_another_site() {
        assert!(is_same("http://localhost:7373", "localhost:7373") && is_same("https://a.example", "A.example"));
        for origin in ["null", "", "http://localhost:3000", "http://localhost", "ftp://localhost:7373", "localhost:7373"] {
            assert!(!is_same(origin, "localhost:7373"), "{origin}");
        }
    }
}
