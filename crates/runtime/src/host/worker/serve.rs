//! The worker's end of a line: sessions are opened and told, and what they say is sent.

use super::lease::{Due, Lease};
use super::places::Share;
use super::time::ServerTime;
use super::{Parted, Worker};
use crate::host::remote::Duplex;
use crate::host::wire::{Broken, Down, Frames, Outbox, Reader, Up, Welcome, put_up};
use crate::host::{Host, Line, Opening, Report, Says, SessionId, ToHost};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use steadfast_kernel::{RunId, Wait};
use tokio::sync::mpsc;

/// How many reports are taken up at once.
const REPORTS: usize = 256;

/// A message of a server may be so long: no part of an opening is longer than this and a payload.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// A line to a server.
struct Serving<'a> {
    worker: &'a Worker,
    time: Arc<ServerTime>,
    lease: Lease,
    frames: Frames,
    reader: Reader,
    /// Once the server has said what goes.
    welcome: Option<Welcome>,
    host: Option<Host>,
    reports: Option<mpsc::UnboundedSender<Report>>,
    lines: BTreeMap<SessionId, Line>,
    /// What it has of the places of its process, while the line stands.
    share: Option<Share>,
    /// What is to be sent.
    outbox: Outbox,
    draining: bool,
}

impl Worker {
    /// Hosts runs over that line until it ends; see [`Parted`]. When `drain` ends, nothing new is begun: attempts in flight end and are recorded, runs go on elsewhere, and
    /// this ends when nothing is left, or after [`patience`](Self::patience).
    ///
    /// # Cancellation
    /// Dropping the future lets go of everything that is hosted over the line.
    pub async fn serve(&self, duplex: Duplex, drain: impl Future<Output = ()> + Send) -> Parted {
        let (reports, mut said) = mpsc::unbounded_channel();
        let mut serving = Serving {
            worker: self,
            time: Arc::new(ServerTime::new(Arc::clone(&self.clock))),
            lease: Lease::new(Arc::clone(&self.clock), self.heartbeat),
            frames: Frames::new(MESSAGE_BYTES_MAX),
            reader: Reader::new(usize::MAX),
            welcome: None,
            host: None,
            reports: Some(reports),
            lines: BTreeMap::new(),
            share: None,
            outbox: Outbox::default(),
            draining: false,
        };
        let mut duplex = duplex;
        let parted = serving.run(&mut duplex, &mut said, pin!(drain)).await;
        tracing::info!(worker = self.name, sessions = serving.lines.len(), why = %parted, "the line to the server is over");
        serving.let_go();
        let over = async { while said.recv().await.is_some() {} };
        tokio::select! {
            biased;
            () = over => if matches!(parted, Parted::Drained | Parted::OutOfPatience) {
                serving.bid_farewell(parted != Parted::Drained, &mut duplex).await; // the server need not wait before it gives the runs to others
            },
            // Until then it does not come again, which would say that nothing is left; after that the server has waited for long enough.
            () = self.clock.sleep(self.heartbeat) => tracing::error!(worker = self.name, "code that does not let others have the thread cannot be ended"),
        }
        parted
    }
}

