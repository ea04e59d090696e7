//! Compares the bytes of every message between server and worker with their snapshot.

use super::bodies::{DownBody, HelloBody, RecordBody, UpBody, UpKind};
use super::*;
use steadfast_test_snapshots::bytes::{Page, Schema};
use steadfast_test_snapshots::{assert_snapshot, labels};

labels!(Downs of Down {
    Down::Welcome(_) => "server: welcome",
    Down::Open { .. } => "server: open",
    Down::Tell { .. } => "server: tell",
    Down::Ask { .. } => "server: ask",
    Down::Beat { .. } => "server: beat",
    Down::Bye { .. } => "server: bye",
});

labels!(Tells of ToHost {
    ToHost::TurnTaken => "tell: turn recorded",
    ToHost::RetryScheduled { .. } => "tell: retry scheduled",
    ToHost::SayAgain(What::Turn) => "tell: report the turn again",
    ToHost::SayAgain(What::Failure(_)) => "tell: report the failure again",
    ToHost::StartAttempt { .. } => "tell: start the attempt",
    ToHost::Deliver(_) => "tell: deliver",
    ToHost::Pause => "tell: pause",
    ToHost::Resume => "tell: resume",
    ToHost::Leave => "tell: leave if idle",
    ToHost::Drain => "tell: drain",
    ToHost::GoOn => "tell: continue",
    ToHost::Close => "tell: close",
});

labels!(Deliveries of Completion {
    Completion::StepFailed { .. } => "deliver: failed step",
    Completion::TimerFired { .. } => "deliver: fired timer",
    Completion::SignalReceived { .. } => "deliver: signal",
    Completion::ChildEnded { outcome: Ok(_), .. } => "deliver: completed child",
    Completion::ChildEnded { outcome: Err(_), .. } => "deliver: failed child",
    Completion::Stopped { failure: Some(_), .. } => "deliver: end after a failure",
    Completion::Stopped { failure: None, .. } => "deliver: end",
});

labels!(Ups of Up {
    Up::Report { .. } => "worker: report",
    Up::Attempts { .. } => "worker: attempts",
    Up::Room { .. } => "worker: room",
    Up::Beat { .. } => "worker: beat",
    Up::Drain => "worker: drain",
    Up::Bye { .. } => "worker: bye",
});

labels!(Reports of Says {
    Says::Turn(_) => "report: turn",
    Says::Failed(_) => "report: failed attempt",
    Says::Heartbeat(_) => "report: heartbeat",
    Says::Blocked(_) => "report: blocked",
    Says::Closed => "report: closed",
    Says::Lost => "report: lost",
    Says::GivenBack => "report: given back",
});

const LARGE: u64 = 1 << 60;

fn charge() -> StepId {
    StepId::new("left", "charge", 2).unwrap()
}

fn checkout() -> WorkflowName {
    WorkflowName::new("team/checkout").unwrap()
}

fn at() -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_001)
}

fn denied() -> Failure {
    let mut failure = Failure::permanent("no").code(Code::NotFound).cause("because").retry_after(Duration::from_millis(7));
    (failure.attempts, failure.max_attempts) = (3, Some(5));
    failure
}

/// An event that fills every column of its record.
fn retry() -> Event {
    Event::RetryScheduled {
        step: charge(),
        attempt: 2,
        of: 5,
        delay: Duration::from_micros(2_346_500),
        due_at: at(),
        failure: denied(),
        details: Some(Payload::json("{\"rows\":7}")),
    }
}

fn full_opening() -> Opening {
    let named = |name: &str| BTreeMap::from([(charge(), Payload::json(format!("\"{name}\"")))]);
    Opening {
        run: RunId::new("order-17").unwrap(),
        workflow: checkout(),
        definition: Some("1f".repeat(32)),
        epoch: 3,
        generations: Generations { base: 4, of: BTreeMap::from([(charge(), 5)]) },
        supplied: named("supplied"),
        details: named("details"),
        paused: true,
        retried: Some((at(), LARGE)),
        task: None,
        rolls_back: false,
        adopted: None,
        gate: None,
        unsure_until: 6,
        script: vec![Entry::new(7, 3, at(), retry())],
    }
}

