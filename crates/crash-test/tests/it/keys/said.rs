//! What processes have asked of keys, and what came of it, as far as it was said.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steadfast_crash_test::keys::DIRECTORY;
use steadfast_kernel::{Revision, Timestamp};
use steadfast_store::KeyRow;

/// One change that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Op {
    asked_at: Timestamp,
    what: What,
    came: Came,
}

#[derive(Clone, Debug)]
enum What {
    Put { ttl: Duration, value: String },
    Renew { ttl: Duration },
    Delete,
}

/// What came of it.
#[derive(Clone, Debug)]
enum Came {
    /// Nobody knows: the process was killed.
    Unknown,
    Nothing,
    /// It holds until then.
    Held(Revision, Timestamp),
    /// It was deleted, at that time or before.
    Deleted(Revision, Timestamp),
}

/// What a key held for a while.
#[derive(Clone, Debug)]
pub(super) struct Stay {
    pub(super) key: String,
    pub(super) revision: Revision,
    pub(super) value: String,
    pub(super) put_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is left to expire.
    Expires,
    /// It was renewed, replaced or deleted in time: then, or before that.
    Changed(Timestamp),
    /// What was asked last may have come in time or not.
    Unsure,
}

/// All that was said, by key.
#[derive(Default)]
pub(super) struct Said {
    ops: BTreeMap<String, Vec<Op>>,
    /// What was said of dead letters: the verb, the key and the revision.
    pub(super) letters: BTreeSet<(String, String, Revision)>,
}

impl Said {
    /// Hears what a process said, in its order.
    pub(super) fn hear(&mut self, lines: &[String]) {
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["asks", at, key, ref what @ ..] => {
                    let op = Op { asked_at: time(at), what: asked(what), came: Came::Unknown };
                    self.ops.entry(key.into()).or_default().push(op);
                }
                ["did", _, key, revision, expires_at] => self.came(key, Came::Held(number(revision), time(expires_at))),
                ["did", at, key, revision] => self.came(key, Came::Deleted(number(revision), time(at))),
                ["refused", _, key] => self.came(key, Came::Nothing),
                [verb, key, revision] => drop(self.letters.insert((verb.into(), key.into(), number(revision)))),
                _ => panic!("{line:?} says nothing"),
            }
        }
    }

    fn came(&mut self, key: &str, came: Came) {
        let last = self.ops.get_mut(key).and_then(|ops| ops.last_mut()).expect("it was asked");
        assert!(matches!(last.came, Came::Unknown), "{key} was answered twice");
        last.came = came;
    }

    /// Where a process was killed before it could say what came of something, what it left behind may tell.
    pub(super) fn look_back(&mut self, rows: &[KeyRow]) {
        for row in rows.iter().filter(|row| row.ended_at.is_none()) {
            let Some(ops) = self.ops.get_mut(row.key.as_str()) else { panic!("nobody has put {}", row.key) };
            let known = ops.iter().filter_map(Op::revision).max().unwrap_or_default();
            if let Some(last) = ops.last_mut().filter(|last| matches!(last.came, Came::Unknown)) {
                let held = Came::Held(row.held.revision, row.held.expires_at);
                last.came = if row.held.revision > known { held } else { Came::Nothing };
            }
        }
    }

    /// Every name that anything was asked of.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.ops.keys().map(String::as_str)
    }

    /// Whether somebody has put that value there, whatever came of it.
    pub(super) fn has_put(&self, key: &str, value: &str) -> bool {
        let ops = self.ops.get(key).into_iter().flatten();
        ops.into_iter().any(|op| matches!(&op.what, What::Put { value: put, .. } if put == value))
    }

    /// Everything that is known to have been held.
    pub(super) fn stays(&self) -> Vec<Stay> {
        self.ops.keys().flat_map(|key| self.stays_of(key)).collect()
    }

    fn stays_of(&self, key: &str) -> Vec<Stay> {
        let ops = &self.ops[key];
        let (mut stays, mut put): (Vec<Stay>, _) = (Vec::new(), None);
        for (n, op) in ops.iter().enumerate() {
            if let (What::Put { .. }, Came::Unknown) = (&op.what, &op.came) {
                put = None; // or this one is there
            }
            let Came::Held(revision, expires_at) = op.came else { continue };
            if let What::Put { value, .. } = &op.what {
                put = Some((value.clone(), op.made_at()));
            }
            let Some((value, put_at)) = put.clone() else { continue };
            assert!(stays.last().is_none_or(|last| last.revision < revision), "revisions of {key} rise, but {revision} does not");
            let fate = fate(revision, expires_at, &ops[n + 1..]);
            stays.push(Stay { key: key.into(), revision, value, put_at, expires_at, fate });
        }
        match key.strip_prefix(DIRECTORY).and_then(|rest| rest.split_once('/')) {
            Some((directory, _)) => self.with_directory(&format!("{DIRECTORY}{directory}"), stays),
            None => stays,
        }
    }

    /// What was below a directory that was deleted is deleted with it.
    fn with_directory(&self, directory: &str, mut stays: Vec<Stay>) -> Vec<Stay> {
        let ends: Vec<_> = self.stays_of(directory).into_iter().filter(|stay| !matches!(stay.fate, Fate::Changed(_))).collect();
        let deletes = self.ops[directory].iter().filter(|op| matches!(op.what, What::Delete));
        for op in deletes {
            for stay in stays.iter_mut().filter(|stay| stay.fate == Fate::Expires && op.asked_at < stay.expires_at) {
                match op.came {
                    Came::Deleted(_, by) if by < stay.put_at => {}
                    Came::Deleted(_, by) if stay.put_at < op.asked_at && by < stay.expires_at => stay.fate = Fate::Changed(by),
                    Came::Deleted(..) | Came::Unknown => stay.fate = Fate::Unsure,
                    Came::Held(..) | Came::Nothing => {}
                }
            }
        }
        for stay in &mut stays {
            let Fate::Changed(by) = stay.fate else { continue };
            if ends.iter().any(|end| stay.put_at <= end.expires_at && end.expires_at <= by) {
                stay.fate = Fate::Unsure; // it may have expired with the directory first
            }
        }
        stays
    }
}