impl Serving<'_> {
    async fn run(
        &mut self,
        Duplex { incoming, outgoing }: &mut Duplex,
        said: &mut mpsc::UnboundedReceiver<Report>,
        mut drain: std::pin::Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Parted {
        let mut patience: BoxFuture<'static, ()> = std::future::pending().boxed();
        let mut reports = Vec::with_capacity(REPORTS);
        loop {
            if self.lease.is_over() {
                return Parted::Silent;
            }
            if self.draining && self.lines.is_empty() && said.is_empty() {
                return Parted::Drained;
            }
            self.share_places();
            let has_room = !self.outbox.is_full();
            tokio::select! {
                biased;
                due = self.lease.due() => match due {
                    Due::Over => return Parted::Silent,
                    Due::Beat(number) => self.say(Up::Beat { number }),
                },
                permit = outgoing.reserve(), if !self.outbox.is_empty() => match permit {
                    Ok(permit) => drop(self.outbox.take().map(|chunk| permit.send(chunk))),
                    Err(_) => return Parted::Ended,
                },
                chunk = incoming.recv() => match chunk {
                    Some(chunk) => if let Err(parted) = self.hear(chunk) {
                        return parted;
                    },
                    None => return Parted::Ended,
                },
                _ = said.recv_many(&mut reports, REPORTS), if has_room => {
                    reports.drain(..).for_each(|report| self.report(report));
                }
                () = changed(&mut self.share) => {} // looked at before it waits again
                () = &mut drain, if !self.draining => {
                    self.drain();
                    patience = self.worker.clock.sleep(self.worker.patience);
                }
                () = &mut patience, if self.draining => return Parted::OutOfPatience,
            }
        }
    }

    /// Nothing is left: the server hears of it, after all that was said before, and ends the line when it has. Until then it must not be cut: what is on its way would be lost, and done again.
    async fn bid_farewell(&mut self, abandons: bool, Duplex { incoming, outgoing }: &mut Duplex) {
        self.say(Up::Bye { abandons });
        while let Some(chunk) = self.outbox.take() {
            tokio::select! {
                biased;
                sent = outgoing.send(chunk) => if sent.is_err() { return },
                () = self.worker.clock.sleep(self.worker.heartbeat / 3) => return,
            }
        }
        let heard = async { while incoming.recv().await.is_some() {} };
        tokio::select! {
            biased;
            () = heard => {}
            () = self.worker.clock.sleep(self.worker.heartbeat) => tracing::warn!(worker = self.worker.name, "the server has not ended the line"),
        }
    }

    /// Every session is over: they end as soon as they are looked at.
    fn let_go(&mut self) {
        (self.host, self.reports, self.share) = (None, None, None);
        self.lines.clear();
    }

    fn say(&mut self, up: Up) {
        let _it_is_short = put_up(up, usize::MAX, &mut self.outbox);
    }

    /// Tells the other lines of the process how many runs are hosted over this one, and the server how many there may be.
    fn share_places(&mut self) {
        let Some(share) = &mut self.share else { return };
        share.set(self.lines.len());
        if let Some(runs) = share.news() {
            self.say(Up::Room { runs });
        }
    }

    /// Passes on what a session says. A turn that is longer than the server takes cannot be recorded: its run waits.
    fn report(&mut self, Report { session, says, .. }: Report) {
        if says.is_last() {
            self.lines.remove(&session);
        }
        let max = self.welcome.map_or(usize::MAX, |welcome| welcome.message_bytes_max);
        if let Err(bytes) = put_up(Up::Report { session, says }, max, &mut self.outbox) {
            self.lines.remove(&session);
            let expected = format!("what is recorded at once to have at most {max} bytes (workers.message_bytes_max)");
            let wait = Wait::Mismatch { at: 0, expected, found: format!("{bytes} bytes") };
            self.say(Up::Report { session, says: Says::Blocked(wait) });
        }
    }

    fn hear(&mut self, chunk: Bytes) -> Result<(), Parted> {
        self.frames.add(chunk);
        while let Some(frame) = self.frames.next().map_err(broken)? {
            if let Some(down) = self.reader.down(frame).map_err(broken)? {
                self.follow(down)?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, down: Down) -> Result<(), Parted> {
        match down {
            Down::Welcome(welcome) => self.begin(welcome),
            Down::Open { session, opening } => self.open(session, *opening)?,
            Down::Tell { session, message, now } => {
                self.time.at_least(now);
                let is_kept = !(self.draining && message == ToHost::GoOn); // the shard stays, but this worker goes
                if let Some(line) = self.lines.get(&session).filter(|_| is_kept) {
                    line.tell(message); // else it has ended, and the server is about to hear of it
                }
            }
            Down::Ask { session, question } => {
                let attempts = self.lines.get(&session).map(Line::attempts_here).unwrap_or_default();
                self.say(Up::Attempts { question, attempts });
            }
            Down::Beat { number, now } => {
                if let Some((sent, received)) = self.lease.heard(number) {
                    self.time.set(now, sent, received);
                }
            }
            Down::Bye { why, for_good } => return Err(Parted::Dismissed { why, for_good }),
        }
        Ok(())
    }

    /// The line stands.
    fn begin(&mut self, welcome: Welcome) {
        let Some(reports) = self.reports.take() else { return };
        self.host = Some(Host {
            registry: self.worker.registry.clone(),
            clock: Arc::<ServerTime>::clone(&self.time),
            reports,
            payload_bytes_max: welcome.payload_bytes_max,
            heartbeat_every: welcome.heartbeat_every,
            observer: self.worker.observer.clone(),
            gate: None,
            pool: None,
            sessions: Arc::default(),
            others: None,
        });
        self.welcome = Some(welcome);
        self.share = Some(self.worker.places.join(self.worker.sessions_max));
    }

    fn open(&mut self, session: SessionId, opening: Opening) -> Result<(), Parted> {
        let Some(host) = &self.host else { return Err(Parted::Broken("a run was opened before the line stood".into())) };
        if self.draining {
            self.say(Up::Report { session, says: Says::GivenBack }); // it was on its way when this one began to drain
            return Ok(());
        }
        let (run, workflow, version) = (opening.run.clone(), opening.workflow.clone(), opening.definition.clone());
        match host.open(session, opening) {
            Ok(line) => drop(self.lines.insert(session, line)),
            Err(_) => self.refuse(session, &run, Wait::NoWorker { workflow, version }),
        }
        Ok(())
    }

    fn refuse(&mut self, session: SessionId, run: &RunId, wait: Wait) {
        tracing::warn!(%run, "the server has sent a run that this worker does not have the code of");
        self.say(Up::Report { session, says: Says::Blocked(wait) });
    }

    /// Takes nothing more, and has everything end that is not in flight.
    fn drain(&mut self) {
        tracing::info!(worker = self.worker.name, sessions = self.lines.len(), "draining");
        self.draining = true;
        self.say(Up::Drain);
        self.lines.values().for_each(|line| line.tell(ToHost::Drain));
    }
}

/// Ends when other lines have taken places, or left them.
async fn changed(share: &mut Option<Share>) {
    match share {
        Some(share) => share.changed().await,
        None => std::future::pending().await,
    }
}

fn broken(Broken(why): Broken) -> Parted {
    Parted::Broken(why)
}
