//! Messages into bytes.

use super::bodies::*;
use super::{Down, Outbox, Up, Welcome};
use crate::host::{Opening, Says, SessionId, ToHost, What};
use bytes::Bytes;
use prost::Message;
use std::time::Duration;
use steadfast_kernel::{Attempt, Completion, Entry, Event, Failure, Payload, Record, StepId, TakeTurn, Timestamp, Wait};

/// The opening of a session is cut into parts of about this size.
const PART_BYTES: usize = 256 << 10;

/// What a message weighs beside its payloads, about.
const WEIGHT: usize = 64;

/// Appends what a server says.
pub(crate) fn put_down(down: Down, outbox: &mut Outbox) {
    let kind = match down {
        Down::Welcome(Welcome { version, payload_bytes_max, message_bytes_max, heartbeat_every, now }) => DownKind::Welcome(WelcomeBody {
            version,
            payload_bytes_max: payload_bytes_max as u64,
            message_bytes_max: message_bytes_max as u64,
            heartbeat_every_us: micros(heartbeat_every),
            now: now.as_micros(),
        }),
        Down::Open { session, opening } => return put_opening(session, *opening, outbox),
        Down::Tell { session, message, now } => DownKind::Tell(TellBody { session, kind: Some(told(message)), now_us: now.as_micros() }),
        Down::Ask { session, question } => DownKind::Ask(AskBody { session, question }),
        Down::Beat { number, now } => {
            let kind = DownKind::Beat(BeatBody { number, now: now.as_micros() });
            return outbox.put_urgent(&DownBody { kind: Some(kind) });
        }
        Down::Bye { why, for_good } => DownKind::Bye(ByeBody { why, for_good }),
    };
    outbox.put(&DownBody { kind: Some(kind) });
}

/// Appends what a worker says.
///
/// # Errors
/// How many bytes it would have, if that is more than the server takes: then nothing is appended.
pub(crate) fn put_up(up: Up, max: usize, outbox: &mut Outbox) -> Result<(), usize> {
    let kind = match up {
        Up::Report { session, says } => said(session, says),
        Up::Attempts { question, attempts } => UpKind::Attempts(AttemptsBody { question, attempts: all(&attempts) }),
        Up::Room { runs } => UpKind::Room(runs),
        Up::Beat { number } => {
            outbox.put_urgent(&UpBody { kind: Some(UpKind::Beat(number)) });
            return Ok(());
        }
        Up::Drain => UpKind::Drain(true),
        Up::Bye { abandons } => UpKind::Bye(abandons),
    };
    let body = UpBody { kind: Some(kind) };
    let length = body.encoded_len();
    if length > max {
        return Err(length);
    }
    outbox.put(&body);
    Ok(())
}

/// About how much of a queue it takes up.
pub(crate) fn weigh_down(down: &Down) -> usize {
    WEIGHT
        + match down {
            Down::Open { opening, .. } => weigh_opening(opening),
            Down::Tell { message: ToHost::Deliver(completion), .. } => match &**completion {
                Completion::SignalReceived { payload, .. } | Completion::ChildEnded { outcome: Ok(payload), .. } => payload.len(),
                _ => 0,
            },
            _ => 0,
        }
}

fn weigh_opening(opening: &Opening) -> usize {
    let payloads = opening.supplied.values().chain(opening.details.values());
    let of_payloads = payloads.map(|payload| WEIGHT + payload.len()).sum::<usize>();
    of_payloads + opening.script.iter().map(weigh_entry).sum::<usize>()
}

fn weigh_entry(entry: &Entry) -> usize {
    let payload = match &entry.event {
        Event::RunStarted { input: payload, .. }
        | Event::ChildStarted { input: payload, .. }
        | Event::StepCompleted { output: payload, .. }
        | Event::SignalReceived { payload, .. }
        | Event::ChildEnded { outcome: Ok(payload), .. }
        | Event::StepHeartbeat { details: payload, .. }
        | Event::RetryScheduled { details: Some(payload), .. } => payload.len(),
        _ => 0,
    };
    WEIGHT + payload
}

/// About how much it takes up in the server.
pub(crate) fn weigh_up(bytes: &Bytes) -> usize {
    WEIGHT + bytes.len()
}

fn put_opening(session: SessionId, opening: Opening, outbox: &mut Outbox) {
    let Opening { run, workflow, definition, epoch, generations, supplied, details, paused, retried, unsure_until, script, .. } = opening;
    let generation = |(step, number): (&StepId, &u32)| AttemptBody { step: step.to_string(), attempt: *number };
    let open = OpenBody {
        session,
        run: run.to_string(),
        workflow: workflow.to_string(),
        definition,
        epoch,
        generation: generations.base,
        generations: generations.of.iter().map(generation).collect(),
        paused,
        retried_at: retried.map(|(at, _)| at.as_micros()),
        retried_seq: retried.map_or(0, |(_, seq)| seq),
        unsure_until,
    };
    outbox.put(&DownBody { kind: Some(DownKind::Open(open)) });
    let mut parts = Parts { session, size: 0, part: MoreBody { session, ..MoreBody::default() }, outbox };
    for (step, payload) in &supplied {
        parts.make_room(payload.len());
        parts.part.supplied.push(named(step, payload));
    }
    for (step, payload) in &details {
        parts.make_room(payload.len());
        parts.part.details.push(named(step, payload));
    }
    for entry in &script {
        parts.make_room(weigh_entry(entry));
        parts.part.script.push(Record::from(entry).into());
    }
    parts.part.last = true;
    parts.flush();
}

/// The parts of an opening.
struct Parts<'a> {
    session: SessionId,
    size: usize,
    part: MoreBody,
    outbox: &'a mut Outbox,
}

