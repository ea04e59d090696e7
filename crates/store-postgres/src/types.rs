//! Values on their way to PostgreSQL and back.

use bytes::{BufMut, BytesMut};
use std::borrow::Cow;
use std::error::Error;
use steadfast_kernel::Timestamp;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

type Boxed = Box<dyn Error + Sync + Send>;

/// Microseconds from the start of 1970 to that of 2000, from which PostgreSQL counts.
const EPOCH: i64 = 946_684_800_000_000;

/// A time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At(pub(crate) Timestamp);

impl ToSql for At {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Boxed> {
        out.put_i64(self.0.as_micros() - EPOCH);
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl FromSql<'_> for At {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Boxed> {
        let micros = i64::from_be_bytes(raw.try_into()?).checked_add(EPOCH).ok_or("a time that is not one of ours")?;
        Ok(At(Timestamp::from_micros(micros)))
    }

    accepts!(TIMESTAMPTZ);
}

/// A text that may have any character. PostgreSQL has no U+0000 in texts; so it, and the character that stands for it, are written as two others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Free<'a>(pub(crate) &'a str);

const MARK: char = '\u{1a}';
const MARK_ITSELF: &str = "\u{1a}\u{1b}";
const ZERO: &str = "\u{1a}\u{1c}";

/// The text as it is stored.
pub(crate) fn stored(text: &str) -> Cow<'_, str> {
    match text.contains(['\0', MARK]) {
        true => text.replace(MARK, MARK_ITSELF).replace('\0', ZERO).into(),
        false => text.into(),
    }
}

impl ToSql for Free<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Boxed> {
        out.put_slice(stored(self.0).as_bytes());
        Ok(IsNull::No)
    }

    accepts!(TEXT);
    to_sql_checked!();
}

/// What a [`Free`] text was.
#[derive(Clone, Debug)]
pub(crate) struct Freed(pub(crate) String);

impl FromSql<'_> for Freed {
    fn from_sql(kind: &Type, raw: &[u8]) -> Result<Self, Boxed> {
        let text = String::from_sql(kind, raw)?;
        Ok(Freed(if text.contains(MARK) { text.replace(ZERO, "\0").replace(MARK_ITSELF, "\u{1a}") } else { text }))
    }

    accepts!(TEXT);
}

/// JSON that PostgreSQL takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<'a>(pub(crate) &'a str);

impl ToSql for Json<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Boxed> {
        out.put_u8(1); // the version of what follows
        out.put_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    accepts!(JSONB);
    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_none_has_a_zero() {
        for text in [
            "",
            "plain",
            "\0",
            "a\0b\0",
            "\u{1a}",
            "\u{1a}\0",
            "\0\u{1a}\u{1b}",
            "\u{1a}\u{1c}",
            "\u{1b}\u{1c}",
            "\u{1a}\u{1a}\u{1c}\u{1b}",
        ] {
            let stored = stored(text);
            assert!(!stored.contains('\0'));
            let Freed(back) = Freed::from_sql(&Type::TEXT, stored.as_bytes()).unwrap();
            assert_eq!(back, text, "stored as {stored:?}");
        }
    }

    #[test]
    fn times_come_back_to_the_microsecond() {
        for time in [Timestamp::EPOCH, Timestamp::from_micros(1), Timestamp::from_micros(1_767_225_600_123_456), Timestamp::MAX] {
            let mut bytes = BytesMut::new();
            let _not_null = At(time).to_sql(&Type::TIMESTAMPTZ, &mut bytes).unwrap();
            assert_eq!(At::from_sql(&Type::TIMESTAMPTZ, &bytes).unwrap().0, time);
        }
    }
}
