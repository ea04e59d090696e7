//! The URL of a Redis, read: which servers, which service, and who we are.

use crate::settings::{SettingsError, wrong};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};
use std::fmt;

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Which servers, which service, and who we are.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) tls: bool,
    /// The server, or those to ask where it is.
    pub(crate) hosts: Vec<Host>,
    /// The name under which Sentinel knows the server; nothing without Sentinel.
    pub(crate) service: Option<String>,
    /// User, password and database.
    pub(crate) login: RedisConnectionInfo,
}

/// A name or number of a machine, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

const FORMS: &str = "use redis://[user:password@]host:port/db, rediss://… or redis+sentinel://[user:password@]host:port,host:port/service/db; \
                     encode special characters of the password like %2F";

impl Address {
    /// Reads the URL. What is wrong with it is said without showing it.
    pub(crate) fn parse(url: &str) -> Result<Self, SettingsError> {
        let (scheme, rest) = url.split_once("://").map_or_else(|| wrong("url", FORMS), Ok)?;
        let (tls, sentinel) = match scheme {
            "redis" => (false, false),
            "rediss" => (true, false),
            "redis+sentinel" => (false, true),
            "rediss+sentinel" => (true, true),
            _ => return wrong("url", FORMS),
        };
        if rest.contains(['#', '?']) {
            return wrong("url", "it has no ? and no #; encode those of the password as %3F and %23");
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        let (service, db) = service_and_db(sentinel, path)?;
        let user = user.map_or_else(String::new, |user| format!("{user}@"));
        let mut address = Address { tls, hosts: Vec::new(), service, login: RedisConnectionInfo::default() };
        for host in hosts.split(',') {
            let (host, login) = host_and_login(&user, host, db, if sentinel { SENTINEL_PORT } else { PORT })?;
            address.hosts.push(host);
            address.login = login;
        }
        if !sentinel && address.hosts.len() > 1 {
            return wrong("url", "more than one server needs Sentinel: redis+sentinel://host:port,host:port/service/db");
        }
        Ok(address)
    }

    pub(crate) fn has_password(&self) -> bool {
        self.login.password().is_some()
    }

    /// How to reach one server.
    pub(crate) fn reach(&self, host: &Host) -> ConnectionAddr {
        let Host { name, port } = host.clone();
        match self.tls {
            true => ConnectionAddr::TcpTls { host: name, port, insecure: false, tls_params: None },
            false => ConnectionAddr::Tcp(name, port),
        }
    }
}

fn service_and_db(sentinel: bool, path: &str) -> Result<(Option<String>, u16), SettingsError> {
    let (service, db) = match sentinel {
        true => path.split_once('/').unwrap_or((path, "")),
        false => ("", path),
    };
    if sentinel && service.is_empty() {
        return wrong("url", "Sentinel knows servers by the name of a service: redis+sentinel://host:port/service/db");
    }
    let db = match db {
        "" => 0,
        db => db
            .parse()
            .or_else(|_| wrong("url", "after the last / comes the number of the database, 0 to 65535"))?,
    };
    Ok((sentinel.then(|| service.to_owned()), db))
}

/// The host and what the URL says of us, read by the library: it knows how names and passwords are encoded.
fn host_and_login(user: &str, host: &str, db: u16, port: u16) -> Result<(Host, RedisConnectionInfo), SettingsError> {
    let url = format!("redis://{user}{host}/{db}");
    let info: ConnectionInfo = url.into_connection_info().or_else(|_| wrong("url", FORMS))?;
    let ConnectionAddr::Tcp(name, found) = info.addr().clone() else { return wrong("url", FORMS) };
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, after)| !after.is_empty() && after.bytes().all(|b| b.is_ascii_digit()));
    let port = if has_port { found } else { port };
    Ok((Host { name, port }, info.redis_settings().clone().set_skip_set_lib_name()))
}

/// The URL without user and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
        write!(f, "redis{}", if self.tls { "s" } else { "" })?;
        match &self.service {
            Some(service) => write!(f, "+sentinel://{}/{service}/{}", hosts.join(","), self.login.db()),
            None => write!(f, "://{}/{}", hosts.join(","), self.login.db()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Address::parse(url).map_or_else(|error| error.to_string(), |address| address.to_string())
    }

    #[test]
    fn every_form_is_read_and_shown_without_the_password() {
        assert_eq!(shown("redis://localhost"), "redis://localhost:6379/0");
        assert_eq!(shown("redis://me:s3cret@[::1]:7000/3"), "redis://[::1]:7000/3");
        assert_eq!(shown("redis://[fe80::1]"), "redis://[fe80::1]:6379/0");
        assert_eq!(shown("rediss://:s3cret@cache.example"), "rediss://cache.example:6379/0");
        assert_eq!(shown("redis+sentinel://me:s3cret@a,b:1,[::1]/main/2"), "redis+sentinel://a:26379,b:1,[::1]:26379/main/2");
        assert_eq!(shown("rediss+sentinel://a/main"), "rediss+sentinel://a:26379/main/0");
    }

    #[test]
    fn user_and_password_are_decoded() {
        let address = Address::parse("redis://me:a%2Fb%40c@host").unwrap();
        assert_eq!((address.login.username(), address.login.password()), (Some("me"), Some("a/b@c")));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for url in [
            "s3cret",
            "http://:s3cret@host",
            "redis://:s3cret/x@host",
            "redis://me:12/s3cret@host",
            "redis://:s3cret@",
            "redis://:s3cret@host/db",
            "redis://:s3cret@host#insecure",
            "redis://:s3cret@host?protocol=resp3",
            "redis://:s3cret@a,b",
            "redis+sentinel://:s3cret@a",
            "redis+sentinel://:s3cret@a/main/x",
            "redis://:s3cret@host:99999",
        ] {
            let error = shown(url);
            assert!(error.starts_with("url: ") && !error.contains("s3cret"), "{url} gave {error}");
        }
    }
}
