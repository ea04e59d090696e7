//! What kinds of values settings have, how they are read, and how they are shown.

use crate::duration;
use std::time::Duration;
use steadfast_kernel::InstanceId;

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Text,
    Path,
    /// An IP address with a port.
    Address,
    /// `http://…` or `https://…`.
    Url,
    /// Where Redis is: `redis://…`, `rediss://…` or `redis+sentinel://…`. It may have a password in it, so no message quotes it.
    Redis,
    /// Where PostgreSQL is: `postgresql://…`. It may have a password in it, so no message quotes it.
    Postgres,
    /// The name of an instance.
    Instance,
    /// A whole number, at least 1.
    Count,
    /// A number of bytes: `4096`, `64KiB`, `8MiB`, `1GiB`.
    Bytes,
    Time,
    /// A duration, or `forever`.
    TimeOrForever,
    /// Several texts; a list in the file, with commas elsewhere.
    List,
    OneOf(&'static [&'static str]),
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Not set, or for ever.
    Unset,
    Text(String),
    Number(u64),
    Time(Duration),
    List(Vec<String>),
}

const BYTE_UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("", 1)];

impl Kind {
    /// Reads a value as it is written in the environment or after a flag. Nothing at all means that it is not set.
    ///
    /// # Errors
    /// A sentence that says what is expected.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        if text.is_empty() {
            return match self {
                Kind::Count | Kind::Bytes | Kind::Time | Kind::TimeOrForever | Kind::OneOf(_) => {
                    Err(format!("it is empty; {}", self.expects()))
                }
                _ => Ok(Value::Unset),
            };
        }
        match self {
            Kind::Text | Kind::Path => Some(Value::Text(text.into())),
            Kind::Address => text.parse::<std::net::SocketAddr>().ok().map(|address| Value::Text(address.to_string())),
            Kind::Url => url(text),
            Kind::Redis => return redis(text),
            Kind::Postgres => return postgres(text),
            Kind::Instance => return instance(text),
            Kind::Count => text.replace('_', "").parse().ok().filter(|count| *count > 0).map(Value::Number),
            Kind::Bytes => bytes(text),
            Kind::Time => return duration::parse(text).map(Value::Time),
            Kind::TimeOrForever if text == "forever" => Some(Value::Unset),
            Kind::TimeOrForever => return duration::parse(text).map(Value::Time).map_err(|why| format!("{why}, or forever")),
            Kind::List => Some(Value::List(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Into::into).collect())),
            Kind::OneOf(names) => names.contains(&text).then(|| Value::Text(text.into())),
        }
        .ok_or_else(|| format!("{text:?} will not do; {}", self.expects()))
    }

    /// What it has to be, for people.
    pub(crate) fn expects(self) -> String {
        match self {
            Kind::Text => "it has to be a text".into(),
            Kind::Path => "it has to be a path".into(),
            Kind::Address => "it has to be an address with a port, like 127.0.0.1:7373 or [::1]:7373".into(),
            Kind::Url => "it has to be an address like http://127.0.0.1:7373".into(),
            Kind::Redis => {
                "it has to be an address like redis://127.0.0.1:6379/0, rediss://… or redis+sentinel://host:port,host:port/service/0".into()
            }
            Kind::Postgres => "it has to be an address like postgresql://steadfast@127.0.0.1:5432/steadfast".into(),
            Kind::Instance => "it has to be a name of letters, digits and . _ -".into(),
            Kind::Count => "it has to be a whole number, at least 1".into(),
            Kind::Bytes => "it has to be a number of bytes, like 65536, 64KiB or 8MiB".into(),
            Kind::Time => "it has to be a duration, like 250ms, 30s or 1h30m".into(),
            Kind::TimeOrForever => "it has to be a duration like 30d, or forever".into(),
            Kind::List => "it has to be a list of texts".into(),
            Kind::OneOf(names) => format!("it has to be one of {}", names.join(", ")),
        }
    }

    /// As it would be written.
    pub(crate) fn show(self, value: &Value) -> String {
        match (self, value) {
            (Kind::TimeOrForever, Value::Unset) => "forever".into(),
            (_, Value::Unset) => String::new(),
            (_, Value::Text(text)) => text.clone(),
            (Kind::Bytes, Value::Number(bytes)) => {
                let (unit, size) = BYTE_UNITS.into_iter().find(|(_, size)| *bytes > 0 && bytes % size == 0).unwrap_or(("", 1));
                format!("{}{unit}", bytes / size)
            }
            (_, Value::Number(number)) => number.to_string(),
            (_, Value::Time(time)) => duration::exact(*time),
            (_, Value::List(parts)) => parts.join(", "),
        }
    }
}

fn url(text: &str) -> Option<Value> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"))?;
    (!rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace))
        .then(|| Value::Text(text.trim_end_matches('/').into()))
}

fn redis(text: &str) -> Result<Value, String> {
    let why = |error: steadfast_store_redis::SettingsError| format!("this will not do; {}", error.why);
    steadfast_store_redis::Settings::new(text).check().map_err(why)?;
    Ok(Value::Text(text.into()))
}

fn postgres(text: &str) -> Result<Value, String> {
    let why = |error: steadfast_store_postgres::SettingsError| format!("this will not do; {}", error.why);
    steadfast_store_postgres::Settings::new(text).check().map_err(why)?;
    Ok(Value::Text(text.into()))
}

fn instance(text: &str) -> Result<Value, String> {
    let invalid = |error: steadfast_kernel::InvalidId| format!("{text:?} will not do; {error}");
    InstanceId::new(text).map(|id| Value::Text(id.to_string())).map_err(invalid)
}

fn bytes(text: &str) -> Option<Value> {
    let (unit, size) = BYTE_UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: u64 = text.strip_suffix(unit)?.trim().replace('_', "").parse().ok()?;
    number.checked_mul(size).filter(|bytes| *bytes > 0).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_they_would_be_written() {
        for (kind, text) in [
            (Kind::Bytes, "8MiB"),
            (Kind::Bytes, "1000"),
            (Kind::Count, "12"),
            (Kind::Time, "1h30m"),
            (Kind::TimeOrForever, "forever"),
            (Kind::TimeOrForever, "30d"),
            (Kind::List, "a, b"),
            (Kind::Address, "[::1]:7373"),
            (Kind::Url, "https://example.com:1"),
            (Kind::OneOf(&["a", "b"]), "b"),
        ] {
            assert_eq!(kind.show(&kind.parse(text).unwrap()), text);
        }
    }

    #[test]
    fn the_password_of_redis_is_not_quoted() {
        let why = Kind::Redis.parse("redis://:hunter2@host/db").unwrap_err();
        assert!(!why.contains("hunter2") && why.contains("number of the database"), "{why}");
    }

    #[test]
    fn what_will_not_do_is_told_with_what_would() {
        for (kind, text, part) in [
            (Kind::Address, "localhost:7373", "127.0.0.1:7373"),
            (Kind::Url, "127.0.0.1:7373", "http://"),
            (Kind::Count, "0", "at least 1"),
            (Kind::Count, "-1", "at least 1"),
            (Kind::Bytes, "1 GB", "8MiB"),
            (Kind::Time, "", "1h30m"),
            (Kind::TimeOrForever, "never", "forever"),
            (Kind::OneOf(&["human", "json"]), "xml", "human, json"),
            (Kind::Redis, "127.0.0.1:6379", "redis://"),
            (Kind::Postgres, "127.0.0.1:5432", "postgresql://"),
            (Kind::Instance, "a:b", "a:b"),
        ] {
            let why = kind.parse(text).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
