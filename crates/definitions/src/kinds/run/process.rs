//! A process with its own group, whose output is bounded, and which leaves nothing behind when it is cut off.

use futures_util::future::{Either, join3, select};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

/// How long a group has after SIGTERM before SIGKILL, and how long output is read after the command itself has ended.
const GRACE: Duration = Duration::from_secs(2);

/// How a process came to its end.
#[derive(Debug)]
pub(super) enum Ended {
    Exited { status: ExitStatus, stdout: Captured, stderr: Captured },
    TimedOut { limit: Duration, stderr: Captured },
}

/// The beginning of what a process wrote.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) bytes: Vec<u8>,
    /// How many more there were.
    pub(super) dropped: u64,
    max: usize,
}

impl Captured {
    fn new(max: usize) -> Self {
        Captured { bytes: Vec::new(), dropped: 0, max }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Reads to the end, and keeps as much as is allowed.
    async fn fill(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut buffer = vec![0; 8192];
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            let kept = count.min(self.max - self.bytes.len());
            self.bytes.extend_from_slice(&buffer[..kept]);
            self.dropped += (count - kept) as u64;
        }
    }
}

/// Starts a process and waits for its end.
///
/// # Cancellation
/// Dropping the future kills the whole group at once.
pub(super) async fn carry_out(
    mut command: Command,
    stdin: Option<Vec<u8>>,
    output_max: usize,
    limit: Option<Duration>,
) -> io::Result<Ended> {
    let input = if stdin.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let mut group = Group::of(&child);
    let (mut stdout, mut stderr) = (Captured::new(output_max), Captured::new(output_max));
    let (to, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let exited = {
        let talking = pin!(join3(stdout.fill(out), stderr.fill(err), feed(to, stdin)));
        let waiting = pin!(async {
            match limit {
                None => Ok(child.wait().await),
                Some(limit) => timeout(limit, child.wait()).await.map_err(|_| limit),
            }
        });
        match select(waiting, talking).await {
            Either::Left((Ok(status), talking)) => {
                if timeout(GRACE, talking).await.is_err() {
                    group.signal(Signal::KILL); // what it left running keeps its output open
                }
                Ok(status)
            }
            Either::Left((Err(limit), _)) => Err(limit),
            Either::Right((_, waiting)) => waiting.await,
        }
    };
    match exited {
        Ok(status) => {
            group.forget();
            Ok(Ended::Exited { status: status?, stdout, stderr })
        }
        Err(limit) => {
            end(&mut child, &mut group).await;
            Ok(Ended::TimedOut { limit, stderr })
        }
    }
}

/// Gives the process what it is to read. One that does not want it has its reasons.
async fn feed(pipe: Option<ChildStdin>, bytes: Option<Vec<u8>>) {
    if let (Some(mut pipe), Some(bytes)) = (pipe, bytes) {
        let _not_wanted = pipe.write_all(&bytes).await;
    }
}

/// Asks the group to end, and ends it if it does not.
async fn end(child: &mut Child, group: &mut Group) {
    group.signal(Signal::TERM);
    let _in_time = timeout(GRACE, child.wait()).await;
    group.signal(Signal::KILL); // also for those that the process itself has left behind
    let _gone = child.wait().await;
    group.forget();
}

/// A process group, which is killed when this is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            let _gone_already = kill_process_group(group, signal);
        }
    }

    /// It has come to its end; its number may soon be another one's.
    fn forget(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
