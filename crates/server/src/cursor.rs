//! Places in lists and in the change feed, as clients see them: opaque, and good for one list only.

use crate::problem::Problem;
use data_encoding::BASE64URL_NOPAD;
use steadfast_kernel::{KeyName, LetterId, PlanId, RunId, TenantId, Timestamp};
use steadfast_store::{CallbackCursor, LetterCursor, PlanCursor, Position, RunCursor};

/// A place in a list.
pub(crate) trait Cursor: Sized {
    /// Which list; the first byte of every cursor.
    const LIST: u8;
    fn write(&self) -> Vec<u8>;
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// What the client is given.
pub(crate) fn encode<C: Cursor>(cursor: &C) -> String {
    let mut bytes = vec![C::LIST];
    bytes.extend(cursor.write());
    BASE64URL_NOPAD.encode(&bytes)
}

/// What the client has given.
pub(crate) fn decode<C: Cursor>(name: &str, text: &str) -> Result<C, Problem> {
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    let cursor = bytes.as_deref().and_then(<[u8]>::split_first).filter(|(list, _)| **list == C::LIST);
    let cursor = cursor.and_then(|(_, rest)| C::read(rest));
    cursor.ok_or_else(|| Problem::bad_request(format!("{name} is not a cursor that this list has given; leave it out to begin anew")))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

impl Cursor for RunCursor {
    const LIST: u8 = b'r';

    fn write(&self) -> Vec<u8> {
        format!("{}.{}", self.started_at.as_micros(), self.run).into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (started_at, run) = text(bytes)?.split_once('.')?;
        Some(RunCursor { started_at: Timestamp::from_micros(started_at.parse().ok()?), run: RunId::new(run).ok()? })
    }
}

impl Cursor for LetterCursor {
    const LIST: u8 = b'l';

    fn write(&self) -> Vec<u8> {
        format!("{}.{}", self.added_at.as_micros(), self.letter).into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (added_at, letter) = text(bytes)?.split_once('.')?;
        Some(LetterCursor { added_at: Timestamp::from_micros(added_at.parse().ok()?), letter: LetterId::parse(letter)? })
    }
}

impl Cursor for PlanCursor {
    const LIST: u8 = b'p';

    fn write(&self) -> Vec<u8> {
        format!("{}.{}", self.created_at.as_micros(), self.plan).into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (created_at, plan) = text(bytes)?.split_once('.')?;
        Some(PlanCursor { created_at: Timestamp::from_micros(created_at.parse().ok()?), plan: PlanId::new(plan).ok()? })
    }
}

/// Locks are listed by tenant.
impl Cursor for TenantId {
    const LIST: u8 = b't';

    fn write(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        TenantId::new(text(bytes)?).ok()
    }
}

impl Cursor for KeyName {
    const LIST: u8 = b'k';

    fn write(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        KeyName::new(text(bytes)?).ok()
    }
}

impl Cursor for CallbackCursor {
    const LIST: u8 = b'c';

    fn write(&self) -> Vec<u8> {
        format!("{}.{}.{}", self.ended_at.as_micros(), self.revision, self.key).into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (ended_at, rest) = text(bytes)?.split_once('.')?;
        let (revision, key) = rest.split_once('.')?;
        let ended_at = Timestamp::from_micros(ended_at.parse().ok()?);
        Some(CallbackCursor { ended_at, key: KeyName::new(key).ok()?, revision: revision.parse().ok()? })
    }
}

impl Cursor for Position {
    const LIST: u8 = b'f';

    fn write(&self) -> Vec<u8> {
        self.encode()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Position::decode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_store::Place;

    #[test]
    fn a_cursor_is_good_for_its_own_list_only() {
        let run = RunCursor { started_at: Timestamp::from_micros(17), run: RunId::new("a/b.5").unwrap() };
        let text = encode(&run);
        assert_eq!(decode::<RunCursor>("cursor", &text).unwrap(), run);
        assert!(decode::<LetterCursor>("cursor", &text).is_err());
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

    #[test]
    fn a_position_of_one_shard_is_written_as_it_always_was() {
        let seven = Position::from_iter([Place { shard: 0, number: 7 }]);
        assert_eq!(encode(&seven), BASE64URL_NOPAD.encode(b"f7"));
        assert_eq!(decode::<Position>("after", &encode(&seven)).unwrap(), seven);
        let many: Position = (0..64).map(|shard| Place { shard, number: 900_000 }).collect();
        assert_eq!(decode::<Position>("after", &encode(&many)).unwrap(), many);
        assert!(encode(&many).len() < 400);
    }
}
