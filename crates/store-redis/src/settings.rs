//! Where Redis is, how it is spoken to, and how long things live in it.

use crate::address::Address;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where Redis is, how it is spoken to, and how long things live in it. Neither `Debug` nor any error shows a password.
#[derive(Clone)]
pub struct Settings {
    /// `redis://[user:password@]host:port/db`, `rediss://…` for TLS, or
    /// `redis+sentinel://[user:password@]host:port,host:port/service/db` (`rediss+sentinel://…`) to ask Sentinel where the server is.
    /// User and password are those of the server, not of Sentinel.
    pub url: String,
    /// The password, so that it need not be in the URL.
    pub password: Option<Secret>,
    /// A file with the password, so that it need not be in the URL. It is read at each connect, and so may change.
    pub password_file: Option<PathBuf>,
    /// A file with the password of Sentinel itself, if it asks for one.
    pub sentinel_password_file: Option<PathBuf>,
    /// A file with the certificates (PEM) to trust instead of those of the system; for TLS only.
    pub ca_file: Option<PathBuf>,
    /// What all keys begin with: `executor:`.
    pub prefix: String,
    /// How long plans, tasks, indexes and checkpoints live after the last write: 7 days.
    pub ttl: Duration,
    /// How long an instance counts as living after its last beat: 30 seconds.
    pub heartbeat_ttl: Duration,
    /// How long a connect may take: 2 seconds. With Sentinel, each server that is asked may take as long.
    pub connect_timeout: Duration,
    /// How long an answer may take: 2 seconds. A connection that takes longer is given up.
    pub response_timeout: Duration,
}

/// A setting that cannot be, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct SettingsError {
    /// Which.
    pub field: &'static str,
    /// What is wrong with it and what is allowed; without secrets.
    pub why: &'static str,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A text that is not shown from now on.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest prefix, so that a key stays short in every list.
const PREFIX_MAX: usize = 128;

impl Settings {
    /// The settings for a server, all others as they are by default.
    pub fn new(url: impl Into<String>) -> Self {
        Settings {
            url: url.into(),
            password: None,
            password_file: None,
            sentinel_password_file: None,
            ca_file: None,
            prefix: "executor:".to_owned(),
            ttl: 7 * DAY,
            heartbeat_ttl: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(2),
        }
    }

    /// Says whether they can be used. Files are not looked at: they may come later.
    ///
    /// # Errors
    /// The first setting that cannot be.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.address().map(|_| ())
    }

    /// Checks all, and reads the URL.
    pub(crate) fn address(&self) -> Result<Address, SettingsError> {
        let address = Address::parse(&self.url)?;
        self.check_secrets(&address)?;
        self.check_prefix()?;
        let second = Duration::from_secs(1);
        within("ttl", self.ttl, second..=3650 * DAY, "use 1 second to 10 years")?;
        within("heartbeat_ttl", self.heartbeat_ttl, second..=DAY, "use 1 second to 1 day")?;
        let timeouts = Duration::from_millis(10)..=Duration::from_secs(60);
        within("connect_timeout", self.connect_timeout, timeouts.clone(), "use 10 milliseconds to 1 minute")?;
        within("response_timeout", self.response_timeout, timeouts, "use 10 milliseconds to 1 minute")?;
        Ok(address)
    }

    fn check_secrets(&self, address: &Address) -> Result<(), SettingsError> {
        let places = [address.has_password(), self.password.is_some(), self.password_file.is_some()];
        if places.into_iter().filter(|given| *given).count() > 1 {
            return wrong("password", "it is given more than once; keep one of the URL, the password and the file");
        }
        if self.sentinel_password_file.is_some() && address.service.is_none() {
            return wrong("sentinel_password_file", "the URL does not ask Sentinel; use redis+sentinel:// or leave it out");
        }
        if self.ca_file.is_some() && !address.tls {
            return wrong("ca_file", "the connection is without TLS; use rediss:// or leave it out");
        }
        Ok(())
    }

    fn check_prefix(&self) -> Result<(), SettingsError> {
        let fits = (1..=PREFIX_MAX).contains(&self.prefix.len()) && self.prefix.bytes().all(|b| b.is_ascii_graphic());
        if fits { Ok(()) } else { wrong("prefix", "use 1 to 128 visible ASCII characters without spaces") }
    }
}

fn within(field: &'static str, value: Duration, range: std::ops::RangeInclusive<Duration>, why: &'static str) -> Result<(), SettingsError> {
    if range.contains(&value) { Ok(()) } else { wrong(field, why) }
}

pub(crate) fn wrong<T>(field: &'static str, why: &'static str) -> Result<T, SettingsError> {
    Err(SettingsError { field, why })
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = Address::parse(&self.url).map_or_else(|_| "(not a URL of Redis)".to_owned(), |address| address.to_string());
        f.debug_struct("Settings")
            .field("url", &url)
            .field("password", &self.password)
            .field("password_file", &self.password_file)
            .field("sentinel_password_file", &self.sentinel_password_file)
            .field("ca_file", &self.ca_file)
            .field("prefix", &self.prefix)
            .field("ttl", &self.ttl)
            .field("heartbeat_ttl", &self.heartbeat_ttl)
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .finish()
    }
}
