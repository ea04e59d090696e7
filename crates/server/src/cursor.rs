//! Places in lists and in the change feed, as clients see them: opaque, and good for one list only.

use crate::problem::Problem;
use data_encoding::BASE64URL_NOPAD;
use steadfast_kernel::{KeyName, LetterId, PlanId, RunId, TenantId, Timestamp};
use steadfast_store::{CallbackCursor, LetterCursor, PlanCursor, Position, RunCursor};

/// A place in a list.
pub(crate) trait Cursor: Sized {
    /// Which list; the first byte of every cursor.
    const LIST: u8;
    fn write(&self) -> String;
    fn read(text: &str) -> Option<Self>;
}

/// What the client is given.
pub(crate) fn encode<C: Cursor>(cursor: &C) -> String {
    let mut bytes = vec![C::LIST];
    bytes.extend_from_slice(cursor.write().as_bytes());
    BASE64URL_NOPAD.encode(&bytes)
}

/// What the client has given.
pub(crate) fn decode<C: Cursor>(name: &str, text: &str) -> Result<C, Problem> {
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    let cursor = bytes.as_deref().and_then(<[u8]>::split_first).filter(|(list, _)| **list == C::LIST);
    let cursor = cursor.and_then(|(_, rest)| C::read(std::str::from_utf8(rest).ok()?));
    cursor.ok_or_else(|| Problem::bad_request(format!("{name} is not a cursor that this list has given; leave it out to begin anew")))
}

impl Cursor for RunCursor {
    const LIST: u8 = b'r';

    fn write(&self) -> String {
        format!("{}.{}", self.started_at.as_micros(), self.run)
    }

    fn read(text: &str) -> Option<Self> {
        let (started_at, run) = text.split_once('.')?;
        Some(RunCursor { started_at: Timestamp::from_micros(started_at.parse().ok()?), run: RunId::new(run).ok()? })
    }
}

impl Cursor for LetterCursor {
    const LIST: u8 = b'l';

    fn write(&self) -> String {
        format!("{}.{}", self.added_at.as_micros(), self.letter)
    }

    fn read(text: &str) -> Option<Self> {
        let (added_at, letter) = text.split_once('.')?;
        Some(LetterCursor { added_at: Timestamp::from_micros(added_at.parse().ok()?), letter: LetterId::parse(letter)? })
    }
}

impl Cursor for PlanCursor {
    const LIST: u8 = b'p';

    fn write(&self) -> String {
        format!("{}.{}", self.created_at.as_micros(), self.plan)
    }

    fn read(text: &str) -> Option<Self> {
        let (created_at, plan) = text.split_once('.')?;
        Some(PlanCursor { created_at: Timestamp::from_micros(created_at.parse().ok()?), plan: PlanId::new(plan).ok()? })
    }
}

/// Locks are listed by tenant.
impl Cursor for TenantId {
    const LIST: u8 = b't';

    fn write(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Option<Self> {
        TenantId::new(text).ok()
    }
}

impl Cursor for KeyName {
    const LIST: u8 = b'k';

    fn write(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Option<Self> {
        KeyName::new(text).ok()
    }
}

impl Cursor for CallbackCursor {
    const LIST: u8 = b'c';

    fn write(&self) -> String {
        format!("{}.{}.{}", self.ended_at.as_micros(), self.revision, self.key)
    }

    fn read(text: &str) -> Option<Self> {
        let (ended_at, rest) = text.split_once('.')?;
        let (revision, key) = rest.split_once('.')?;
        let ended_at = Timestamp::from_micros(ended_at.parse().ok()?);
        Some(CallbackCursor { ended_at, key: KeyName::new(key).ok()?, revision: revision.parse().ok()? })
    }
}

impl Cursor for Position {
    const LIST: u8 = b'f';

    fn write(&self) -> String {
        self.0.to_string()
    }

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_list_only() {
        let run = RunCursor { started_at: Timestamp::from_micros(17), run: RunId::new("a/b.5").unwrap() };
        let text = encode(&run);
        assert_eq!(decode::<RunCursor>("cursor", &text).unwrap(), run);
        assert!(decode::<LetterCursor>("cursor", &text).is_err());
        assert_eq!(decode::<Position>("after", &encode(&Position(7))).unwrap(), Position(7));
        let end = CallbackCursor { ended_at: Timestamp::from_micros(17), key: KeyName::new("a:b/c.5").unwrap(), revision: 3 };
        assert_eq!(decode::<CallbackCursor>("cursor", &encode(&end)).unwrap(), end);
        assert_eq!(decode::<KeyName>("cursor", &encode(&end.key)).unwrap(), end.key);
        let plan = PlanCursor { created_at: Timestamp::from_micros(17), plan: PlanId::new("a/b.5").unwrap() };
        assert_eq!(decode::<PlanCursor>("cursor", &encode(&plan)).unwrap(), plan);
        assert!(decode::<PlanCursor>("cursor", &text).is_err());
        let tenant = TenantId::new("acme/eu").unwrap();
        assert_eq!(decode::<TenantId>("cursor", &encode(&tenant)).unwrap(), tenant);
        for foreign in ["", "7", "r17.a", "é", "cmF"] {
            assert!(decode::<RunCursor>("cursor", foreign).is_err(), "{foreign}");
        }
    }
}
