//! Requests that may go to a server that is dead, stopped or just beginning.

use serde_json::Value;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// For so long a server may say nothing: a stopped one takes connections too.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Asks a server for something; gives the status and the body.
pub(super) fn ask(url: &str, method: &str, path: &str, body: &Value) -> Result<(u16, Value), Error> {
    let mut stream = connect(url)?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let cut_off = || Error::from(ErrorKind::UnexpectedEof);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut_off)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(cut_off)?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).map_err(|_| cut_off())? };
    Ok((status, body))
}

/// Whether it was done, as far as an answer tells.
pub(super) fn is_done(answer: &Result<(u16, Value), Error>) -> bool {
    matches!(answer, Ok((200..300, _)))
}

/// What is told by the change feed of a server, from now on.
pub(super) fn follow(url: &str, query: &str) -> impl Iterator<Item = Value> + use<> {
    follow_with_cursors(url, query).map(|(_, told)| told)
}

/// The same, each with the cursor by which it goes on after that.
pub(super) fn follow_with_cursors(url: &str, query: &str) -> impl Iterator<Item = (String, Value)> + use<> {
    let mut stream = connect(url).unwrap();
    write!(stream, "GET /v1/events?{query} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let begun = lines.find(String::is_empty);
    assert!(begun.is_some(), "the feed does not begin");
    let mut cursor = String::new();
    lines.filter_map(move |line| {
        if let Some(id) = line.strip_prefix("id: ") {
            id.clone_into(&mut cursor);
        }
        let told = serde_json::from_str(line.strip_prefix("data:")?).ok()?;
        Some((cursor.clone(), told))
    })
}

fn connect(url: &str) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect(url.strip_prefix("http://").unwrap())?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    Ok(stream)
}
