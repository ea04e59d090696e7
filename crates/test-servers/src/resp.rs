//! A tiny connection to Redis of our own, so that tests do not look at the server through what they
//! test.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What Redis answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing is there.
    Nil,
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
    /// The command has failed.
    Error(String),
    /// Several answers.
    List(Vec<Reply>),
}

impl Reply {
    /// The text.
    ///
    /// # Panics
    /// If it is something else.
    pub fn text(&self) -> &str {
        match self {
            Reply::Text(text) => text,
            other => panic!("this should be a text: {other:?}"),
        }
    }

    /// The number.
    ///
    /// # Panics
    /// If it is something else.
    pub fn number(&self) -> i64 {
        match self {
            Reply::Number(number) => *number,
            other => panic!("this should be a number: {other:?}"),
        }
    }

    /// The texts of a list.
    ///
    /// # Panics
    /// If it is something else.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Reply::List(list) => list.iter().map(|reply| reply.text().to_owned()).collect(),
            other => panic!("this should be a list: {other:?}"),
        }
    }
}

/// A connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    pub(crate) fn ask(&mut self, command: &[&str]) -> Result<Reply> {
        let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
        for part in command {
            bytes.extend_from_slice(format!("${}\r\n{part}\r\n", part.len()).as_bytes());
        }
        self.stream.get_mut().write_all(&bytes)?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Reply> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))?;
        let number = || rest.parse::<i64>().map_err(|_| Error::from(ErrorKind::InvalidData));
        Ok(match kind {
            "+" => Reply::Text(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Number(number()?),
            "$" | "*" if number()? < 0 => Reply::Nil,
            "$" => self.text(number()?)?,
            "*" => Reply::List((0..number()?).map(|_| self.reply()).collect::<Result<_>>()?),
            _ => return Err(ErrorKind::InvalidData.into()),
        })
    }

    fn text(&mut self, length: i64) -> Result<Reply> {
        let length = usize::try_from(length).map_err(|_| Error::from(ErrorKind::InvalidData))?;
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        Ok(Reply::Text(String::from_utf8_lossy(&bytes[..length]).into_owned()))
    }
}
