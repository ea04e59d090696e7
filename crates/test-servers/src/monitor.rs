//! Counts what clients send to Redis. What scripts do inside of it is not counted.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sees every command that comes to a Redis; ends with this value.
#[derive(Debug)]
pub struct Monitor {
    stream: TcpStream,
    sent: Arc<AtomicU64>,
}

impl Monitor {
    /// Sees what comes to the server at that port of the loopback from here on.
    ///
    /// # Panics
    /// If there is no server.
    pub fn of(port: u16) -> Self {
        let open = || -> std::io::Result<(TcpStream, BufReader<TcpStream>)> {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.write_all(b"MONITOR\r\n")?;
            let mut lines = BufReader::new(stream.try_clone()?);
            lines.read_line(&mut String::new())?;
            Ok((stream, lines))
        };
        let (stream, mut lines) = open().unwrap_or_else(|error| panic!("the server cannot be watched: {error}"));
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
                if !is_of_a_script(&line) {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                line.clear();
            }
        });
        Monitor { stream, sent }
    }

    /// How many commands clients have sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

/// A line is `+TIME [DB ADDRESS] "COMMAND" …`; what a script does has `lua` in the place of the
/// address.
fn is_of_a_script(line: &[u8]) -> bool {
    let end = line.iter().position(|byte| *byte == b']').unwrap_or_default();
    line[..end].ends_with(b" lua")
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _it_is_gone_already = self.stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_does_is_told_from_what_a_client_sends() {
        assert!(is_of_a_script(b"+1700000000.1 [0 lua] \"HSET\" \"k\"\r\n"));
        assert!(!is_of_a_script(b"+1700000000.1 [0 127.0.0.1:1] \"EVALSHA\" \"]lua]\"\r\n"));
    }
}