impl Parts<'_> {
    fn make_room(&mut self, bytes: usize) {
        self.size += bytes + WEIGHT;
        if self.size > PART_BYTES && self.size > bytes + WEIGHT {
            self.flush();
            self.size = bytes + WEIGHT;
        }
    }

    fn flush(&mut self) {
        let next = MoreBody { session: self.session, ..MoreBody::default() };
        let part = std::mem::replace(&mut self.part, next);
        self.outbox.put(&DownBody { kind: Some(DownKind::More(part)) });
    }
}

fn told(message: ToHost) -> TellKind {
    match message {
        ToHost::TurnTaken => TellKind::TurnTaken(true),
        ToHost::RetryScheduled { step } => TellKind::RetryScheduled(step.to_string()),
        ToHost::SayAgain(What::Turn) => TellKind::SayTurnAgain(true),
        ToHost::SayAgain(What::Failure(step)) => TellKind::SayFailureAgain(step.to_string()),
        ToHost::StartAttempt { step, attempt } => TellKind::StartAttempt(AttemptBody { step: step.to_string(), attempt }),
        ToHost::Deliver(completion) => delivered(*completion),
        ToHost::Pause => TellKind::Pause(true),
        ToHost::Resume => TellKind::Resume(true),
        ToHost::Leave => TellKind::Leave(true),
        ToHost::Drain => TellKind::End(true),
        ToHost::Close => TellKind::End(false),
        ToHost::GoOn => TellKind::GoOn(true),
    }
}

fn delivered(completion: Completion) -> TellKind {
    match completion {
        Completion::StepFailed { step, attempt, failure } => {
            TellKind::StepFailed(StepFailedBody { step: step.to_string(), attempt, failure: failure.encode() })
        }
        Completion::TimerFired { sleep } => TellKind::TimerFired(sleep.to_string()),
        Completion::SignalReceived { signal, name, payload } => {
            TellKind::SignalReceived(SignalBody { signal, name, payload: Some(payload.into()) })
        }
        Completion::ChildEnded { child, outcome } => {
            let (output, failure) = match outcome {
                Ok(output) => (Some(output.into()), None),
                Err(failure) => (None, Some(failure.encode())),
            };
            TellKind::ChildEnded(ChildEndedBody { child: child.to_string(), output, failure })
        }
        Completion::Stopped { failure, undo } => TellKind::Stopped(StoppedBody { failure: failure.as_ref().map(Failure::encode), undo }),
    }
}

fn said(session: SessionId, says: Says) -> UpKind {
    match says {
        Says::Turn(TakeTurn { epoch, proposals, in_flight, asked, unanswered, abandoned, asks_again }) => {
            let record = |at: Timestamp, event| RecordBody::from(Record::from(&Entry::new(0, epoch, at, event))).encode_to_vec().into();
            UpKind::Turn(TurnBody {
                session,
                epoch,
                proposals: proposals.into_iter().map(|proposal| record(proposal.at, proposal.event)).collect(),
                in_flight,
                asked,
                unanswered: all(&unanswered),
                abandoned: abandoned.iter().map(ToString::to_string).collect(),
                asks_again,
            })
        }
        Says::Failed(report) => UpKind::Failed(FailedBody {
            session,
            epoch: report.epoch,
            step: report.step.to_string(),
            attempt: report.attempt,
            failure: report.failure.encode(),
            policy: report.policy.encode(),
            asked_at: report.asked_at.as_micros(),
            in_flight: report.in_flight,
            asked: report.asked,
            unanswered: all(&report.unanswered),
            details: report.details.map(Into::into),
        }),
        Says::Heartbeat(beat) => UpKind::Heartbeat(HeartbeatBody {
            session,
            epoch: beat.epoch,
            step: beat.step.to_string(),
            attempt: beat.attempt,
            details: Some(beat.details.into()),
        }),
        Says::Blocked(wait) => UpKind::Blocked(blocked(session, wait)),
        Says::Closed | Says::Lost => UpKind::Closed(session),
        Says::GivenBack => UpKind::GivenBack(session),
    }
}

fn blocked(session: SessionId, wait: Wait) -> BlockedBody {
    let body = BlockedBody { session, ..BlockedBody::default() };
    match wait {
        Wait::Mismatch { at, expected, found } => BlockedBody { at, expected, found, ..body },
        Wait::NoWorker { workflow, version } => BlockedBody { workflow: Some(workflow.to_string()), version, ..body },
        other => BlockedBody { expected: "code that can go on".into(), found: other.reason().into(), ..body }, // no session waits for that
    }
}

fn all(attempts: &[(StepId, Attempt)]) -> Vec<AttemptBody> {
    let body = |(step, attempt): &(StepId, Attempt)| AttemptBody { step: step.to_string(), attempt: *attempt };
    attempts.iter().map(body).collect()
}

fn named(step: &StepId, payload: &Payload) -> NamedBody {
    NamedBody { step: step.to_string(), payload: Some(payload.clone().into()) }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl From<Payload> for PayloadBody {
    fn from(payload: Payload) -> Self {
        PayloadBody { encoding: payload.encoding.as_str().into(), bytes: payload.bytes }
    }
}

impl From<Record> for RecordBody {
    fn from(record: Record) -> Self {
        RecordBody {
            seq: record.seq,
            epoch: record.epoch,
            kind: record.kind,
            at: record.at.as_micros(),
            subject: record.subject,
            attempt: record.attempt,
            backoff_ms: record.backoff_ms,
            reason: record.reason,
            payload: record.payload.map(Into::into),
            body: record.body,
        }
    }
}
