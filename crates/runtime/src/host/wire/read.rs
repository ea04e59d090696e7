//! Messages out of bytes. What cannot be read is named, and nothing of it is used.

use super::bodies::*;
use super::{Broken, Down, Up, VERSION, VERSION_MIN, Welcome};
use crate::host::{Opening, Says, SessionId, ToHost, What};
use bytes::Bytes;
use prost::Message;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_kernel::run::Generations;
use steadfast_kernel::{
    Attempt, Completion, Encoding, Entry, Failure, Payload, Policy, Proposal, Record, RecordHeartbeat, ReportFailure, RunId, StepId,
    TakeTurn, TimerName, Timestamp, Wait, WorkflowName,
};

/// A payload that is not larger is copied, so that it does not keep the chunk that it came in.
const COPIED_MAX: usize = 4 << 10;

/// Reads what the other side says.
pub(crate) struct Reader {
    /// How large a payload may be.
    payload_bytes_max: usize,
    /// Sessions whose opening is not whole yet.
    openings: BTreeMap<SessionId, Opening>,
}

impl Reader {
    pub(crate) fn new(payload_bytes_max: usize) -> Self {
        Reader { payload_bytes_max, openings: BTreeMap::new() }
    }

    /// What a server says; nothing if there is more of it to come.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn down(&mut self, bytes: Bytes) -> Result<Option<Down>, Broken> {
        let body = DownBody::decode(bytes).map_err(unreadable)?;
        Ok(Some(match body.kind.ok_or_else(unknown)? {
            DownKind::Welcome(body) if !(VERSION_MIN..=VERSION).contains(&body.version) => {
                return Err(Broken(format!("the server speaks version {} of the protocol, the worker {VERSION}", body.version)));
            }
            DownKind::Welcome(body) => Down::Welcome(Welcome {
                version: body.version,
                payload_bytes_max: usize::try_from(body.payload_bytes_max).unwrap_or(usize::MAX),
                message_bytes_max: usize::try_from(body.message_bytes_max).unwrap_or(usize::MAX),
                heartbeat_every: Duration::from_micros(body.heartbeat_every_us),
                now: Timestamp::from_micros(body.now),
            }),
            DownKind::Open(body) => {
                let session = body.session;
                self.openings.insert(session, opening(body)?);
                return Ok(None);
            }
            DownKind::More(body) => return self.more(body),
            DownKind::Tell(TellBody { session, kind, now_us }) => {
                Down::Tell { session, message: self.told(kind.ok_or_else(unknown)?)?, now: Timestamp::from_micros(now_us) }
            }
            DownKind::Ask(AskBody { session, question }) => Down::Ask { session, question },
            DownKind::Beat(BeatBody { number, now }) => Down::Beat { number, now: Timestamp::from_micros(now) },
            DownKind::Bye(ByeBody { why, for_good }) => Down::Bye { why, for_good },
        }))
    }

    fn more(&mut self, body: MoreBody) -> Result<Option<Down>, Broken> {
        let session = body.session;
        let mut opening = self.openings.remove(&session).ok_or_else(|| wrong("the session of a part"))?;
        for named in body.supplied {
            let (step, payload) = self.named(named)?;
            opening.supplied.insert(step, payload);
        }
        for named in body.details {
            let (step, payload) = self.named(named)?;
            opening.details.insert(step, payload);
        }
        for record in body.script {
            opening.script.push(self.entry(record)?);
        }
        if body.last {
            return Ok(Some(Down::Open { session, opening: Box::new(opening) }));
        }
        self.openings.insert(session, opening);
        Ok(None)
    }

    fn told(&self, kind: TellKind) -> Result<ToHost, Broken> {
        let deliver = |completion| ToHost::Deliver(Box::new(completion));
        Ok(match kind {
            TellKind::TurnTaken(_) => ToHost::TurnTaken,
            TellKind::RetryScheduled(step) => ToHost::RetryScheduled { step: StepId::from_stored(&step) },
            TellKind::SayTurnAgain(_) => ToHost::SayAgain(What::Turn),
            TellKind::SayFailureAgain(step) => ToHost::SayAgain(What::Failure(StepId::from_stored(&step))),
            TellKind::StartAttempt(AttemptBody { step, attempt }) => ToHost::StartAttempt { step: StepId::from_stored(&step), attempt },
            TellKind::StepFailed(StepFailedBody { step, attempt, failure }) => {
                let step = StepId::from_stored(&step);
                deliver(Completion::StepFailed { step, attempt, failure: read_failure(&failure)? })
            }
            TellKind::TimerFired(sleep) => deliver(Completion::TimerFired { sleep: StepId::from_stored(&sleep) }),
            TellKind::SignalReceived(SignalBody { signal, name, payload }) => {
                deliver(Completion::SignalReceived { signal, name, payload: self.payload(payload)? })
            }
            TellKind::ChildEnded(ChildEndedBody { child, output, failure }) => {
                let outcome = match failure {
                    Some(failure) => Err(read_failure(&failure)?),
                    None => Ok(self.payload(output)?),
                };
                deliver(Completion::ChildEnded { child: StepId::from_stored(&child), outcome })
            }
            TellKind::Stopped(StoppedBody { failure, undo }) => {
                let failure = failure.map(|failure| read_failure(&failure)).transpose()?;
                deliver(Completion::Stopped { failure, undo })
            }
            TellKind::Pause(_) => ToHost::Pause,
            TellKind::Resume(_) => ToHost::Resume,
            TellKind::Leave(_) => ToHost::Leave,
            TellKind::End(true) => ToHost::Drain,
            TellKind::End(false) => ToHost::Close,
            TellKind::GoOn(_) => ToHost::GoOn,
        })
    }

    /// What a worker says.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn up(&self, bytes: Bytes) -> Result<Up, Broken> {
        let body = UpBody::decode(bytes).map_err(unreadable)?;
        Ok(match body.kind.ok_or_else(unknown)? {
            UpKind::Turn(body) => Up::Report { session: body.session, says: Says::Turn(self.turn(body)?) },
            UpKind::Failed(body) => Up::Report { session: body.session, says: Says::Failed(self.failed(body)?) },
            UpKind::Heartbeat(body) => {
                let HeartbeatBody { session, epoch, step, attempt, details } = body;
                let (step, details) = (StepId::from_stored(&step), self.payload(details)?);
                Up::Report { session, says: Says::Heartbeat(RecordHeartbeat { epoch, step, attempt, details }) }
            }
            UpKind::Blocked(body) => Up::Report { session: body.session, says: Says::Blocked(blocked(body)?) },
            UpKind::Closed(session) => Up::Report { session, says: Says::Closed },
            UpKind::GivenBack(session) => Up::Report { session, says: Says::GivenBack },
            UpKind::Attempts(AttemptsBody { question, attempts }) => Up::Attempts { question, attempts: all(attempts) },
            UpKind::Room(runs) => Up::Room { runs },
            UpKind::Beat(number) => Up::Beat { number },
            UpKind::Drain(_) => Up::Drain,
            UpKind::Bye(abandons) => Up::Bye { abandons },
        })
    }

    fn turn(&self, body: TurnBody) -> Result<TakeTurn, Broken> {
        let proposal = |record| {
            let Entry { at, event, .. } = self.entry(RecordBody::decode(record).map_err(unreadable)?)?;
            Ok(Proposal { at, event })
        };
        let timer = |name: &String| TimerName::from_stored(name).ok_or_else(|| wrong("an abandoned timer"));
        Ok(TakeTurn {
            epoch: body.epoch,
            proposals: body.proposals.into_iter().map(proposal).collect::<Result<_, _>>()?,
            in_flight: body.in_flight,
            asked: body.asked,
            unanswered: all(body.unanswered),
            abandoned: body.abandoned.iter().map(timer).collect::<Result<_, _>>()?,
            asks_again: body.asks_again,
        })
    }

    fn failed(&self, body: FailedBody) -> Result<ReportFailure, Broken> {
        Ok(ReportFailure {
            epoch: body.epoch,
            step: StepId::from_stored(&body.step),
            attempt: body.attempt,
            failure: read_failure(&body.failure)?,
            policy: Policy::decode(body.policy).ok_or_else(|| wrong("a policy"))?,
            asked_at: Timestamp::from_micros(body.asked_at),
            in_flight: body.in_flight,
            asked: body.asked,
            unanswered: all(body.unanswered),
            details: body.details.map(|details| self.payload(Some(details))).transpose()?,
        })
    }

    fn entry(&self, body: RecordBody) -> Result<Entry, Broken> {
        let record = Record {
            seq: body.seq,
            epoch: body.epoch,
            kind: body.kind,
            at: Timestamp::from_micros(body.at),
            subject: body.subject,
            attempt: body.attempt,
            backoff_ms: body.backoff_ms,
            reason: body.reason,
            payload: body.payload.map(|payload| self.payload(Some(payload))).transpose()?,
            body: body.body,
        };
        Entry::try_from(&record).map_err(|unreadable| Broken(unreadable.to_string()))
    }

    fn named(&self, NamedBody { step, payload }: NamedBody) -> Result<(StepId, Payload), Broken> {
        Ok((StepId::from_stored(&step), self.payload(payload)?))
    }

    fn payload(&self, body: Option<PayloadBody>) -> Result<Payload, Broken> {
        let PayloadBody { encoding, bytes } = body.ok_or_else(|| wrong("a payload"))?;
        if bytes.len() > self.payload_bytes_max {
            return Err(Broken(format!("a payload has {} bytes, at most {} are allowed", bytes.len(), self.payload_bytes_max)));
        }
        let bytes = if bytes.len() <= COPIED_MAX { Bytes::copy_from_slice(&bytes) } else { bytes };
        Ok(Payload { encoding: Encoding::parse(&encoding).ok_or_else(|| wrong("the encoding of a payload"))?, bytes })
    }
}

