//! Dead letters: what nobody will try again by itself.

use crate::operate::{Act, Verb};
use crate::{Engine, Error};
use steadfast_kernel::{LetterId, Payload, Timestamp};
use steadfast_runtime as runtime;
use steadfast_store::{LetterCursor, LetterRow};

/// One page of dead letters.
#[derive(Clone, Debug, PartialEq)]
pub struct LetterPage {
    /// The letters, newest first.
    pub items: Vec<LetterRow>,
    /// Where the list goes on, if it does.
    pub next: Option<String>,
}

/// A dead letter with its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// What lists show of it.
    pub row: LetterRow,
    /// What the run was given, or the value that the key had.
    pub payload: Payload,
}

impl Engine {
    /// Dead letters, newest first: at most `limit`, from the one after the page that ended with that [`next`](LetterPage::next).
    ///
    /// # Errors
    /// If the cursor is not one that a list has given, or they cannot be read now.
    pub async fn letters(&self, after: Option<&str>, limit: usize) -> Result<LetterPage, Error> {
        let wrong = |cursor: &str| runtime::Error::InvalidSetting(format!("{cursor:?} is not a cursor that a list has given"));
        let after = after.map(|cursor| parse(cursor).ok_or_else(|| wrong(cursor))).transpose()?;
        let limit = limit.clamp(1, 1000);
        let mut items = self.inner.letters(after.as_ref(), limit + 1).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|last| format!("{}:{}", last.added_at.as_micros(), last.letter));
        Ok(LetterPage { items, next })
    }

    /// A dead letter, with its bytes.
    ///
    /// # Errors
    /// If there is no such letter, or it cannot be read now.
    pub async fn letter(&self, id: &str) -> Result<DeadLetter, Error> {
        let (row, letter) = self.inner.letter(&letter_id(id)?).await?;
        Ok(DeadLetter { row, payload: letter.payload })
    }

    /// Has a dead letter tried again: its run is retried from its step, or its expiry is told again, and the letter is gone. Await it: when it returns, that is on record. It is
    /// refused if there is no such letter, or its run cannot be retried now; the letter stays then.
    pub fn redrive(&self, letter: &str) -> Act {
        Act::new(&self.inner, letter_id(letter).map(Verb::Redrive))
    }

    /// Throws a dead letter away; its run is not touched. Await it: when it returns, that is on record. It is refused if there is no such letter.
    pub fn drop_letter(&self, letter: &str) -> Act {
        Act::new(&self.inner, letter_id(letter).map(Verb::Drop))
    }
}

fn letter_id(id: &str) -> Result<LetterId, runtime::Error> {
    let wrong = || {
        runtime::Error::InvalidSetting(format!("{id:?} is not the id of a dead letter: those look like checkout.17 or key:session/42.3"))
    };
    LetterId::parse(id).ok_or_else(wrong)
}

fn parse(cursor: &str) -> Option<LetterCursor> {
    let (added_at, letter) = cursor.split_once(':')?;
    Some(LetterCursor { added_at: Timestamp::from_micros(added_at.parse().ok()?), letter: LetterId::parse(letter)? })
}
