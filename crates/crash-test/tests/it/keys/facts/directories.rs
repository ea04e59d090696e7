//! The keys below a directory have ended before its own end is told.

use crate::keys::left::Left;
use steadfast_kernel::Event;

pub(crate) fn hold(left: &Left) {
    for call in left.calls.iter().filter(|call| call.key.matches('/').count() == 1) {
        let below = format!("{}/", call.key);
        let there = left.rows.iter().filter(|row| row.key.as_str().starts_with(&below) && row.ended_at.is_none());
        let there: Vec<_> = there.filter(|row| row.held.put_at <= call.expired_at).collect();
        assert!(there.is_empty(), "{call:?} was told of, and below it there are {there:?}");
        for (name, journal) in left.journals.iter().filter(|(name, _)| name.as_str().starts_with(&below)) {
            for entry in journal {
                if let Event::KeyExpired { ended_at, with: Some(directory), .. } = &entry.event {
                    let same = directory.as_str() == call.key && *ended_at == call.expired_at;
                    assert!(!same || entry.at <= call.at, "{name} ended at {} with {call:?}, which was told before", entry.at);
                }
            }
        }
    }
}
