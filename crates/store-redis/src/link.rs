//! The connection: made when it is needed, by one caller for all, and not tried again too soon.

use crate::address::Address;
use crate::connect::{Connected, connect, load, loaded};
use crate::fault::{self, away};
use crate::settings::Settings;
use parking_lot::Mutex;
use rand::TryRng;
use rand::rngs::SysRng;
use redis::{Pipeline, Value};
use std::time::Duration;
use steadfast_store::CommonsError;
use tokio::time::Instant;

/// The shortest and the longest time between two tries to connect.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The one connection of an instance.
pub(crate) struct Link {
    settings: Settings,
    address: Address,
    state: Mutex<State>,
    /// Held by the caller who connects; the others wait for what it gets.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// How many connections were made: the number of the last one.
    made: u64,
    /// How many tries have failed since the last that did not.
    failures: u32,
    /// The next try is made no earlier, and until then this is the answer.
    resting: Option<(Instant, CommonsError)>,
}

#[derive(Clone)]
struct Open {
    number: u64,
    connected: Connected,
}

/// The answers to a pipeline, and who gave them.
pub(crate) struct Answers {
    pub(crate) values: Vec<Value>,
    pub(crate) place: String,
}

impl Link {
    pub(crate) fn new(settings: Settings, address: Address) -> Self {
        Link { settings, address, state: Mutex::default(), connecting: tokio::sync::Mutex::default() }
    }

    /// Sends all of it in one round trip. An answer may be an error.
    pub(crate) async fn ask(&self, pipeline: &Pipeline) -> Result<Answers, CommonsError> {
        let Open { number, connected: Connected { mut connection, place } } = self.open().await?;
        match connection.send_packed_commands(pipeline, 0, pipeline.len()).await {
            Ok(values) if values.len() == pipeline.len() => {
                if values
                    .iter()
                    .any(|value| matches!(value, Value::ServerError(error) if fault::ends_connection(error)))
                {
                    self.close(number);
                }
                Ok(Answers { values, place })
            }
            Ok(_) => {
                self.close(number);
                Err(away(format!("Redis at {place} gave another number of answers than there were questions")))
            }
            Err(error) => {
                self.close(number);
                Err(fault::of_connection(&error, &place))
            }
        }
    }

    /// Loads the scripts again.
    pub(crate) async fn reload(&self) -> Result<(), CommonsError> {
        let answers = self.ask(&load()).await?;
        loaded(&answers.values, &answers.place)
    }

    /// Gives up that connection, if it is still the one in use.
    fn close(&self, number: u64) {
        let mut state = self.state.lock();
        if state.open.as_ref().is_some_and(|open| open.number == number) {
            state.open = None;
        }
    }

    async fn open(&self) -> Result<Open, CommonsError> {
        if let Some(answer) = self.known() {
            return answer;
        }
        let _only_one = self.connecting.lock().await;
        if let Some(answer) = self.known() {
            return answer;
        }
        let unfinished = Unfinished { link: self };
        let tried = connect(&self.settings, &self.address).await;
        std::mem::forget(unfinished);
        match tried {
            Ok(connected) => Ok(self.keep(connected)),
            Err(error) => {
                tracing::debug!(%error, "no connection to Redis");
                self.rest(error.clone());
                Err(error)
            }
        }
    }

    /// The connection, or why none is tried now; nothing if one is to be made.
    fn known(&self) -> Option<Result<Open, CommonsError>> {
        let state = self.state.lock();
        match (&state.open, &state.resting) {
            (Some(open), _) => Some(Ok(open.clone())),
            (None, Some((until, error))) if Instant::now() < *until => Some(Err(error.clone())),
            _ => None,
        }
    }

    fn keep(&self, connected: Connected) -> Open {
        let mut state = self.state.lock();
        state.made += 1;
        state.failures = 0;
        state.resting = None;
        let open = Open { number: state.made, connected };
        state.open = Some(open.clone());
        open
    }

    /// The time counts from the end of the try.
    fn rest(&self, error: CommonsError) {
        let mut state = self.state.lock();
        state.failures = state.failures.saturating_add(1);
        let until = Instant::now() + backoff(state.failures, SysRng.try_next_u32().unwrap_or(u32::MAX));
        state.resting = Some((until, error));
    }
}

/// A try to connect whose caller may give up: it has failed then, so that tries that nobody waits for are not made too often either.
struct Unfinished<'a> {
    link: &'a Link,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.link
            .rest(away(format!("Redis at {} did not let us in before the caller gave up", self.link.address)));
    }
}

/// Twice as long after each failure, and a part of it left to chance so that instances do not come back together.
fn backoff(failures: u32, chance: u32) -> Duration {
    let (shortest, longest) = BACKOFF;
    let whole = shortest.saturating_mul(1 << failures.min(16)).min(longest);
    (whole / 2 + (whole / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))).max(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_100_ms_to_5_s_apart_and_differ() {
        for failures in 1..100 {
            for chance in [0, 1 << 31, u32::MAX] {
                let delay = backoff(failures, chance);
                assert!((BACKOFF.0..=BACKOFF.1).contains(&delay), "{failures} {chance} gave {delay:?}");
            }
        }
        assert_eq!(backoff(1, 0), Duration::from_millis(100));
        assert_eq!(backoff(1, u32::MAX), Duration::from_millis(200));
        assert_eq!(backoff(99, 0), Duration::from_millis(2500));
        assert_eq!(backoff(99, u32::MAX), Duration::from_secs(5));
    }
}
