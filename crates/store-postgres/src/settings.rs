//! Where PostgreSQL is, and how it is spoken to.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// Where PostgreSQL is, and how it is spoken to. Neither `Debug` nor any error shows a password.
#[derive(Clone)]
pub struct Settings {
    /// `postgresql://[user[:password]@]host[:port]/database[?sslmode=…]`. With `sslmode=disable` there is no TLS; with `prefer`, the default, there is if the
    /// server has it, and with `require` always, both without looking at its certificate. Where a CA is given, both are `verify-ca`: always TLS, and the CA
    /// has signed the certificate. With `verify-full` it has to be that of the host, too. Of several hosts the one that may be written is used.
    pub url: String,
    /// A file with the password, so that it need not be in the URL. It is read at each connect, and so may change.
    pub password_file: Option<PathBuf>,
    /// A file with the certificates (PEM) to trust instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// A file with a certificate (PEM) by which the server knows this program; with `key_file`.
    pub certificate_file: Option<PathBuf>,
    /// A file with the key (PEM) of that certificate.
    pub key_file: Option<PathBuf>,
    /// How many connections there are at most: 10. One writes, the others read. Where there are [leases](crate::Postgres::leases), one more listens, one renews
    /// them, and up to two are for what else is asked of them.
    pub connections_max: usize,
    /// How long a connect may take: 5 seconds.
    pub connect_timeout: Duration,
    /// How long a statement may take, and how long its answer: 30 seconds.
    pub statement_timeout: Duration,
    /// How many shards a new database gets: 64. One that is there keeps those that it has.
    pub shards: u32,
}

/// One that writes, and two that read: lists for people have all but one of those, and work has to read meanwhile.
const CONNECTIONS_MIN: usize = 3;

/// A setting that cannot be, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct SettingsError {
    /// Which.
    pub field: &'static str,
    /// What is wrong with it and what is allowed; without secrets.
    pub why: String,
}

/// How much of a server's certificate is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    Nothing,
    /// Somebody who is trusted has signed it.
    Chain,
    /// And it is that of the host.
    Full,
}

/// What the URL says.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) verify: Verify,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) certificate_file: Option<PathBuf>,
    pub(crate) key_file: Option<PathBuf>,
}

impl Settings {
    /// The settings for a database, all others as they are by default.
    pub fn new(url: impl Into<String>) -> Self {
        Settings {
            url: url.into(),
            password_file: None,
            ca_file: None,
            certificate_file: None,
            key_file: None,
            connections_max: 10,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            shards: 64,
        }
    }

