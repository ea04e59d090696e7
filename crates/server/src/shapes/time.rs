//! Times: RFC 3339 in UTC, with as many digits as they need.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use steadfast_kernel::Timestamp;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A time, shown as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Timestamp);

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Self {
        Time(time)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
        Ok(Time(Timestamp::from_micros(time.as_microsecond())))
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))).build().into()
    }
}

impl ToSchema for Time {
    fn name() -> Cow<'static, str> {
        "Time".into()
    }
}

/// A duration in whole milliseconds, rounded up: what is not over yet is never shown as nothing.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for micros in [0, 1, 1_700_000_000_123_456, Timestamp::MAX.as_micros()] {
            let time = Time(Timestamp::from_micros(micros));
            let text = serde_json::to_string(&time).unwrap();
            assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time, "{text}");
            assert!(text.ends_with("Z\""), "{text}");
        }
    }
}
