//! Dead letters: looked at, tried again, thrown away.

use super::Engine;
use crate::error::Error;
use crate::shard::Request;
use steadfast_kernel::{
    Command, DropLetter, EntityId, Entry, Event, Letter, LetterAbout, LetterHome, LetterId, Origin, RedriveLetter, Refusal, RetryFrom,
    RetryRun,
};
use steadfast_store::{LetterCursor, LetterRow};

impl Engine {
    /// Dead letters, newest first, from the one after `after`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn letters(&self, after: Option<&LetterCursor>, limit: usize) -> Result<Vec<LetterRow>, Error> {
        self.store()?.letters(after, limit).await.map_err(Error::from_store)
    }

    /// A dead letter, with its bytes.
    ///
    /// # Errors
    /// If there is no such letter, or it cannot be read.
    pub async fn letter(&self, letter: &LetterId) -> Result<(LetterRow, Letter), Error> {
        let found = self.store()?.letter(letter).await.map_err(Error::from_store)?;
        let row = found.ok_or_else(|| Refusal::LetterNotFound { letter: letter.clone() })?;
        Ok((row, self.letter_added(letter).await?.0))
    }

    /// A letter as it arrived, whatever became of it, and the number of the message that it came with.
    async fn letter_added(&self, letter: &LetterId) -> Result<(Letter, u64), Error> {
        match self.entries(&letter.home.entity(), letter.seq - 1, 1).await?.pop() {
            Some(Entry { event: Event::LetterAdded(letter), heard, .. }) => Ok((*letter, heard.map_or(0, |heard| heard.seq))),
            _ => Err(Refusal::LetterNotFound { letter: letter.clone() }.into()),
        }
    }

    /// Has a dead letter tried again: its run is retried from its step, or the end of its key is told from its first attempt on.
    ///
    /// # Errors
    /// If there is no such letter, its run cannot be retried now, or has continued as new since; the letter stays then.
    pub async fn redrive(&self, letter: &LetterId, origin: Origin) -> Result<(), Error> {
        if let LetterHome::Key(key) = &letter.home {
            Self::check(&origin)?;
            let command = Command::RedriveLetter(RedriveLetter { letter: letter.seq, origin });
            return self.tell_home(EntityId::Key(key.clone()), command).await;
        }
        let is_there = self.store()?.letter(letter).await.map_err(Error::from_store)?.is_some();
        let (Letter { about, .. }, number) = self.letter_added(letter).await?;
        let LetterAbout::Step { run, step } = about else { return Err(Refusal::LetterNotFound { letter: letter.clone() }.into()) };
        let from = RetryFrom::Letter { letter: letter.clone(), step, number: Some(number).filter(|_| is_there) };
        self.retry(&run, RetryRun { origin, from, ..RetryRun::default() }).await
    }

    /// Throws a dead letter away.
    ///
    /// # Errors
    /// If there is no such letter.
    pub async fn drop_letter(&self, letter: &LetterId, origin: Origin) -> Result<(), Error> {
        Self::check(&origin)?;
        self.tell_home(letter.home.entity(), Command::DropLetter(DropLetter { letter: letter.seq, origin }))
            .await
    }

    async fn tell_home(&self, entity: EntityId, command: Command) -> Result<(), Error> {
        self.request(|reply| Request::Tell { entity, command: Box::new(command), reply }).await.map(drop)
    }
}