fn deliveries() -> Vec<Completion> {
    let child = |outcome| Completion::ChildEnded { child: charge(), outcome };
    vec![
        Completion::StepFailed { step: charge(), attempt: 3, failure: denied() },
        Completion::TimerFired { sleep: StepId::sleep("left", 1) },
        Completion::SignalReceived { signal: LARGE, name: "paid".into(), payload: Payload::json("17") },
        child(Ok(Payload::bytes(&b"\xff\0"[..]))),
        child(Err(denied())),
        Completion::Stopped { failure: Some(denied()), undo: true },
        Completion::Stopped { failure: None, undo: false },
    ]
}

fn tells() -> Vec<ToHost> {
    let mut tells = vec![
        ToHost::TurnTaken,
        ToHost::RetryScheduled { step: charge() },
        ToHost::SayAgain(What::Turn),
        ToHost::SayAgain(What::Failure(charge())),
        ToHost::StartAttempt { step: charge(), attempt: 3 },
        ToHost::Pause,
        ToHost::Resume,
        ToHost::Leave,
        ToHost::Drain,
        ToHost::Close,
        ToHost::GoOn,
    ];
    tells.extend(deliveries().into_iter().map(|completion| ToHost::Deliver(Box::new(completion))));
    tells
}

fn downs() -> Vec<Down> {
    let welcome = Welcome {
        version: VERSION,
        payload_bytes_max: 1 << 20,
        message_bytes_max: 1 << 24,
        heartbeat_every: Duration::from_micros(1_500_001),
        now: at(),
    };
    let mut downs = vec![
        Down::Welcome(welcome),
        Down::Open { session: LARGE, opening: Box::new(full_opening()) },
        Down::Ask { session: LARGE, question: 9 },
        Down::Beat { number: LARGE, now: at() },
        Down::Bye { why: "another worker has this name".into(), for_good: true },
    ];
    downs.extend(tells().into_iter().map(|message| Down::Tell { session: LARGE, message, now: at() }));
    downs
}

fn turn() -> TakeTurn {
    TakeTurn {
        epoch: 3,
        proposals: vec![Proposal { at: at(), event: retry() }],
        in_flight: 4,
        asked: 5,
        unanswered: vec![(charge(), 6)],
        abandoned: vec![TimerName::Retry(charge()), TimerName::Sleep(StepId::sleep("left", 1))],
        asks_again: true,
    }
}

fn report_failure() -> ReportFailure {
    ReportFailure {
        epoch: 3,
        step: charge(),
        attempt: 4,
        failure: denied(),
        policy: Policy::constant(Duration::from_secs(3)),
        asked_at: at(),
        in_flight: 5,
        asked: 6,
        unanswered: vec![(charge(), 7)],
        details: Some(Payload::json("8")),
    }
}

fn reports() -> Vec<Says> {
    vec![
        Says::Turn(turn()),
        Says::Failed(report_failure()),
        Says::Heartbeat(RecordHeartbeat { epoch: 3, step: charge(), attempt: 4, details: Payload::json("5") }),
        Says::Blocked(Wait::Mismatch { at: LARGE, expected: "STEP_STARTED".into(), found: "a sleep".into() }),
        Says::Blocked(Wait::NoWorker { workflow: checkout(), version: Some("1f".repeat(32)) }),
        Says::Closed,
        Says::Lost,
        Says::GivenBack,
    ]
}

fn ups() -> Vec<Up> {
    let mut ups = vec![
        Up::Attempts { question: LARGE, attempts: vec![(charge(), 3)] },
        Up::Room { runs: 7 },
        Up::Beat { number: LARGE },
        Up::Drain,
        Up::Bye { abandons: true },
        Up::Bye { abandons: false },
    ];
    ups.extend(reports().into_iter().map(|says| Up::Report { session: LARGE, says }));
    ups
}

fn write(label: &str, outbox: Outbox, schema: &mut Schema, page: &mut Page) {
    page.form(label);
    heard(vec![all(outbox).freeze()]).iter().for_each(|message| page.protobuf(message, schema));
}

