//! Dead letters: what nobody will try again by itself.

use crate::operate::{Act, Verb};
use crate::{Engine, EngineBuilder, Error};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{LetterId, Payload, Timestamp};
use steadfast_runtime::{self as runtime, MessageLetter, Redeliver};
use steadfast_store::{LetterCursor, LetterFilter, LetterRow};

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
    /// What the run was given, the value that the key had, or the exact bytes of the message.
    pub payload: Payload,
}

/// What came of trying many dead letters again.
#[derive(Clone, Debug)]
pub struct Redriven {
    /// So many were tried again, and are gone.
    pub redriven: u64,
    /// So many were not, or failed again: they are still there.
    pub refused: u64,
    /// Why, of the first few.
    pub reasons: Vec<(LetterId, runtime::Error)>,
    /// There may be others that were not tried, because of the [`limit`](RedriveAll::limit) or the time.
    pub more: bool,
    /// Where another one goes on, by [`after`](RedriveAll::after).
    pub next: Option<String>,
    /// What came at that time or later was left alone: whoever goes on says so in the filter, too, or may meet what has failed again.
    pub until: Timestamp,
}

impl EngineBuilder {
    /// Sets who can send and handle messages again; without it, no dead letter of a message can be redriven.
    pub fn redeliver(mut self, redeliver: impl Redeliver) -> Self {
        self.inner.redeliver = Some(Arc::new(redeliver));
        self
    }
}

impl Engine {
    /// Dead letters, newest first: at most `limit`, from the one after the page that ended with that [`next`](LetterPage::next).
    ///
    /// # Errors
    /// If the cursor is not one that a list has given, or they cannot be read now.
    pub async fn letters(&self, after: Option<&str>, limit: usize) -> Result<LetterPage, Error> {
        self.letters_where(&LetterFilter::default(), after, limit).await
    }

    /// As [`letters`](Self::letters), of those that the filter lets through.
    ///
    /// # Errors
    /// As [`letters`](Self::letters).
    pub async fn letters_where(&self, filter: &LetterFilter, after: Option<&str>, limit: usize) -> Result<LetterPage, Error> {
        let after = after.map(cursor).transpose()?;
        let limit = limit.clamp(1, 1000);
        let mut items = self.inner.letters(filter, after.as_ref(), limit + 1).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|last| shown(&LetterCursor::from(last)));
        Ok(LetterPage { items, next })
    }

    /// How many dead letters the filter lets through.
    ///
    /// # Errors
    /// If they cannot be counted now.
    pub async fn letters_count(&self, filter: &LetterFilter) -> Result<u64, Error> {
        Ok(self.inner.letters_count(filter).await?)
    }

    /// Has all dead letters tried again that the filter lets through, oldest first, each of them once. Await it:
    ///
    /// ```no_run
    /// # async fn example(engine: &steadfast::Engine) -> Result<(), steadfast::Error> {
    /// use steadfast::{Code, LetterFilter, LetterKind};
    ///
    /// let filter = LetterFilter { kind: Some(LetterKind::Message), code: Some(Code::Unavailable), ..LetterFilter::default() };
    /// let done = engine.redrive_all(filter).per_second(10).limit(1000).why("the peer is back").await?;
    /// println!("{} of them are on their way, {} are still there", done.redriven, done.refused);
    /// # Ok(())
    /// # }
    /// ```
    pub fn redrive_all(&self, filter: LetterFilter) -> RedriveAll {
        let wanted = runtime::RedriveLetters { filter, ..runtime::RedriveLetters::default() };
        RedriveAll { engine: self.inner.clone(), wanted: Ok(wanted) }
    }

    /// Keeps a message that nobody will send or handle again by itself, until a person redrives or drops it; the id of the letter. The same message again is the
    /// same letter.
    ///
    /// # Errors
    /// If its route has as many letters as it may have, it is larger than allowed, or a name in it is not allowed.
    pub async fn post_message(&self, message: MessageLetter) -> Result<String, Error> {
        Ok(self.inner.post_message(message).await?.to_string())
    }

    /// A dead letter, with its bytes.
    ///
    /// # Errors
    /// If there is no such letter, or it cannot be read now.
    pub async fn letter(&self, id: &str) -> Result<DeadLetter, Error> {
        let (row, letter) = self.inner.letter(&letter_id(id)?).await?;
        Ok(DeadLetter { row, payload: letter.payload })
    }

    /// Has a dead letter tried again: its run is retried from its step, its expiry is told again, or its message is sent or handled again, and the letter is gone. Await it:
    /// when it returns, that is on record. It is refused if there is no such letter, its run cannot be retried now, or its message failed again; the letter stays then.
    pub fn redrive(&self, letter: &str) -> Act {
        Act::new(&self.inner, letter_id(letter).map(Verb::Redrive))
    }

    /// Throws a dead letter away; its run is not touched. Await it: when it returns, that is on record. It is refused if there is no such letter.
    pub fn drop_letter(&self, letter: &str) -> Act {
        Act::new(&self.inner, letter_id(letter).map(Verb::Drop))
    }
}

