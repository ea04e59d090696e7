//! Golden journals as text: exact, and made to be read and compared by people.
//!
//! A file has the journals of one story. A line `entity ID` begins each; the lines after it are its records, one per line, with their columns separated by
//! tabs: sequence, epoch, type, microseconds, subject, attempt, backoff in milliseconds, reason, payload (encoding and text), body (hexadecimal). What is absent or empty is `-`.

use std::path::PathBuf;
use steadfast_kernel::{Encoding, EntityId, Payload, Record, Timestamp};

/// An entity and its records.
pub(crate) type Journal = (EntityId, Vec<Record>);

/// Set to `add`, it has missing files written.
pub(crate) const ADD: &str = "STEADFAST_GOLDEN";

pub(crate) fn is_adding() -> bool {
    std::env::var(ADD).is_ok_and(|value| value == "add")
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel/tests/golden/format-1"))
}

/// The names of all stories, in order.
pub(crate) fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let journals = files.filter(|path| path.extension().is_some_and(|extension| extension == "journal"));
    let mut names: Vec<_> = journals.map(|path| path.file_stem().unwrap().to_str().unwrap().to_string()).collect();
    names.sort();
    names
}

pub(crate) fn load(name: &str) -> Vec<Journal> {
    parse(&std::fs::read_to_string(folder().join(format!("{name}.journal"))).unwrap())
}

/// Adds a story. One that is there already is never changed.
pub(crate) fn add(name: &str, journals: &[Journal]) {
    let text: String = journals.iter().map(print).collect();
    assert_eq!(parse(&text), journals, "{name} has something that a line cannot hold");
    let path = folder().join(format!("{name}.journal"));
    std::io::Write::write_all(&mut std::fs::File::create_new(path).expect("a new file"), text.as_bytes()).unwrap();
}

fn print((entity, records): &Journal) -> String {
    let lines: String = records.iter().map(line).collect();
    format!("entity {entity}\n{lines}")
}

fn line(record: &Record) -> String {
    let Record { seq, epoch, kind, at, subject, attempt, backoff_ms, reason, payload, body } = record;
    let number = |number: Option<u64>| number.map_or_else(|| "-".into(), |number| number.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let payload = payload
        .as_ref()
        .map(|payload| format!("{} {}", payload.encoding.as_str(), str::from_utf8(&payload.bytes).unwrap()));
    let body: String = if body.is_empty() { "-".into() } else { body.iter().map(|byte| format!("{byte:02x}")).collect() };
    let (at, subject, reason, payload) = (at.as_micros(), text(subject), text(reason), text(&payload));
    let (attempt, backoff_ms) = (number(attempt.map(u64::from)), number(*backoff_ms));
    format!("{seq}\t{epoch}\t{kind}\t{at}\t{subject}\t{attempt}\t{backoff_ms}\t{reason}\t{payload}\t{body}\n")
}

fn parse(text: &str) -> Vec<Journal> {
    let mut journals: Vec<Journal> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("entity ") {
            Some(id) => journals.push((EntityId::from_stored(id).unwrap(), Vec::new())),
            None => journals.last_mut().expect("an entity first").1.push(read(line)),
        }
    }
    journals
}

fn read(line: &str) -> Record {
    let columns: Vec<&str> = line.split('\t').collect();
    let [seq, epoch, kind, at, subject, attempt, backoff_ms, reason, payload, body] = columns[..] else { panic!("ten columns: {line}") };
    let there = |column: &str| Some(column.to_string()).filter(|column| column != "-");
    let payload = there(payload).map(|payload| {
        let (encoding, text) = payload.split_once(' ').unwrap();
        Payload { encoding: Encoding::parse(encoding).unwrap(), bytes: text.to_string().into() }
    });
    let body = body.trim_start_matches('-');
    let byte = |at: usize| u8::from_str_radix(&body[at..at + 2], 16).unwrap();
    Record {
        seq: seq.parse().unwrap(),
        epoch: epoch.parse().unwrap(),
        kind: kind.into(),
        at: Timestamp::from_micros(at.parse().unwrap()),
        subject: there(subject),
        attempt: there(attempt).map(|attempt| attempt.parse().unwrap()),
        backoff_ms: there(backoff_ms).map(|backoff| backoff.parse().unwrap()),
        reason: there(reason),
        payload,
        body: (0..body.len()).step_by(2).map(byte).collect(),
    }
}