fn opening(body: OpenBody) -> Result<Opening, Broken> {
    let generation = |AttemptBody { step, attempt }: AttemptBody| (StepId::from_stored(&step), attempt);
    Ok(Opening {
        run: RunId::new(&body.run).map_err(|error| Broken(error.to_string()))?,
        workflow: workflow(&body.workflow)?,
        definition: body.definition,
        epoch: body.epoch,
        generations: Generations { base: body.generation, of: body.generations.into_iter().map(generation).collect() },
        supplied: BTreeMap::new(),
        details: BTreeMap::new(),
        paused: body.paused,
        retried: body.retried_at.map(|at| (Timestamp::from_micros(at), body.retried_seq)),
        task: None,
        rolls_back: false,
        adopted: None,
        gate: None,
        unsure_until: body.unsure_until,
        script: Vec::new(),
    })
}

fn blocked(body: BlockedBody) -> Result<Wait, Broken> {
    let BlockedBody { at, expected, found, version, .. } = body;
    Ok(match body.workflow {
        Some(name) => Wait::NoWorker { workflow: workflow(&name)?, version },
        None => Wait::Mismatch { at, expected, found },
    })
}

fn workflow(name: &str) -> Result<WorkflowName, Broken> {
    WorkflowName::new(name).map_err(|error| Broken(error.to_string()))
}

fn all(bodies: Vec<AttemptBody>) -> Vec<(StepId, Attempt)> {
    bodies.into_iter().map(|body| (StepId::from_stored(&body.step), body.attempt)).collect()
}

fn read_failure(bytes: &[u8]) -> Result<Failure, Broken> {
    Failure::decode(bytes).ok_or_else(|| wrong("a failure"))
}

fn wrong(what: &str) -> Broken {
    Broken(format!("{what} is missing or wrong"))
}

fn unknown() -> Broken {
    Broken("a message is of a kind that is not known here".into())
}

fn unreadable(error: prost::DecodeError) -> Broken {
    Broken(format!("a message cannot be read: {error}"))
}
