//! Generates random keys and expiry callbacks.

use super::chance::Chance;
use std::time::Duration;
use steadfast_kernel::{Failure, Held, KeyName, Revision, Target};
use steadfast_store::{CallbackChange, CallbackFilter, CallbackRow, EndedBelow, KeyChange, KeyRow};

/// Few enough to meet, and some begin like others.
pub(super) const KEYS: [&str; 7] = ["a", "a-1", "a.b", "a/b", "a:b", "B", "b"];

/// Of names; of some there is none.
pub(super) const PREFIXES: [&str; 8] = ["", "a", "a/", "a:", "a:b", "B", "c", "\u{e4}"];

/// Revisions whose texts are not in their order.
const REVISIONS: [Revision; 3] = [9, 10, 1 << 40];

impl Chance {
    pub(super) fn key_name(&mut self) -> KeyName {
        KeyName::new(self.one_of(&KEYS)).unwrap()
    }

    pub(super) fn key(&mut self) -> KeyChange {
        let key = self.key_name();
        if self.below(3) == 0 {
            return KeyChange::Remove(key);
        }
        let held = Held {
            revision: self.one_of(&REVISIONS),
            value: self.payload(),
            ttl: Duration::from_micros(self.below(1 << 40)),
            expires_at: self.time(),
            owner: self.maybe(Self::text),
            directory: self.below(2) == 0,
            on_expire: self.maybe(Self::target),
            put_at: self.time(),
        };
        let (shard, ended_at) = (self.shard(), self.maybe(Self::time));
        let ended_below = self.maybe(|chance| EndedBelow { at: chance.time(), deleted: chance.below(2) == 0 });
        KeyChange::Put(Box::new(KeyRow { shard, key, held, ended_at, ended_below }))
    }

    fn target(&mut self) -> Target {
        match self.below(3) {
            0 => Target::Url(self.text()),
            1 => Target::StartRun { workflow: self.workflow(), input: self.payload() },
            _ => Target::Handler,
        }
    }

    pub(super) fn callback(&mut self) -> CallbackChange {
        let (key, revision) = (self.key_name(), self.one_of(&REVISIONS));
        if self.below(3) == 0 {
            return CallbackChange::Remove(key, revision);
        }
        CallbackChange::Put(Box::new(CallbackRow {
            shard: self.shard(),
            key,
            revision,
            ended_at: self.time(),
            target: self.text(),
            attempt: u32::try_from(self.below(9)).unwrap(),
            next_at: self.maybe(Self::time),
            of: self.maybe(|chance| u32::try_from(chance.below(9)).unwrap()),
            failure: self.maybe(|chance| Failure::poison(chance.text())),
        }))
    }

    pub(super) fn callback_filter(&mut self) -> CallbackFilter {
        let shard = self.maybe(Self::shard);
        CallbackFilter { shard, prefix: self.one_of(&PREFIXES).into(), first: self.below(2) == 0 }
    }
}
