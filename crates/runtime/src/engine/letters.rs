//! Dead letters: looked at, tried again, thrown away; and messages that become some.
//!
//! Tested by `crates/sdk/tests/it/dead_letters.rs`.

use super::{Engine, WeakEngine};
use crate::error::Error;
use crate::redeliver::{Claim, MessageLetter};
use std::time::Duration;
use steadfast_kernel::{
    Answer, Code, Command, DropLetter, EntityId, Entry, Event, FailLetter, Failure, Letter, LetterAbout, LetterHome, LetterId, Origin,
    RedriveLetter, Refusal, RetryFrom, RetryRun,
};
use steadfast_store::{LetterCursor, LetterFilter, LetterRow};

impl Engine {
    /// The dead letters that the filter lets through, newest first, from the one after `after`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn letters(&self, filter: &LetterFilter, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error> {
        self.store()?.letters(filter, after, limit).await.map_err(Error::from_store)
    }

    /// How many dead letters the filter lets through.
    ///
    /// # Errors
    /// If they cannot be counted.
    pub async fn letters_count(&self, filter: &LetterFilter) -> Result<u64, Error> {
        self.store()?.letters_count(filter).await.map_err(Error::from_store)
    }

    /// A dead letter, with its bytes.
    ///
    /// # Errors
    /// If there is no such letter, or it cannot be read.
    pub async fn letter(&self, letter: &LetterId) -> Result<(LetterRow, Letter), Error> {
        let row = self.letter_row(letter).await?.ok_or_else(|| not_found(letter))?;
        let mut added = self.letter_added(letter).await?.0;
        if let LetterHome::Route(_) = letter.home {
            added.attempt = row.failure.attempts.max(added.attempt); // it may have failed again since
        }
        Ok((row, added))
    }

    async fn letter_row(&self, letter: &LetterId) -> Result<Option<LetterRow>, Error> {
        self.store()?.letter(letter).await.map_err(Error::from_store)
    }

    /// A letter as it arrived, whatever became of it, and the number of the message that it came with.
    async fn letter_added(&self, letter: &LetterId) -> Result<(Letter, u64), Error> {
        match self.entries(&letter.home.entity(), letter.seq - 1, 1).await?.pop() {
            Some(Entry { event: Event::LetterAdded(letter), heard, .. }) => Ok((*letter, heard.map_or(0, |heard| heard.seq))),
            _ => Err(not_found(letter)),
        }
    }

    /// Keeps a message that nobody will send or handle again by itself, until a person redrives or drops it. The same message again (direction, peer, request id
    /// and bytes) is the same letter, and its newer failure counts. It is durable when this returns.
    ///
    /// # Errors
    /// If its route has as many letters as it may have, it is larger than allowed, or a name in it is not allowed; it is not kept then.
    pub async fn post_message(&self, message: MessageLetter) -> Result<LetterId, Error> {
        self.check_size(&message.payload)?;
        let (route, letter) = message.into_letter()?;
        match self.tell_entity(EntityId::Route(route.clone()), Command::AddLetter(Box::new(letter))).await? {
            Answer::Kept { letter } => Ok(LetterId { home: LetterHome::Route(route), seq: letter }),
            other => Err(Error::JournalBroken { entity: EntityId::Route(route), why: format!("it answers {other:?}") }),
        }
    }

    /// Has a dead letter tried again: its run is retried from its step, the end of its key is told from its first attempt on, or its message is sent or handled
    /// again. A message takes as long as whoever delivers it needs.
    ///
    /// # Errors
    /// If there is no such letter, its run cannot be retried now, or has continued as new since, or its message failed again; the letter stays then.
    ///
    /// # Cancellation
    /// Dropping the future does not take the request back.
    pub async fn redrive(&self, letter: &LetterId, origin: Origin) -> Result<(), Error> {
        self.try_again(letter, origin, None).await
    }

    /// The same, for somebody who does not wait for a message for longer than that.
    ///
    /// # Errors
    /// As [`redrive`](Self::redrive). [`LetterBusy`](Error::LetterBusy) if the message is still on its way then: that goes on by itself, and the letter is gone when it has worked.
    pub async fn redrive_within(&self, letter: &LetterId, origin: Origin, time: Duration) -> Result<(), Error> {
        self.try_again(letter, origin, Some(time)).await
    }

    pub(super) async fn try_again(&self, letter: &LetterId, origin: Origin, within: Option<Duration>) -> Result<(), Error> {
        Self::check(&origin)?;
        match &letter.home {
            LetterHome::Key(_) => {
                let command = Command::RedriveLetter(RedriveLetter { letter: letter.seq, origin });
                self.tell_home(letter.home.entity(), command).await
            }
            LetterHome::Route(_) => self.deliver_again(letter, origin, within).await,
            LetterHome::Workflow(_) => self.retry_step(letter, origin).await,
        }
    }

    async fn retry_step(&self, letter: &LetterId, origin: Origin) -> Result<(), Error> {
        let is_there = self.letter_row(letter).await?.is_some();
        let (Letter { about, .. }, number) = self.letter_added(letter).await?;
        let LetterAbout::Step { run, step } = about else { return Err(not_found(letter)) };
        let from = RetryFrom::Letter { letter: letter.clone(), step, number: Some(number).filter(|_| is_there) };
        self.retry(&run, RetryRun { origin, from, ..RetryRun::default() }).await
    }

    /// Only one at a time: two who want the same letter redriven of this instance have its message delivered once.
    async fn deliver_again(&self, letter: &LetterId, origin: Origin, within: Option<Duration>) -> Result<(), Error> {
        let claim = self.claim(letter)?;
        if self.letter_row(letter).await?.is_none() {
            let command = Command::RedriveLetter(RedriveLetter { letter: letter.seq, origin });
            return self.tell_home(letter.home.entity(), command).await; // the same command again is answered
        }
        let no_redelivery = || Error::NoRedelivery { letter: letter.clone() };
        let redeliver = self.parts.post.redeliver.clone().ok_or_else(no_redelivery)?;
        let message = MessageLetter::of(self.letter(letter).await?.1).ok_or_else(|| not_found(letter))?;
        let (engine, of) = (WeakEngine::of(self), letter.clone());
        let delivery = async move {
            let delivered = redeliver.deliver(of.clone(), message).await;
            let engine = engine.upgrade().ok_or(Error::Stopped)?; // what takes long does not keep it running
            engine.delivered(claim, of, delivered, origin).await
        };
        let patience = async {
            match within {
                Some(time) => self.parts.clock.sleep(time).await,
                None => std::future::pending().await,
            }
        };
        let broken = |_| Failure::new(Code::Internal, "what delivers messages again has broken down");
        tokio::select! {
            biased;
            ended = tokio::spawn(delivery) => ended.map_err(broken).unwrap_or_else(|failure| Err(Error::NotDelivered { letter: letter.clone(), failure })),
            () = patience => Err(Error::LetterBusy { letter: letter.clone() }),
        }
    }

    /// Has it on record what came of a delivery. If the record cannot be made, the letter stays, and its message may be delivered once more under the same id.
    async fn delivered(self, _claim: Claim, letter: LetterId, delivered: Result<(), Failure>, origin: Origin) -> Result<(), Error> {
        let home = letter.home.entity();
        let Err(failure) = delivered else {
            return self.tell_home(home, Command::RedriveLetter(RedriveLetter { letter: letter.seq, origin })).await;
        };
        let command = Command::FailLetter(FailLetter { letter: letter.seq, failure: failure.clone() });
        if let Err(error) = self.tell_home(home, command).await {
            tracing::warn!(%letter, %error, "that a dead letter failed again could not be kept");
        }
        Err(Error::NotDelivered { letter, failure })
    }

    /// Throws a dead letter away.
    ///
    /// # Errors
    /// If there is no such letter, or its message is just being delivered.
    pub async fn drop_letter(&self, letter: &LetterId, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        // What is of a run or a key is decided by its machine; a message may be on its way just now.
        let _claim = matches!(letter.home, LetterHome::Route(_)).then(|| self.claim(letter)).transpose()?;
        self.tell_home(letter.home.entity(), Command::DropLetter(DropLetter { letter: letter.seq, origin }))
            .await
    }

    fn claim(&self, letter: &LetterId) -> Result<Claim, Error> {
        self.parts.post.claim(letter).ok_or_else(|| Error::LetterBusy { letter: letter.clone() })
    }

    async fn tell_home(&self, entity: EntityId, command: Command) -> Result<(), Error> {
        self.tell_entity(entity, command).await.map(drop)
    }
}

fn not_found(letter: &LetterId) -> Error {
    Refusal::LetterNotFound { letter: letter.clone() }.into()
}
