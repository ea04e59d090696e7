//! The way to a host that has several addresses, some of which may lead nowhere.

use crate::wire::until;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::Instant;

/// How long an address is tried alone before the next one is tried beside it, as RFC 8305 has it: longer than it takes to connect to almost anybody.
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the first address of a host that answers.
pub(super) async fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    race(lookup_host((host, port)).await?, TcpStream::connect).await
}

/// Tries one address after the other, each a little later than the one before or as soon as that has failed: the first that connects wins. If all fail, how the last has.
async fn race<T, F: Future<Output = io::Result<T>>>(
    addresses: impl IntoIterator<Item = SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name of the host leads to no address");
    let (mut addresses, mut trying) = (addresses.into_iter().peekable(), FuturesUnordered::new());
    loop {
        trying.extend(addresses.next().map(&connect));
        let next_at = addresses.peek().map(|_| Instant::now() + HEAD_START);
        let tried = tokio::select! {
            biased;
            tried = trying.next() => tried,
            () = until(next_at), if next_at.is_some() => continue,
        };
        match tried {
            Some(Ok(connected)) => return Ok(connected),
            Some(Err(error)) => failure = error,
            None => return Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    /// What becomes of a try, and when.
    type Fate = (Duration, Result<(), io::ErrorKind>);

    const NEVER: Fate = (Duration::from_secs(3600), Ok(()));

    const fn after(ms: u64, outcome: Result<(), io::ErrorKind>) -> Fate {
        (Duration::from_millis(ms), outcome)
    }

    /// Which address has won, after how many milliseconds, and when each was tried.
    async fn won(fates: &[Fate]) -> (Result<u16, io::ErrorKind>, u128, Vec<u128>) {
        let (begun, tries) = (Instant::now(), Mutex::new(Vec::new()));
        let addresses = (0..fates.len()).map(|port| SocketAddr::from(([127, 0, 0, 1], port as u16)));
        let connect = |address: SocketAddr| {
            tries.lock().push(begun.elapsed().as_millis());
            let (wait, outcome) = fates[usize::from(address.port())];
            async move {
                until(Some(Instant::now() + wait)).await;
                outcome.map(|()| address.port()).map_err(io::Error::from)
            }
        };
        let won = race(addresses, connect).await.map_err(|error| error.kind());
        (won, begun.elapsed().as_millis(), tries.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_address_that_answers_wins_and_dead_ones_cost_a_moment() {
        use io::ErrorKind::{ConnectionRefused, HostUnreachable};
        assert_eq!(won(&[after(200, Ok(())), NEVER]).await, (Ok(0), 200, vec![0]), "nobody else is asked");
        assert_eq!(won(&[NEVER, after(10, Ok(()))]).await, (Ok(1), 260, vec![0, 250]));
        assert_eq!(won(&[NEVER, NEVER, after(0, Ok(()))]).await, (Ok(2), 500, vec![0, 250, 500]));
        assert_eq!(won(&[after(300, Ok(())), after(200, Ok(()))]).await, (Ok(0), 300, vec![0, 250]), "it is still waited for");
        let refused = after(5, Err(ConnectionRefused));
        assert_eq!(won(&[refused, after(5, Ok(()))]).await, (Ok(1), 10, vec![0, 5]), "there is nothing to wait for");
        assert_eq!(won(&[refused, after(20, Err(HostUnreachable))]).await, (Err(HostUnreachable), 25, vec![0, 5]));
        assert_eq!(won(&[]).await.0, Err(io::ErrorKind::NotFound));
    }
}