    /// Says whether they can be used. Files are not looked at: they may come later.
    ///
    /// # Errors
    /// The first setting that cannot be.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.address().map(drop)
    }

    /// Checks all, and reads the URL.
    pub(crate) fn address(&self) -> Result<Address, SettingsError> {
        let address = self.parse()?;
        if self.password_file.is_some() && address.config.get_password().is_some() {
            return wrong("password_file", "the URL has a password, too; keep one of them");
        }
        if address.ca_file.is_some() && address.config.get_ssl_mode() == SslMode::Disable {
            return wrong("ca_file", "without TLS nobody looks at it; take it away, or sslmode=disable");
        }
        if address.certificate_file.is_some() != address.key_file.is_some() {
            return wrong("certificate_file", "a certificate needs its key, and a key its certificate; give both or none");
        }
        if !(CONNECTIONS_MIN..=1000).contains(&self.connections_max) {
            let why = "use 3 to 1000: one connection writes, one reads for the work, and one for lists, so that a slow list does not stop all work";
            return wrong("connections_max", why);
        }
        let times = Duration::from_millis(10)..=Duration::from_secs(3600);
        if !times.contains(&self.connect_timeout) {
            return wrong("connect_timeout", "use 10 milliseconds to 1 hour");
        }
        if !times.contains(&self.statement_timeout) {
            return wrong("statement_timeout", "use 10 milliseconds to 1 hour");
        }
        if !(1..=4096).contains(&self.shards) {
            return wrong("shards", "use 1 to 4096");
        }
        Ok(address)
    }

    /// What is said of TLS is taken out of the URL: the driver knows less of it.
    fn parse(&self) -> Result<Address, SettingsError> {
        let scheme = ["postgresql://", "postgres://"].iter().any(|scheme| self.url.starts_with(scheme));
        if !scheme {
            return wrong("url", "it begins with postgresql://");
        }
        let (base, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        if !has_one_meaning(base, query) {
            return wrong("url", "encode an @ in the user, the password, the database or a parameter as %40, and a ? as %3F");
        }
        let (mut mode, mut rest) = ("prefer".to_owned(), Vec::new());
        let mut files = (self.ca_file.clone(), self.certificate_file.clone(), self.key_file.clone());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "sslmode" => mode = decoded(value)?,
                "sslrootcert" => files.0 = Some(decoded(value)?.into()),
                "sslcert" => files.1 = Some(decoded(value)?.into()),
                "sslkey" => files.2 = Some(decoded(value)?.into()),
                _ => rest.push(pair),
            }
        }
        let (ssl, verify) = match mode.as_str() {
            "disable" => (SslMode::Disable, Verify::Nothing),
            "prefer" if files.0.is_none() => (SslMode::Prefer, Verify::Nothing),
            "require" if files.0.is_none() => (SslMode::Require, Verify::Nothing),
            "prefer" | "require" | "verify-ca" => (SslMode::Require, Verify::Chain),
            "verify-full" => (SslMode::Require, Verify::Full),
            _ => return wrong("url", "sslmode is disable, prefer, require, verify-ca or verify-full"),
        };
        let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        // What the driver says of a URL that it does not understand may have a part of the URL in it.
        let mut config: Config = url.parse().or_else(|_| wrong("url", "it is not postgresql://user@host:port/database"))?;
        if config.get_hosts().is_empty() {
            return wrong("url", "it names no host");
        }
        config.ssl_mode(ssl);
        Ok(Address { config, verify, ca_file: files.0, certificate_file: files.1, key_file: files.2 })
    }
}

/// What follows the first `@` is the host, and what follows the first `?` are parameters: in a password that has them as they are it would be a part of the
/// password, which is shown then, or decides about TLS.
fn has_one_meaning(base: &str, query: &str) -> bool {
    match base.matches('@').count() {
        0 => !query.contains('@'),
        signs => signs == 1,
    }
}

fn decoded(value: &str) -> Result<String, SettingsError> {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).or_else(|_| wrong("url", "a value in it is not UTF-8"))
}

fn wrong<T>(field: &'static str, why: &str) -> Result<T, SettingsError> {
    Err(SettingsError { field, why: why.into() })
}

