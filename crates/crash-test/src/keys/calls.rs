//! Who was told of what: lines in the log, written in one piece by those who are told of expiries.

use crate::log;
use std::io::Result;
use steadfast::{Clock, Expired, SystemClock, Timestamp};

/// One line: somebody is told of an expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which process.
    pub process: u32,
    /// When.
    pub at: Timestamp,
    /// The key.
    pub key: String,
    /// The revision that expired.
    pub revision: u64,
    /// The attempt.
    pub attempt: u32,
    /// When its time was over.
    pub expired_at: Timestamp,
    /// The value that it had.
    pub value: String,
    /// It is understood; else it only begins.
    pub told: bool,
}

/// Notes that somebody is told, or has understood.
///
/// # Errors
/// If the line cannot be written, or the value cannot be read.
pub fn note(expired: &Expired, value: &str, told: bool) -> Result<()> {
    let Expired { key, revision, attempt, expired_at, .. } = expired;
    let (at, expired_at) = (SystemClock.now().as_micros(), expired_at.as_micros());
    let what = if told { "told" } else { "begun" };
    log::note_words(&format!("{at} {key} {revision} {attempt} {expired_at} {value} {what}"))
}

/// Reads a log. A last line that a kill cut short is left out.
pub fn read(text: &str) -> Vec<Call> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(call).collect()
}

fn call(line: &str) -> Option<Call> {
    let words: Vec<&str> = line.split(' ').collect();
    let [process, at, key, revision, attempt, expired_at, value, what] = words[..] else { return None };
    Some(Call {
        process: process.parse().ok()?,
        at: Timestamp::from_micros(at.parse().ok()?),
        key: key.into(),
        revision: revision.parse().ok()?,
        attempt: attempt.parse().ok()?,
        expired_at: Timestamp::from_micros(expired_at.parse().ok()?),
        value: value.into(),
        told: what == "told",
    })
}
