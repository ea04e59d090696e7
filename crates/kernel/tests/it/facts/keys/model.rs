//! What a key is to do, in the fewest words: who holds it until when, what is owed, and what is a letter.

use super::*;

/// What is expected of a key, beside what the machine says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Model {
    held: Option<Known>,
    /// The attempt to come, by the revision whose end is to be told.
    pub(super) owed: BTreeMap<Revision, Attempt>,
    /// The revision whose end nobody was told, by the sequence of the letter.
    pub(super) letters: BTreeMap<Seq, Revision>,
    /// Every revision of which something was ever owed.
    pub(super) ever_owed: BTreeSet<Revision>,
}

#[derive(Clone, Debug, PartialEq)]
struct Known {
    revision: Revision,
    owner: Option<String>,
    put_at: Timestamp,
    expires_at: Timestamp,
    is_told: bool,
    directory: bool,
}

impl Known {
    fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

impl Model {
    fn live(&self, now: Timestamp) -> Option<&Known> {
        self.held.as_ref().filter(|held| !held.is_over(now))
    }

    /// Why a change is refused, if it is.
    fn refusal(&self, owner: Option<&String>, expected: Option<Revision>, now: Timestamp) -> Option<&'static str> {
        let held = self.live(now)?;
        match () {
            () if held.owner.is_some() && held.owner.as_ref() != owner => Some(code::KEY_OWNED),
            () if expected.is_some_and(|expected| expected != held.revision) => Some(code::KEY_CHANGED),
            () => None,
        }
    }

    fn ends(&mut self, handled: bool, deleted: bool) {
        let Some(held) = self.held.take() else { return };
        let told = held.is_told || handled;
        if held.directory || (told && !deleted) {
            self.owed.insert(held.revision, 1);
            self.ever_owed.insert(held.revision);
        }
    }

    /// What the command comes to: a refusal's code, an answer, or what begins; the model is as it is after that. `seq` is the last of the journal.
    pub(super) fn expect(&mut self, command: &Command, now: Timestamp, seq: Seq) -> &'static str {
        match command {
            Command::PutKey(put) => self.put(put, now),
            Command::RenewKey(renew) => match self.live(now) {
                None => code::KEY_NOT_FOUND,
                Some(_) => self.refusal(renew.owner.as_ref(), renew.if_revision, now).unwrap_or_else(|| {
                    let held = self.held.as_mut().expect("it is there");
                    (held.revision, held.expires_at) = (renew.revision, now.saturating_add(renew.ttl));
                    "Renewed"
                }),
            },
            Command::DeleteKey(delete) => match self.live(now) {
                None => code::KEY_NOT_FOUND,
                Some(_) => self.refusal(delete.owner.as_ref(), delete.if_revision, now).unwrap_or_else(|| {
                    self.ends(false, true);
                    "Deleted"
                }),
            },
            Command::ExpireKey(expire) => match &self.held {
                None => "NotFound",
                Some(held) if held.revision != expire.revision => "Mismatch",
                Some(held) if !held.is_over(now) => "Arm",
                Some(_) => {
                    self.ends(expire.handled, false);
                    "Expired"
                }
            },
            Command::EndKey(end) => match &self.held {
                None => "NotFound",
                Some(held) if held.put_at > end.ended_at => "Mismatch",
                Some(held) => {
                    let deleted = end.deleted && !held.is_over(end.ended_at);
                    self.ends(end.handled, deleted);
                    if deleted { "Deleted" } else { "Expired" }
                }
            },
            Command::ReportCallback(report) => self.report(report, seq),
            Command::RedriveLetter(redrive) => match self.letters.remove(&redrive.letter) {
                None => code::LETTER_NOT_FOUND,
                Some(revision) => {
                    self.owed.insert(revision, 1);
                    "Redriven"
                }
            },
            Command::DropLetter(drop) => self.letters.remove(&drop.letter).map_or(code::LETTER_NOT_FOUND, |_| "Dropped"),
            other => panic!("{other:?} is not asked of keys"),
        }
    }

    fn put(&mut self, put: &PutKey, now: Timestamp) -> &'static str {
        if let Some(refusal) = self.refusal(put.owner.as_ref(), put.if_revision, now) {
            return refusal;
        }
        if self.live(now).is_none() {
            if put.if_revision.is_some_and(|expected| expected != 0) {
                return code::KEY_CHANGED;
            }
            self.ends(put.handled, false);
        }
        self.held = Some(Known {
            revision: put.revision,
            owner: put.owner.clone(),
            put_at: now,
            expires_at: now.saturating_add(put.ttl),
            is_told: put.on_expire.is_some() || put.handled,
            directory: put.directory,
        });
        "Put"
    }

    fn report(&mut self, report: &ReportCallback, seq: Seq) -> &'static str {
        match self.owed.get(&report.revision) {
            None => return "NotFound",
            Some(attempt) if *attempt != report.attempt => return "Mismatch",
            Some(_) => {}
        }
        match &report.outcome {
            Err(failure) if failure.class == Class::Transient && report.attempt < report.policy.attempts_max() => {
                self.owed.insert(report.revision, report.attempt + 1);
            }
            outcome => {
                self.owed.remove(&report.revision);
                self.letters.extend(outcome.as_ref().err().map(|_| (seq + 1, report.revision)));
            }
        }
        "Reported"
    }
}