fn write_downs(page: &mut Page) {
    let mut schema = Schema::of(|bytes| DownBody::decode(bytes).is_ok());
    for down in downs() {
        page.cover(Downs::of(&down));
        let label = match &down {
            Down::Tell { message: ToHost::Deliver(completion), .. } => Deliveries::of(completion),
            Down::Tell { message, .. } => Tells::of(message),
            down => Downs::of(down),
        };
        page.cover(label);
        let mut outbox = Outbox::default();
        put_down(down, &mut outbox);
        write(label, outbox, &mut schema, page);
    }
    page.cover(Tells::of(&ToHost::Deliver(Box::new(deliveries().remove(0)))));
    schema.assert_shown();
}

fn write_ups(page: &mut Page) {
    let mut schema = Schema::of(|bytes| UpBody::decode(bytes).is_ok());
    for up in ups() {
        page.cover(Ups::of(&up));
        let label = match &up {
            Up::Report { says, .. } => Reports::of(says),
            up => Ups::of(up),
        };
        page.cover(label);
        let mut outbox = Outbox::default();
        put_up(up, usize::MAX, &mut outbox).unwrap();
        write(label, outbox, &mut schema, page);
    }
    schema.assert_shown();
}

/// A proposal stands in a turn as bytes that are decoded alone.
fn write_proposal(page: &mut Page) {
    let mut outbox = Outbox::default();
    put_up(Up::Report { session: 1, says: Says::Turn(turn()) }, usize::MAX, &mut outbox).unwrap();
    let message = heard(vec![all(outbox).freeze()]).remove(0);
    let Some(UpKind::Turn(turn)) = UpBody::decode(message).unwrap().kind else { panic!("no turn") };
    page.form("proposal in a turn");
    page.protobuf(&turn.proposals[0], &mut Schema::of(|bytes| RecordBody::decode(bytes).is_ok()));
}

fn write_hello(page: &mut Page) {
    let offer = Offer {
        workflow: checkout(),
        recovery: Recovery::Manual,
        slots: Some(3),
        versions: Some(["1f".repeat(32), "2e".repeat(32)].into()),
    };
    let hello = Hello {
        version: VERSION,
        name: "worker-1".into(),
        process: u64::MAX - 1,
        offers: vec![offer, Offer::new(checkout())],
        sessions_max: 1_000,
        heartbeat: Duration::from_micros(10_000_001),
    };
    let mut schema = Schema::of(|bytes| HelloBody::decode(bytes).is_ok());
    page.form("worker: hello");
    page.protobuf(&hello.encode(), &mut schema);
    schema.assert_shown();
}

/// The heads of frames: of a whole message, and of the parts of a long one.
fn write_frames(page: &mut Page) {
    let mut outbox = Outbox::default();
    put_up(Up::Room { runs: 7 }, usize::MAX, &mut outbox).unwrap();
    page.form("frame of a whole message");
    page.hex(&all(outbox));
    let details = Payload::json(vec![b'7'; 40 << 10]);
    let says = Says::Heartbeat(RecordHeartbeat { epoch: 3, step: charge(), attempt: 4, details });
    let mut outbox = Outbox::default();
    put_up(Up::Report { session: 1, says }, usize::MAX, &mut outbox).unwrap();
    page.form("frames of a long message, the first eight bytes of each");
    while let Some(frame) = outbox.take() {
        page.value("frame of bytes", frame.len());
        page.hex(&frame[..8]);
    }
}

#[test]
fn worker_messages_match_snapshot() {
    let mut page = Page::default();
    page.form("versions of the protocol");
    page.value("newest", VERSION);
    page.value("oldest", VERSION_MIN);
    write_hello(&mut page);
    write_downs(&mut page);
    write_ups(&mut page);
    write_proposal(&mut page);
    write_frames(&mut page);
    for labels in [Downs::ALL, Tells::ALL, Deliveries::ALL, Ups::ALL, Reports::ALL] {
        page.assert_covers(labels);
    }
    assert_snapshot("bytes/worker-messages.txt", page.text());
}