impl Op {
    fn revision(&self) -> Option<Revision> {
        match self.came {
            Came::Held(revision, _) | Came::Deleted(revision, _) => Some(revision),
            Came::Unknown | Came::Nothing => None,
        }
    }

    /// When it was decided.
    fn made_at(&self) -> Timestamp {
        match (&self.what, &self.came) {
            (What::Put { ttl, .. } | What::Renew { ttl }, Came::Held(_, expires_at)) => before(*expires_at, *ttl),
            _ => self.asked_at,
        }
    }
}

/// What becomes of a revision by what is asked after it.
fn fate(revision: Revision, expires_at: Timestamp, later: &[Op]) -> Fate {
    let Some(next) = later.iter().find(|op| !matches!(op.came, Came::Nothing)) else { return Fate::Expires };
    match next.came {
        Came::Unknown if next.asked_at < expires_at => Fate::Unsure,
        Came::Held(..) if next.made_at() < expires_at => Fate::Changed(next.made_at()),
        Came::Deleted(deleted, by) if deleted == revision => Fate::Changed(by),
        Came::Unknown | Came::Held(..) | Came::Deleted(..) | Came::Nothing => Fate::Expires,
    }
}

fn asked(words: &[&str]) -> What {
    match words {
        ["put", ttl, value] => What::Put { ttl: Duration::from_micros(number(ttl)), value: (*value).into() },
        ["renew", ttl] => What::Renew { ttl: Duration::from_micros(number(ttl)) },
        ["delete"] => What::Delete,
        _ => panic!("{words:?} cannot be asked"),
    }
}

fn before(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp::from_micros(at.as_micros() - i64::try_from(time.as_micros()).expect("a short time"))
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

fn time(word: &str) -> Timestamp {
    Timestamp::from_micros(word.parse().expect("a time"))
}