/// Where it is, for people.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        for (nth, host) in self.config.get_hosts().iter().enumerate() {
            let name = match host {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(path) => path.display().to_string(),
            };
            let port = ports.get(nth).or_else(|| ports.first()).unwrap_or(&5432);
            write!(f, "{}{name}:{port}", if nth == 0 { "" } else { "," })?;
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.parse().map_or_else(|_| "(not a URL of PostgreSQL)".to_owned(), |address| address.to_string());
        f.debug_struct("Settings")
            .field("url", &url)
            .field("password_file", &self.password_file)
            .field("ca_file", &self.ca_file)
            .field("certificate_file", &self.certificate_file)
            .field("key_file", &self.key_file)
            .field("connections_max", &self.connections_max)
            .field("connect_timeout", &self.connect_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("shards", &self.shards)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let settings = Settings::new("postgresql://ann:hush%21@db.example:6000/work?sslmode=require&connect_timeout=3");
        let shown = format!("{settings:?}");
        assert!(shown.contains("db.example:6000/work") && !shown.contains("hush"), "{shown}");
        for url in ["postgresql://ann:hush@[::x/work", "postgresql://ann:hush@h/work?hush", "ann:hush@h", "postgresql://ann:hush@h:hush/w"]
        {
            let error = Settings::new(url).check().unwrap_err();
            assert!(!error.to_string().contains("hush"), "{error}");
            assert!(!format!("{:?}", Settings::new(url)).contains("hush"));
        }
    }

    /// What is meant to be a part of a password would be the name of a host, or a parameter.
    #[test]
    fn a_password_whose_signs_are_not_encoded_is_refused_and_not_shown() {
        for url in [
            "postgresql://ann:x@hush@db/work",
            "postgresql://ann:x@hush/@db/work?sslmode=require",
            "postgresql://ann:x?hush@db/work?sslmode=require",
            "postgresql://ann:x?hush@db/work",
            "postgresql://ann:x?hush@hush@db/work",
        ] {
            let error = Settings::new(url).check().unwrap_err();
            assert!(error.why.contains("%40") && error.why.contains("%3F") && !error.to_string().contains("hush"), "{url}: {error}");
            assert!(!format!("{:?}", Settings::new(url)).contains("hush"), "{url}");
        }
        let encoded = Settings::new("postgresql://ann:x%40hu%3Fsh@db/work?sslmode=require&options=-c%20a.b=c@d")
            .address()
            .unwrap();
        assert_eq!(encoded.config.get_password(), Some(&b"x@hu?sh"[..]));
        assert_eq!((encoded.to_string().as_str(), encoded.config.get_ssl_mode()), ("db:5432/work", SslMode::Require));
    }

    #[test]
    fn the_mode_says_what_is_looked_at() {
        let read = |query: &str| Settings::new(format!("postgresql://h/d{query}")).address().unwrap();
        let found = |query: &str| (read(query).config.get_ssl_mode(), read(query).verify);
        assert_eq!(found(""), (SslMode::Prefer, Verify::Nothing));
        assert_eq!(found("?sslmode=disable"), (SslMode::Disable, Verify::Nothing));
        assert_eq!(found("?sslmode=require"), (SslMode::Require, Verify::Nothing));
        assert_eq!(found("?sslmode=require&sslrootcert=%2Fa%20b"), (SslMode::Require, Verify::Chain));
        assert_eq!(found("?application_name=x&sslmode=verify-full"), (SslMode::Require, Verify::Full));
        assert_eq!(found("?sslrootcert=%2Fa%20b"), (SslMode::Require, Verify::Chain), "whoever names a CA wants it to be asked");
        assert_eq!(found("?sslmode=prefer&sslrootcert=%2Fa%20b"), (SslMode::Require, Verify::Chain));
        assert_eq!(read("?sslrootcert=%2Fa%20b").ca_file, Some("/a b".into()));
        assert_eq!(Settings::new("postgresql://h/d?sslmode=disable&sslrootcert=x").check().unwrap_err().field, "ca_file");
        assert_eq!(Settings::new("postgresql://h/d?sslmode=maybe").check().unwrap_err().field, "url");
    }

    #[test]
    fn settings_that_cannot_be_are_named() {
        let good = Settings::new("postgresql://h/d");
        good.check().unwrap();
        for (field, bad) in [
            ("connections_max", Settings { connections_max: 2, ..good.clone() }),
            ("connect_timeout", Settings { connect_timeout: Duration::ZERO, ..good.clone() }),
            ("statement_timeout", Settings { statement_timeout: Duration::ZERO, ..good.clone() }),
            ("shards", Settings { shards: 0, ..good.clone() }),
            ("certificate_file", Settings { certificate_file: Some("c".into()), ..good }),
            ("password_file", Settings { password_file: Some("p".into()), ..Settings::new("postgresql://u:p@h/d") }),
        ] {
            assert_eq!(bad.check().unwrap_err().field, field);
        }
    }
}