/// Many dead letters to be tried again, that is being put together. Await it: what comes of it is told then. Dropped before that, it stops after the letter that it
/// is at.
#[must_use = "nothing is tried again until this is awaited"]
pub struct RedriveAll {
    engine: runtime::Engine,
    wanted: Result<runtime::RedriveLetters, runtime::Error>,
}

impl RedriveAll {
    fn with(mut self, change: impl FnOnce(&mut runtime::RedriveLetters)) -> Self {
        if let Ok(wanted) = &mut self.wanted {
            change(wanted);
        }
        self
    }

    /// At most so many in a second; as fast as it goes otherwise.
    pub fn per_second(self, letters: u32) -> Self {
        self.with(|wanted| wanted.per_second = Some(letters))
    }

    /// At most so many in all.
    pub fn limit(self, letters: usize) -> Self {
        self.with(|wanted| wanted.limit = letters)
    }

    /// Is over by then, and begins no other one shortly before. A message that is on its way then goes on by itself, and counts as refused.
    pub fn within(self, time: Duration) -> Self {
        self.with(|wanted| wanted.within = Some(time))
    }

    /// Goes on where another one stopped: after its [`next`](Redriven::next).
    pub fn after(mut self, next: &str) -> Self {
        match cursor(next) {
            Ok(after) => self.with(|wanted| wanted.after = Some(after)),
            Err(wrong) => {
                self.wanted = Err(wrong);
                self
            }
        }
    }

    /// Who wants it; kept on record.
    pub fn by(self, who: impl Into<String>) -> Self {
        self.with(|wanted| wanted.origin.by = Some(who.into()))
    }

    /// Why; kept on record.
    pub fn why(self, why: impl Into<String>) -> Self {
        self.with(|wanted| wanted.origin.why = Some(why.into()))
    }

    /// What tells this command from others: the same again is answered with what came of it.
    pub fn id(self, id: impl Into<String>) -> Self {
        self.with(|wanted| wanted.origin.command = Some(id.into()))
    }
}

impl IntoFuture for RedriveAll {
    type Output = Result<Redriven, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            let runtime::RedrivenLetters { redriven, refused, reasons, more, last, until } =
                self.engine.redrive_letters(self.wanted?).await?;
            Ok(Redriven { redriven, refused, reasons, more, next: last.as_ref().map(shown), until })
        }
        .boxed()
    }
}

fn letter_id(id: &str) -> Result<LetterId, runtime::Error> {
    let wrong = || {
        runtime::Error::InvalidSetting(format!(
            "{id:?} is not the id of a dead letter: those look like checkout.17, key:session/42.3 or route:mail.5"
        ))
    };
    LetterId::parse(id).ok_or_else(wrong)
}

fn shown(cursor: &LetterCursor) -> String {
    format!("{}:{}", cursor.added_at.as_micros(), cursor.letter)
}

fn cursor(text: &str) -> Result<LetterCursor, runtime::Error> {
    parse(text).ok_or_else(|| runtime::Error::InvalidSetting(format!("{text:?} is not a cursor that a list has given")))
}

fn parse(cursor: &str) -> Option<LetterCursor> {
    let (added_at, letter) = cursor.split_once(':')?;
    Some(LetterCursor { added_at: Timestamp::from_micros(added_at.parse().ok()?), letter: LetterId::parse(letter)? })
}
