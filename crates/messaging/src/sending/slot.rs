//! Where the answer to a request arrives: registered once, whatever happens to connections and attempts.

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use std::future::poll_fn;
use std::task::Poll;
use steadfast_kernel::{Class, Failure};

/// Where the answer to one request arrives.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    state: Mutex<State>,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    /// The attempt that is under way.
    attempt: u32,
    /// It was sent; else the one before it may still be answered.
    sent: bool,
    /// The connection that it was sent on.
    connection: Option<u64>,
    /// Those that earlier attempts were sent on.
    earlier: Vec<u64>,
    news: Option<News>,
}

/// What became of an attempt.
#[derive(Debug)]
pub(crate) enum News {
    Answer(Result<Bytes, Failure>),
    /// Its connection is cut.
    Lost,
}

impl News {
    /// Another attempt would change nothing.
    fn is_final(&self) -> bool {
        match self {
            News::Answer(outcome) => is_final(outcome),
            News::Lost => false,
        }
    }
}

fn is_final(outcome: &Result<Bytes, Failure>) -> bool {
    outcome.as_ref().map_or_else(|failure| failure.class != Class::Transient, |_| true)
}

impl Slot {
    /// An attempt begins. What the one before it failed with does not count any more.
    pub(crate) fn begin(&self, attempt: u32) {
        let mut state = self.state.lock();
        (state.attempt, state.sent) = (attempt, false);
        if let Some(connection) = state.connection.take()
            && state.earlier.last() != Some(&connection)
        {
            state.earlier.push(connection);
        }
        if !matches!(state.news, Some(News::Answer(Ok(_)))) {
            state.news = None;
        }
    }

    /// The attempt is about to be sent on that connection.
    pub(crate) fn sent_on(&self, connection: u64) {
        self.state.lock().connection = Some(connection);
    }

    /// The attempt was sent: an earlier one can only succeed from now on.
    pub(crate) fn sent(&self) {
        self.state.lock().sent = true;
    }

    /// An answer has come on that connection, which counts only if it was asked there. A success counts whichever attempt it is of; a failure only if it
    /// is of the one under way, or for good while that is not sent.
    pub(crate) fn answer(&self, connection: u64, attempt: u32, outcome: Result<Bytes, Failure>) {
        let mut state = self.state.lock();
        let was_asked = state.connection == Some(connection) || state.earlier.contains(&connection);
        let is_known = matches!(state.news, Some(News::Answer(Ok(_))));
        let counts = outcome.is_ok() || state.attempt == attempt || !state.sent && is_final(&outcome);
        if was_asked && !is_known && counts {
            state.news = Some(News::Answer(outcome));
            drop(state);
            self.waker.wake();
        }
    }

    /// That connection is cut.
    pub(crate) fn lost(&self, connection: u64) {
        let mut state = self.state.lock();
        if state.connection == Some(connection) && state.news.is_none() {
            state.news = Some(News::Lost);
            drop(state);
            self.waker.wake();
        }
    }

    /// Waits for news.
    pub(crate) async fn news(&self) -> News {
        self.news_if(|_| true).await
    }

    /// Waits for an answer that no attempt would change, whichever it is of. Other news is left, and counts no more when the next attempt begins.
    pub(crate) async fn outcome(&self) -> Result<Bytes, Failure> {
        loop {
            if let News::Answer(outcome) = self.news_if(News::is_final).await {
                return outcome;
            }
        }
    }

    /// The success that has come, if there is one.
    pub(crate) fn success(&self) -> Option<Bytes> {
        match self.state.lock().news.take()? {
            News::Answer(outcome) => outcome.ok(),
            News::Lost => None,
        }
    }

    async fn news_if(&self, which: fn(&News) -> bool) -> News {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            match self.state.lock().news.take_if(|news| which(news)) {
                Some(news) => Poll::Ready(news),
                None => Poll::Pending,
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn ok(text: &'static str) -> Result<Bytes, Failure> {
        Ok(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_late_failure_of_an_older_attempt_does_not_count_and_a_late_success_does() {
        let slot = Slot::default();
        slot.begin(1);
        slot.sent_on(7);
        slot.begin(2);
        slot.answer(7, 1, Err(Failure::transient("busy")));
        assert!(slot.news().now_or_never().is_none());
        slot.answer(7, 1, ok("done"));
        slot.answer(7, 2, Err(Failure::transient("too late to say so")));
        slot.begin(3);
        assert!(matches!(slot.news().now_or_never(), Some(News::Answer(Ok(_)))), "it was there before the next attempt began");
    }

    #[test]
    fn a_failure_for_good_of_an_older_attempt_counts_until_the_next_is_sent() {
        let never = || Err(Failure::permanent("never"));
        let slot = Slot::default();
        slot.begin(1);
        slot.sent_on(7);
        slot.sent();
        slot.begin(2);
        slot.sent_on(7);
        slot.answer(7, 1, Err(Failure::transient("busy")));
        assert!(slot.outcome().now_or_never().is_none());
        slot.answer(7, 1, never());
        assert!(matches!(slot.outcome().now_or_never(), Some(Err(_))));
        slot.sent();
        slot.answer(7, 1, never());
        assert!(slot.news().now_or_never().is_none());
    }

    #[test]
    fn who_waits_for_what_no_attempt_would_change_leaves_other_news() {
        let slot = Slot::default();
        slot.begin(1);
        slot.sent_on(7);
        slot.answer(7, 1, Err(Failure::transient("busy")));
        assert!(slot.outcome().now_or_never().is_none());
        assert!(matches!(slot.news().now_or_never(), Some(News::Answer(Err(_)))));
        slot.answer(7, 1, ok("done"));
        assert_eq!(slot.success().unwrap(), "done");
        assert_eq!(slot.success(), None, "it was taken");
    }

    #[test]
    fn an_answer_counts_only_on_a_connection_that_was_asked() {
        let slot = Slot::default();
        slot.begin(1);
        slot.answer(7, 1, ok("nobody was asked yet"));
        slot.sent_on(7);
        slot.answer(8, 1, ok("somebody else"));
        assert!(slot.news().now_or_never().is_none());
        slot.begin(2);
        slot.sent_on(8);
        slot.answer(7, 1, ok("the one that was asked first"));
        assert!(matches!(slot.news().now_or_never(), Some(News::Answer(Ok(_)))));
    }

    #[test]
    fn only_the_connection_it_was_sent_on_can_be_lost() {
        let slot = Slot::default();
        slot.begin(1);
        slot.sent_on(7);
        slot.lost(6);
        assert!(slot.news().now_or_never().is_none());
        slot.lost(7);
        assert!(matches!(slot.news().now_or_never(), Some(News::Lost)));
        slot.answer(7, 1, ok("in time"));
        slot.lost(7);
        assert!(matches!(slot.news().now_or_never(), Some(News::Answer(Ok(_)))), "an answer that has come is not lost");
    }
}
