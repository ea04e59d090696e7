//! Many dead letters tried again, oldest first, at a pace.
//!
//! Tested by `crates/sdk/tests/it/redrive_all.rs`.

use super::{Engine, PAGE};
use crate::error::Error;
use hashbrown::HashSet;
use std::time::Duration;
use steadfast_kernel::{LetterId, Origin, Refusal, Timestamp, random};
use steadfast_store::{LetterCursor, LetterFilter};

/// How many reasons are told: they are read by people.
const REASONS_MAX: usize = 10;

/// How many letters a second may be asked for.
const PER_SECOND_MAX: u32 = 100_000;

/// No other one begins in the last part of the time, and not in the last second of a long one: a message has at least that.
const LAST_PART: u32 = 4;
const LAST_ONE: Duration = Duration::from_secs(1);

/// Which dead letters are to be tried again, and how.
#[derive(Clone, Debug)]
pub struct RedriveLetters {
    /// Those that it lets through, as far as they are there when this begins: what comes meanwhile, or fails again, is not tried.
    pub filter: LetterFilter,
    /// At most so many in a second; as fast as it goes if there is nothing.
    pub per_second: Option<u32>,
    /// At most so many in all.
    pub limit: usize,
    /// Is over by then, and begins no other one shortly before. A message that is on its way then goes on by itself, and is among those that were not tried again.
    pub within: Option<Duration>,
    /// Goes on after that letter: where another one stopped.
    pub after: Option<LetterCursor>,
    /// Who wants it, and why. The same command again is answered with what came of it, or, after a restart, tries what is left; no letter is tried twice by it.
    pub origin: Origin,
}

impl Default for RedriveLetters {
    fn default() -> Self {
        RedriveLetters {
            filter: LetterFilter::default(),
            per_second: None,
            limit: usize::MAX,
            within: None,
            after: None,
            origin: Origin::default(),
        }
    }
}

/// What came of trying many dead letters again.
#[derive(Clone, Debug)]
pub struct RedrivenLetters {
    /// So many were tried again.
    pub redriven: u64,
    /// So many were not, or failed again: they are still there.
    pub refused: u64,
    /// Why, of the first few.
    pub reasons: Vec<(LetterId, Error)>,
    /// There may be others that were not tried.
    pub more: bool,
    /// The last one that was tried, or not found any more: where another one goes on.
    pub last: Option<LetterCursor>,
    /// Letters that came at that time or later were left alone. Whoever goes on says so in the filter, too.
    pub until: Timestamp,
}

impl Engine {
    /// Has all dead letters tried again that the filter lets through, oldest first and one after the other, each of them once.
    ///
    /// # Errors
    /// If the pace cannot be, or the store or the engine cannot be used before anything was tried. Later it is a reason, and there is more to be tried.
    ///
    /// # Cancellation
    /// Dropping the future stops it after the letter that it is at.
    pub async fn redrive_letters(&self, wanted: RedriveLetters) -> Result<RedrivenLetters, Error> {
        Self::check(&wanted.origin)?;
        let between = wanted.per_second.map(between).transpose()?.unwrap_or_default();
        let after = |after: &LetterCursor| format!("{} {}", after.added_at.as_micros(), after.letter);
        let place = wanted.after.as_ref().map(after).unwrap_or_default();
        let command = wanted.origin.command.as_ref().map(|command| format!("{command} {place}")); // each part of a long one has its own answer
        if let Some(known) = command.as_deref().and_then(|command| self.parts.post.answered(command)) {
            return Ok(known);
        }
        let answer = self.redrive_all(&wanted, between).await?;
        if let Some(command) = command {
            self.parts.post.remember(command, answer.clone());
        }
        Ok(answer)
    }

    async fn redrive_all(&self, wanted: &RedriveLetters, between: Duration) -> Result<RedrivenLetters, Error> {
        let clock = &self.parts.clock;
        let began = clock.now();
        let after_now = began.saturating_add(Duration::from_micros(1));
        let until = wanted.filter.until.map_or(after_now, |until| until.min(after_now));
        let filter = LetterFilter { until: Some(until), ..wanted.filter.clone() };
        let end = wanted.within.map(|within| began.saturating_add(within));
        let begins_until = wanted.within.map(|within| began.saturating_add(within - LAST_ONE.min(within / LAST_PART)));
        let (mut next_at, mut tried, mut seen) = (began, 0, HashSet::new());
        let mut answer = RedrivenLetters { redriven: 0, refused: 0, reasons: Vec::new(), more: false, last: wanted.after.clone(), until };
        loop {
            let room = (wanted.limit - tried).saturating_add(1).min(PAGE); // one more, to know whether there is more
            let page = match self.store()?.oldest_letters(&filter, answer.last.as_ref(), room).await.map_err(Error::from_store) {
                Ok(page) => page,
                Err(error) if tried == 0 => return Err(error),
                Err(_) => return Ok(RedrivenLetters { more: true, ..answer }),
            };
            let whole = page.len() < room;
            for row in page {
                if row.added_at == began && seen.contains(&row.about.to_string()) {
                    answer.last = Some(LetterCursor::from(&row)); // it has failed again within that moment
                    continue;
                }
                let over = begins_until.is_some_and(|until| next_at.max(clock.now()) > until);
                if tried >= wanted.limit || over {
                    return Ok(RedrivenLetters { more: true, ..answer });
                }
                let wait = next_at.saturating_since(clock.now());
                if !wait.is_zero() {
                    clock.sleep(wait).await;
                }
                next_at = next_at.max(clock.now()).saturating_add(between);
                tried += 1;
                seen.insert(row.about.to_string());
                match self.redrive_one(&row.letter, &wanted.origin, end).await {
                    Ok(()) => answer.redriven += 1,
                    Err(Error::Refused(Refusal::LetterNotFound { .. })) => {} // somebody else has seen to it
                    Err(error) => {
                        let stops = stops(&error);
                        if stops && tried == 1 {
                            return Err(error);
                        }
                        if answer.reasons.len() < REASONS_MAX {
                            answer.reasons.push((row.letter.clone(), error));
                        }
                        if stops {
                            return Ok(RedrivenLetters { more: true, ..answer });
                        }
                        answer.refused += 1;
                    }
                }
                answer.last = Some(LetterCursor::from(&row));
            }
            if whole {
                return Ok(answer);
            }
        }
    }

    /// Tries until the engine takes it: there may be more to do than it takes at once.
    async fn redrive_one(&self, letter: &LetterId, origin: &Origin, end: Option<Timestamp>) -> Result<(), Error> {
        let command = origin
            .command
            .as_ref()
            .map(|command| format!("each-{}", random::digest(&format!("{letter} {command}"))));
        loop {
            let within = end.map(|end| end.saturating_since(self.parts.clock.now()));
            match self.try_again(letter, Origin { command: command.clone(), ..origin.clone() }, within).await {
                Err(Error::Busy { retry_after, .. }) if end.is_none_or(|end| self.parts.clock.now().saturating_add(retry_after) <= end) => {
                    self.parts.clock.sleep(retry_after).await;
                }
                answer => return answer,
            }
        }
    }
}

/// Nothing else would come of the next letter.
fn stops(error: &Error) -> bool {
    matches!(error, Error::Stopped | Error::Unavailable { .. } | Error::Store(_) | Error::Busy { .. })
}

fn between(per_second: u32) -> Result<Duration, Error> {
    match per_second {
        1..=PER_SECOND_MAX => Ok(Duration::from_secs(1) / per_second),
        other => Err(Error::InvalidSetting(format!("{other} letters a second cannot be; use 1 to {PER_SECOND_MAX}, or leave it out"))),
    }
}
