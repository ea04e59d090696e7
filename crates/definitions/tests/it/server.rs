//! A real HTTP server that answers as it is told, one connection per request.

use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server answers to one request.
#[derive(Clone)]
pub(crate) struct Answer {
    head: String,
    body: String,
    then: Then,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Close,
    HangUp,
    Endless,
    Never,
}

impl Answer {
    pub(crate) fn text(status: u16, body: &str) -> Self {
        Answer { head: format!("HTTP/1.1 {status} X\r\nconnection: close\r\n"), body: body.into(), then: Then::Close }
    }

    pub(crate) fn json(status: u16, body: &str) -> Self {
        Answer::text(status, body).header("content-type", "application/json; charset=utf-8")
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head += &format!("{name}: {value}\r\n");
        self
    }

    /// Closes the connection without a word.
    pub(crate) fn hang_up() -> Self {
        Answer { then: Then::HangUp, ..Answer::text(200, "") }
    }

    /// A body without end.
    pub(crate) fn endless() -> Self {
        Answer { then: Then::Endless, ..Answer::text(200, "") }
    }

    /// No answer at all, for as long as the other side wants to wait.
    pub(crate) fn never() -> Self {
        Answer { then: Then::Never, ..Answer::text(200, "") }
    }
}

pub(crate) struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Begins to listen. The answers are given in order.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (requests, answers) = (Arc::<Mutex<Vec<String>>>::default(), answers.into_iter().collect::<Vec<_>>());
        let task = tokio::spawn(serve(listener, answers, Arc::clone(&requests)));
        Server { address, requests, task }
    }

    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// What was asked so far, as it came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, answers: Vec<Answer>, requests: Arc<Mutex<Vec<String>>>) {
    let mut left_open = Vec::new();
    for answer in answers {
        let (mut stream, asked) = next(&listener).await;
        requests.lock().unwrap().push(asked);
        match answer.then {
            Then::HangUp => {}
            Then::Never => left_open.push(stream),
            Then::Close => {
                let text = format!("{}content-length: {}\r\n\r\n{}", answer.head, answer.body.len(), answer.body);
                let _gone = stream.write_all(text.as_bytes()).await;
                let _gone = stream.shutdown().await;
            }
            Then::Endless => {
                let _gone = stream.write_all(format!("{}\r\n", answer.head).as_bytes()).await;
                while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
            }
        }
    }
    std::future::pending::<()>().await;
}

/// The next whole request, and where it came from. Those who hang up in the middle of theirs are not answered.
async fn next(listener: &TcpListener) -> (TcpStream, String) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        if let Some(asked) = request(&mut stream).await {
            return (stream, asked);
        }
    }
}

/// Reads a request with its body.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer).await.ok()?;
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").and_then(|n| n.parse::<usize>().ok()));
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        if count == 0 {
            return None;
        }
    }
}
