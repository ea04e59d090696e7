//! Answers a PostgreSQL client by a script; few statements return a row.

use crate::region::Uncounted;
use anyhow::{Context, Result};
use bytes::{Buf, BufMut, BytesMut};
use std::collections::BTreeMap;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

const BOOL: u32 = 16;
const INT8: u32 = 20;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const INT4_ARRAY: u32 = 1007;
const INT8_ARRAY: u32 = 1016;

/// The types of parameters that a statement casts, with their ids.
const CASTS: [(&str, u32); 9] = [
    ("bool[]", 1000),
    ("bytea[]", 1001),
    ("int[]", INT4_ARRAY),
    ("text[]", 1009),
    ("bigint[]", INT8_ARRAY),
    ("timestamptz[]", 1185),
    ("jsonb[]", 3807),
    ("bigint", INT8),
    ("text", TEXT),
];

/// A statement that returns a row: a part of its text, and the columns.
type Scripted = (&'static str, &'static [(u32, &'static [u8])]);

const SCRIPT: [Scripted; 3] = [
    ("SELECT pg_is_in_recovery()", &[(BOOL, &[0]), (TEXT, b"UTF8")]),
    ("SELECT pg_try_advisory_lock", &[(BOOL, &[1])]),
    ("SELECT value FROM steadfast.settings WHERE name = 'shards'", &[(TEXT, b"1")]),
];

/// Listens where a client looks for a server of this machine.
pub(super) fn listen(folder: &Path) -> Result<()> {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.5432"))?;
    tokio::spawn(Uncounted::new(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(Uncounted::new(serve(stream)));
        }
    }));
    Ok(())
}

/// Answers one client until it leaves. Requests that arrive together are answered together.
async fn serve(mut stream: UnixStream) -> Result<()> {
    let (mut received, mut session) = (BytesMut::with_capacity(1 << 16), Session::default());
    while stream.read_buf(&mut received).await? > 0 {
        while let Some((kind, body)) = session.next(&mut received) {
            session.answer(kind, body)?;
        }
        stream.write_all(&session.answers).await?;
        session.answers.clear();
    }
    Ok(())
}

#[derive(Default)]
struct Session {
    has_begun: bool,
    /// The texts of prepared statements.
    statements: BTreeMap<Vec<u8>, String>,
    /// The text of the statement that was bound last.
    bound: String,
    answers: BytesMut,
}

impl Session {
    /// Takes a whole message off. The first message of a session has no kind.
    fn next(&mut self, received: &mut BytesMut) -> Option<(u8, BytesMut)> {
        let head = usize::from(self.has_begun);
        let length = received.get(head..head + 4)?.try_into().ok().map(u32::from_be_bytes)?;
        if received.len() < head + length as usize {
            return None;
        }
        let mut message = received.split_to(head + length as usize);
        let kind = if self.has_begun { message.get_u8() } else { 0 };
        message.advance(4);
        self.has_begun = true;
        Some((kind, message))
    }

    fn answer(&mut self, kind: u8, mut body: BytesMut) -> Result<()> {
        match kind {
            0 => {
                self.say(b'R', |body| body.put_u32(0)); // no password is needed
                self.ready();
            }
            b'Q' => {
                self.done();
                self.ready();
            }
            b'P' => {
                let (name, text) = (word(&mut body)?, word(&mut body)?);
                self.statements.insert(name, String::from_utf8(text)?);
                self.say(b'1', |_| ());
            }
            b'D' => {
                body.advance(1);
                self.describe(&word(&mut body)?)?;
            }
            b'B' => {
                let _portal = word(&mut body)?;
                let name = word(&mut body)?;
                self.bound = self.statements.get(&name).context("a statement was not prepared")?.clone();
                self.say(b'2', |_| ());
            }
            b'E' => self.execute(),
            b'C' => self.say(b'3', |_| ()),
            b'S' => self.ready(),
            _ => {}
        }
        Ok(())
    }

    fn describe(&mut self, name: &[u8]) -> Result<()> {
        let text = self.statements.get(name).context("a statement was not prepared")?;
        let (types, columns) = (parameters(text), row(text));
        self.say(b't', |body| {
            body.put_u16(types.len() as u16);
            types.iter().for_each(|kind| body.put_u32(*kind));
        });
        match columns {
            None => self.say(b'n', |_| ()),
            Some(columns) => self.say(b'T', |body| {
                body.put_u16(columns.len() as u16);
                for (kind, _) in columns {
                    body.put_slice(b"column\0");
                    body.put_bytes(0, 6);
                    body.put_u32(*kind);
                    body.put_bytes(0, 8);
                }
            }),
        }
        Ok(())
    }

    fn execute(&mut self) {
        if let Some(columns) = row(&self.bound) {
            self.say(b'D', |body| {
                body.put_u16(columns.len() as u16);
                for (_, value) in columns {
                    body.put_u32(value.len() as u32);
                    body.put_slice(value);
                }
            });
        }
        self.done();
    }

    fn done(&mut self) {
        self.say(b'C', |body| body.put_slice(b"INSERT 0 1\0"));
    }

    fn ready(&mut self) {
        self.say(b'Z', |body| body.put_u8(b'I'));
    }

    fn say(&mut self, kind: u8, body: impl FnOnce(&mut BytesMut)) {
        let mut message = BytesMut::new();
        body(&mut message);
        self.answers.put_u8(kind);
        self.answers.put_u32(message.len() as u32 + 4);
        self.answers.put_slice(&message);
    }
}

/// Bytes up to a zero.
fn word(body: &mut BytesMut) -> Result<Vec<u8>> {
    let end = body.iter().position(|byte| *byte == 0).context("a text has no end")?;
    let word = body.split_to(end).to_vec();
    body.advance(1);
    Ok(word)
}

/// The columns of the row that a statement returns, if any.
fn row(text: &str) -> Option<&'static [(u32, &'static [u8])]> {
    SCRIPT.iter().find(|(part, _)| text.contains(part)).map(|(_, columns)| *columns)
}

/// The types of the parameters of a statement: those that it casts them to, or those of the
/// function that it calls.
fn parameters(text: &str) -> Vec<u32> {
    if text.contains("steadfast.fence(") {
        return vec![INT4, TEXT, INT4_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY];
    }
    let is_there = |number: &usize| text.contains(&format!("${number}"));
    let cast = |number: usize| {
        let is_cast = |(name, _): &&(&str, u32)| text.contains(&format!("${number}::{name}"));
        CASTS.iter().find(is_cast).map_or(TEXT, |(_, kind)| *kind)
    };
    (1..).take_while(is_there).map(cast).collect()
}
