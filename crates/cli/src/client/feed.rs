//! The change feed: server-sent events, picked up where they broke off.

use super::{Ask, Client};
use crate::error::Error;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Method;
use std::time::Duration;

/// How long a feed may be silent. The server sends a comment now and then; one that says nothing at all has gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// `{kind, id, event}`.
    pub(crate) data: String,
}

/// Follows one run, a plan with its tasks, or keys.
pub(crate) struct Feed {
    client: Client,
    query: Vec<(&'static str, String)>,
    /// Where to go on: the id of the last event.
    last: Option<String>,
    open: Option<Open>,
}

struct Open {
    bytes: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    lines: Lines,
}

impl Feed {
    /// Follows a run from now on.
    pub(crate) fn of_run(client: &Client, run: &str) -> Self {
        let query = vec![("kind", "run".into()), ("id", run.into())];
        Feed { client: client.clone(), query, last: None, open: None }
    }

    /// Follows a plan and its tasks from now on.
    pub(crate) fn of_plan(client: &Client, plan: &str) -> Self {
        Feed { client: client.clone(), query: vec![("plan", plan.into())], last: None, open: None }
    }

    /// Follows the keys whose names begin so, and their dead letters, from now on.
    pub(crate) fn of_keys(client: &Client, prefix: &str) -> Self {
        Feed { client: client.clone(), query: vec![("prefix", prefix.into())], last: None, open: None }
    }

    /// Connects, if it is not connected. What happens after this is not missed.
    ///
    /// # Errors
    /// If there is no feed to be had now.
    pub(crate) async fn connect(&mut self) -> Result<(), Error> {
        if self.open.is_some() {
            return Ok(());
        }
        let mut request = self.client.request(Method::GET, "/v1/events", &Ask { query: self.query.clone(), ..Ask::default() });
        if let Some(last) = &self.last {
            request = request.header("Last-Event-ID", last);
        }
        let request = request.header("Accept", "text/event-stream");
        let response = request.send().await.map_err(|error| self.client.unreachable(&error))?;
        if !response.status().is_success() {
            let status = response.status();
            let text = response.text().await.unwrap_or_default();
            return Err(super::Problem::read(status, &text).into_error());
        }
        let bytes = response.bytes_stream().map(|part| part.map(|part| part.to_vec())).boxed();
        self.open = Some(Open { bytes, lines: Lines::default() });
        Ok(())
    }

    /// The next change; nothing if the connection broke off, after which [`Feed::connect`] goes on where it was.
    ///
    /// # Cancellation
    /// Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Change> {
        loop {
            let open = self.open.as_mut()?;
            let change = open.lines.take();
            if let Some(id) = open.lines.id.take() {
                self.last = Some(id);
            }
            if change.is_some() {
                return change;
            }
            match tokio::time::timeout(SILENCE_MAX, open.bytes.next()).await {
                Ok(Some(Ok(bytes))) => open.lines.add(&bytes),
                _ => {
                    self.open = None;
                    return None;
                }
            }
        }
    }
}

/// What has arrived and was not taken yet.
#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
    /// The last id that was taken. The server says where it is before anything happens, so that who loses it at once misses nothing either.
    id: Option<String>,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) {
        self.text.extend(bytes.iter().filter(|byte| **byte != b'\r'));
    }

    /// The next whole event that has data.
    fn take(&mut self) -> Option<Change> {
        loop {
            let end = self.text.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.text.drain(..end + 2).collect();
            let mut data = Vec::new();
            for line in String::from_utf8_lossy(&block).lines() {
                let (field, value) = line.split_once(':').unwrap_or((line, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                match field {
                    "id" => self.id = Some(value.to_owned()),
                    "data" => data.push(value.to_owned()),
                    _ => {}
                }
            }
            if !data.is_empty() {
                return Some(Change { data: data.join("\n") });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_from_whatever_arrives() {
        let mut lines = Lines::default();
        let text = "id: 6\n\n: hello\n\nid: 7\r\nevent: STEP\ndata: {\"a\":\ndata: 1}\n\nretry: 5\n\ndata:x\n\nid: 8\n\ndata: y\n";
        lines.add(&text.as_bytes()[..10]);
        assert_eq!((lines.take(), lines.id.take()), (None, Some("6".into())), "where it begins, before anything has happened");
        for byte in text.bytes().skip(10) {
            lines.add(&[byte]);
        }
        assert_eq!((lines.take(), lines.id.take()), (Some(Change { data: "{\"a\":\n1}".into() }), Some("7".into())));
        assert_eq!((lines.take(), lines.id.take()), (Some(Change { data: "x".into() }), None));
        assert_eq!((lines.take(), lines.id.take()), (None, Some("8".into())), "the last one is not whole");
    }
}
