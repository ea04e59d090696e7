//! Every message survives the way; what is broken is named and never panics.

mod snapshot;

use super::*;
use crate::host::What;
use bytes::{Bytes, BytesMut};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use prost::Message;
use std::collections::BTreeMap;
use steadfast_kernel::random::Seed;
use steadfast_kernel::run::Generations;
use steadfast_kernel::{
    Class, Code, Completion, Entry, Event, Failure, Jitter, Payload, Policy, Proposal, RecordHeartbeat, Recovery, ReportFailure, RunId,
    RunOptions, TakeTurn, TimerName, Wait, WorkflowName,
};

fn step() -> impl Strategy<Value = StepId> {
    ("[a-z]{0,3}", "[a-z]{1,4}", 1_u32..9).prop_map(|(path, name, nth)| StepId::new(&path, &name, nth as _).unwrap())
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp::from_micros)
}

/// Sometimes larger than what is copied.
fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![vec(any::<u8>(), 0..40), vec(any::<u8>(), 5_000..5_010)].prop_map(Payload::json)
}

fn failure() -> impl Strategy<Value = Failure> {
    (0..Code::ALL.len(), ".{0,20}", vec(".{0,9}", 0..3), option::of(0..u64::from(u32::MAX))).prop_map(|(code, message, causes, after)| {
        let mut failure = causes.iter().fold(Failure::new(Code::ALL[code], message), |failure, cause| failure.cause(cause));
        failure.retry_after = after.map(Duration::from_micros);
        failure
    })
}

fn outcome() -> impl Strategy<Value = Result<Payload, Failure>> {
    prop_oneof![payload().prop_map(Ok), failure().prop_map(Err)]
}

fn policy() -> impl Strategy<Value = Policy> {
    let span = || (0_u64..1 << 40).prop_map(Duration::from_nanos);
    (0..4, span(), 1_u32..9, option::of(span()), option::of(span())).prop_map(|(kind, base, max, timeout, deadline)| {
        let mut policy = match kind {
            0 => Policy::exponential(base).jitter(Jitter::Proportional(7)).on(Class::Permanent, Policy::once()),
            1 => Policy::linear(base).jitter(Jitter::Full).on(Code::NotFound, Policy::linear(base)),
            2 => Policy::constant(base),
            _ => Policy::schedule(vec![base, base / 2]).jitter(Jitter::Equal),
        };
        policy = policy.max_attempts(max);
        policy = timeout.into_iter().fold(policy, Policy::attempt_timeout);
        deadline.into_iter().fold(policy, Policy::deadline)
    })
}

/// What code proposes and journals hold.
fn event() -> impl Strategy<Value = Event> {
    let number = || 1_u32..1000;
    prop_oneof![
        (payload(), any::<[u8; 32]>()).prop_map(|(input, seed)| Event::RunStarted {
            workflow: WorkflowName::new("checkout").unwrap(),
            input,
            seed: Seed(seed),
            deadline_at: None,
            options: RunOptions::default(),
        }),
        (step(), number()).prop_map(|(step, attempt)| Event::StepStarted { step, attempt }),
        (step(), number(), payload(), any::<bool>()).prop_map(|(step, attempt, output, undoable)| Event::StepCompleted {
            step,
            attempt,
            output,
            undoable
        }),
        (step(), number(), failure()).prop_map(|(step, attempt, failure)| Event::StepFailed { step, attempt, failure }),
        (step(), time()).prop_map(|(sleep, due_at)| Event::TimerSet { sleep, due_at }),
        step().prop_map(|sleep| Event::TimerFired { sleep }),
        (step(), any::<u64>()).prop_map(|(wait, signal)| Event::SignalTaken { wait, signal }),
        (step(), outcome()).prop_map(|(child, outcome)| Event::ChildEnded { child, outcome }),
        (step(), ".{0,30}").prop_map(|(note, text)| Event::ProgressNoted { note, text }),
        option::of(failure()).prop_map(|failure| Event::RunCompensating { failure }),
        (step(), number()).prop_map(|(step, attempt)| Event::UndoCompleted { step, attempt }),
        payload().prop_map(|output| Event::RunCompleted { output }),
        failure().prop_map(|failure| Event::RunFailed { failure }),
        payload().prop_map(|input| Event::RunContinued { input }),
        Just(Event::RunCancelled),
    ]
}

fn told() -> impl Strategy<Value = ToHost> {
    let deliver = |completion| ToHost::Deliver(Box::new(completion));
    prop_oneof![
        Just(ToHost::TurnTaken),
        step().prop_map(|step| ToHost::RetryScheduled { step }),
        Just(ToHost::SayAgain(What::Turn)),
        step().prop_map(|step| ToHost::SayAgain(What::Failure(step))),
        (step(), any::<u32>()).prop_map(|(step, attempt)| ToHost::StartAttempt { step, attempt }),
        (step(), any::<u32>(), failure()).prop_map(move |(step, attempt, failure)| deliver(Completion::StepFailed {
            step,
            attempt,
            failure
        })),
        step().prop_map(move |sleep| deliver(Completion::TimerFired { sleep })),
        (any::<u64>(), ".{0,9}", payload()).prop_map(move |(signal, name, payload)| deliver(Completion::SignalReceived {
            signal,
            name,
            payload
        })),
        (step(), outcome()).prop_map(move |(child, outcome)| deliver(Completion::ChildEnded { child, outcome })),
        (option::of(failure()), any::<bool>()).prop_map(move |(failure, undo)| deliver(Completion::Stopped { failure, undo })),
        Just(ToHost::Pause),
        Just(ToHost::Resume),
        Just(ToHost::Leave),
        Just(ToHost::Drain),
        Just(ToHost::Close),
    ]
}

fn attempts() -> impl Strategy<Value = Vec<(StepId, Attempt)>> {
    vec((step(), any::<u32>()), 0..4)
}

fn says() -> impl Strategy<Value = Says> {
    let timer = prop_oneof![step().prop_map(TimerName::Retry), step().prop_map(TimerName::Sleep)];
    let proposals = vec((time(), event()).prop_map(|(at, event)| Proposal { at, event }), 0..4);
    let counts = || (any::<u32>(), any::<u32>(), any::<u32>());
    prop_oneof![
        ((counts(), any::<bool>()), proposals, attempts(), vec(timer, 0..3)).prop_map(
            |(((epoch, in_flight, asked), asks_again), proposals, unanswered, abandoned)| {
                Says::Turn(TakeTurn { epoch, proposals, in_flight, asked, unanswered, abandoned, asks_again })
            }
        ),
        (counts(), step(), any::<u32>(), failure(), policy(), time(), attempts(), option::of(payload())).prop_map(
            |((epoch, in_flight, asked), step, attempt, failure, policy, asked_at, unanswered, details)| {
                Says::Failed(ReportFailure { epoch, step, attempt, failure, policy, asked_at, in_flight, asked, unanswered, details })
            }
        ),
        (any::<u32>(), step(), any::<u32>(), payload()).prop_map(|(epoch, step, attempt, details)| Says::Heartbeat(RecordHeartbeat {
            epoch,
            step,
            attempt,
            details
        })),
        (any::<u64>(), ".{0,9}", ".{0,9}").prop_map(|(at, expected, found)| Says::Blocked(Wait::Mismatch { at, expected, found })),
        option::of("[0-9a-f]{4}")
            .prop_map(|version| Says::Blocked(Wait::NoWorker { workflow: WorkflowName::new("checkout").unwrap(), version })),
        Just(Says::Closed),
        Just(Says::GivenBack),
    ]
}

fn opening() -> impl Strategy<Value = Opening> {
    let named = || btree_map(step(), payload(), 0..3);
    let generations = (any::<u32>(), btree_map(step(), any::<u32>(), 0..3)).prop_map(|(base, of)| Generations { base, of });
    let entry = (any::<u64>(), any::<u32>(), time(), option::of(any::<u32>()), event())
        .prop_map(|(seq, epoch, at, in_flight, event)| Entry { in_flight, ..Entry::new(seq, epoch, at, event) });
    let retried = option::of((time(), any::<u64>()));
    (option::of("[0-9a-f]{4}"), any::<u32>(), generations, named(), named(), any::<bool>(), retried, any::<u64>(), vec(entry, 0..20))
        .prop_map(|(definition, epoch, generations, supplied, details, paused, retried, unsure_until, script)| Opening {
            run: RunId::new("parcel-7").unwrap(),
            workflow: WorkflowName::new("checkout").unwrap(),
            definition,
            epoch,
            generations,
            supplied,
            details,
            paused,
            retried,
            task: None,
            rolls_back: false,
            adopted: None,
            gate: None,
            unsure_until,
            script,
        })
}

/// All that waits.
fn all(mut outbox: Outbox) -> BytesMut {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = outbox.take() {
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

/// The bytes of what a server says, cut into chunks of that size.
fn cut(bytes: BytesMut, size: usize) -> Vec<Bytes> {
    let bytes = bytes.freeze();
    (0..bytes.len()).step_by(size).map(|from| bytes.slice(from..bytes.len().min(from + size))).collect()
}

/// Everything that comes out of those chunks.
fn heard(chunks: Vec<Bytes>) -> Vec<Bytes> {
    let mut frames = Frames::new(1 << 30);
    let mut heard = Vec::new();
    for chunk in chunks {
        frames.add(chunk);
        while let Some(frame) = frames.next().unwrap() {
            heard.push(frame);
        }
    }
    heard
}

fn down_again(down: Down, size: usize) -> Vec<Down> {
    let mut buffer = Outbox::default();
    put_down(down, &mut buffer);
    let mut reader = Reader::new(1 << 20);
    heard(cut(all(buffer), size)).into_iter().filter_map(|frame| reader.down(frame).unwrap()).collect()
}

fn up_again(up: Up, size: usize) -> Up {
    let mut buffer = Outbox::default();
    put_up(up, usize::MAX, &mut buffer).unwrap();
    let mut frames = heard(cut(all(buffer), size));
    assert_eq!(frames.len(), 1);
    Reader::new(1 << 20).up(frames.remove(0)).unwrap()
}

proptest! {
    #[test]
    fn what_a_session_is_told_survives_the_way(session in any::<u64>(), message in told(), size in 1_usize..9000) {
        let again = down_again(Down::Tell { session, message: message.clone(), now: Timestamp::from_micros(session as i64) }, size);
        let [Down::Tell { session: of, message: told, now }] = &again[..] else { panic!("{again:?}") };
        prop_assert_eq!((*of, told, *now), (session, &message, Timestamp::from_micros(session as i64)));
    }

    #[test]
    fn what_a_session_says_survives_the_way(session in any::<u64>(), says in says(), size in 1_usize..9000) {
        let Up::Report { session: of, says: said } = up_again(Up::Report { session, says: says.clone() }, size) else { panic!() };
        prop_assert_eq!((of, said), (session, says));
    }

    #[test]
    fn what_a_session_is_opened_with_survives_the_way(opening in opening(), size in 100_usize..90_000) {
        let again = down_again(Down::Open { session: 7, opening: Box::new(opening.clone()) }, size);
        let [Down::Open { session: 7, opening: got }] = &again[..] else { panic!("{again:?}") };
        prop_assert_eq!(&got.script, &opening.script);
        prop_assert_eq!((&got.supplied, &got.details), (&opening.supplied, &opening.details));
        prop_assert_eq!((&got.run, &got.workflow, &got.definition), (&opening.run, &opening.workflow, &opening.definition));
        prop_assert_eq!((got.epoch, &got.generations, got.paused), (opening.epoch, &opening.generations, opening.paused));
        prop_assert_eq!((got.retried, got.unsure_until), (opening.retried, opening.unsure_until));
    }

    #[test]
    fn the_rest_survives_the_way(number in any::<u64>(), at in time(), why in ".{0,20}", all in attempts(), flag in any::<bool>()) {
        let welcome = Welcome {
            version: VERSION_MIN + u32::from(flag),
            payload_bytes_max: number as usize,
            message_bytes_max: 7,
            heartbeat_every: Duration::from_micros(number),
            now: at,
        };
        assert!(matches!(&down_again(Down::Welcome(welcome), 3)[..], [Down::Welcome(again)] if *again == welcome));
        let [Down::Ask { session: 3, question }] = down_again(Down::Ask { session: 3, question: number }, 4)[..] else { panic!() };
        prop_assert_eq!(question, number);
        let [Down::Beat { number: beat, now }] = down_again(Down::Beat { number, now: at }, 4)[..] else { panic!() };
        prop_assert_eq!((beat, now), (number, at));
        let again = down_again(Down::Bye { why: why.clone(), for_good: flag }, 4);
        assert!(matches!(&again[..], [Down::Bye { why: said, for_good }] if *said == why && *for_good == flag));
        let Up::Attempts { question, attempts } = up_again(Up::Attempts { question: number, attempts: all.clone() }, 5) else { panic!() };
        prop_assert_eq!((question, attempts), (number, all));
        assert!(matches!(up_again(Up::Beat { number }, 2), Up::Beat { number: again } if again == number));
        let runs = number as u32;
        assert!(matches!(up_again(Up::Room { runs }, 2), Up::Room { runs: again } if again == runs));
        assert!(matches!(up_again(Up::Drain, 1), Up::Drain) && matches!(up_again(Up::Bye { abandons: flag }, 1), Up::Bye { abandons } if abandons == flag));
    }

    #[test]
    fn a_hello_survives_the_way(name in "[a-z0-9 -]{1,20}", slots in option::of(1_u32..9), manual in any::<bool>(), versions in option::of(btree_set("[0-9a-f]{4}", 0..3))) {
        let recovery = if manual { Recovery::Manual } else { Recovery::Automatic };
        let offer = Offer { recovery, slots, versions, ..Offer::new(WorkflowName::new("checkout").unwrap()) };
        let hello = Hello { version: VERSION_MIN + u32::from(manual), name, process: u64::MAX, offers: vec![offer], sessions_max: 3, heartbeat: Duration::from_secs(9) };
        prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
    }

    #[test]
    fn bytes_that_mean_nothing_are_a_failure_and_no_panic(bytes in vec(any::<u8>(), 0..400), size in 1_usize..400) {
        let _whatever = (Hello::decode(&bytes), Policy::decode(bytes.clone().into()));
        let mut reader = Reader::new(1 << 10);
        let _whatever = (reader.down(bytes.clone().into()), reader.up(bytes.clone().into()));
        let mut frames = Frames::new(100);
        for chunk in cut(BytesMut::from(&bytes[..]), size) {
            frames.add(chunk);
            while let Ok(Some(frame)) = frames.next() {
                prop_assert!(frame.len() <= 100);
                let _whatever = (reader.down(frame.clone()), reader.up(frame));
            }
        }
    }

    #[test]
    fn a_message_with_a_broken_byte_is_a_failure_and_no_panic(says in says(), message in told(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let (mut up, mut down) = (Outbox::default(), Outbox::default());
        put_up(Up::Report { session: 7, says }, usize::MAX, &mut up).unwrap();
        put_down(Down::Tell { session: 7, message, now: Timestamp::EPOCH }, &mut down);
        let mut reader = Reader::new(1 << 20);
        for mut bytes in [all(up), all(down)] {
            let index = at.index(bytes.len());
            bytes[index] = to;
            let mut frames = Frames::new(1 << 20);
            frames.add(bytes.freeze());
            while let Ok(Some(frame)) = frames.next() {
                let _whatever = (reader.down(frame.clone()), reader.up(frame));
            }
        }
    }
}

#[test]
fn a_journal_is_longer_than_a_message() {
    let step = StepId::new("", "load", 1).unwrap();
    let output = Payload::json(vec![b'7'; 200 << 10]);
    let entry = |seq| {
        Entry::new(
            seq,
            1,
            Timestamp::EPOCH,
            Event::StepCompleted { step: step.clone(), attempt: 1, output: output.clone(), undoable: false },
        )
    };
    let opening = Opening {
        run: RunId::new("parcel-7").unwrap(),
        workflow: WorkflowName::new("checkout").unwrap(),
        definition: None,
        epoch: 1,
        generations: Generations::default(),
        supplied: BTreeMap::new(),
        details: BTreeMap::new(),
        paused: false,
        retried: None,
        task: None,
        rolls_back: false,
        adopted: None,
        gate: None,
        unsure_until: 3,
        script: (1..=9).map(entry).collect(),
    };
    let mut buffer = Outbox::default();
    put_down(Down::Open { session: 1, opening: Box::new(opening.clone()) }, &mut buffer);
    let frames = heard(vec![all(buffer).freeze()]);
    assert!(frames.len() == 10 && frames.iter().all(|frame| frame.len() < 300 << 10), "{}", frames.len());
    let mut reader = Reader::new(1 << 20);
    let whole: Vec<_> = frames.into_iter().filter_map(|frame| reader.down(frame).unwrap()).collect();
    assert!(matches!(&whole[..], [Down::Open { opening: again, .. }] if again.script == opening.script));
}

#[test]
fn a_beat_passes_in_the_middle_of_a_long_message_and_both_arrive() {
    let details = Payload::json(vec![b'7'; 200 << 10]);
    let says = Says::Heartbeat(RecordHeartbeat { epoch: 1, step: StepId::sleep("", 1), attempt: 1, details });
    let (mut outbox, mut frames, reader) = (Outbox::default(), Frames::new(1 << 20), Reader::new(1 << 20));
    put_up(Up::Report { session: 1, says: says.clone() }, usize::MAX, &mut outbox).unwrap();
    for _ in 0..3 {
        frames.add(outbox.take().unwrap());
        assert_eq!(frames.next(), Ok(None), "more of it follows");
    }
    put_up(Up::Beat { number: 9 }, usize::MAX, &mut outbox).unwrap();
    let chunk = outbox.take().unwrap();
    assert!(chunk.len() < 10, "nothing else is in it");
    frames.add(chunk);
    assert!(matches!(reader.up(frames.next().unwrap().unwrap()), Ok(Up::Beat { number: 9 })));
    assert_eq!(frames.next(), Ok(None));
    let mut longest = 0;
    while let Some(chunk) = outbox.take() {
        longest = longest.max(chunk.len());
        frames.add(chunk);
    }
    assert!(matches!(reader.up(frames.next().unwrap().unwrap()), Ok(Up::Report { session: 1, says: again }) if again == says));
    assert!(longest < 64 << 10, "{longest}");
}

#[test]
fn parts_of_a_message_that_is_too_long_are_not_kept() {
    let mut frames = Frames::new(100);
    for _ in 0..4 {
        frames.add(Bytes::from_static(&[20 << 2 | 1])); // 20 bytes, and more follow
        frames.add(Bytes::from_static(&[0; 20]));
        assert_eq!(frames.next(), Ok(None));
    }
    frames.add(Bytes::from_static(&[30 << 2 | 2]));
    assert!(frames.next().unwrap_err().to_string().contains("at most 100"));
    let mut frames = Frames::new(100);
    frames.add(Bytes::from_static(&[3]));
    assert!(frames.next().is_err(), "there is no such kind");
}

#[test]
fn fields_of_a_later_version_are_passed_over() {
    let mut buffer = Outbox::default();
    put_up(Up::Beat { number: 9 }, usize::MAX, &mut buffer).unwrap();
    let mut frame = heard(vec![all(buffer).freeze()]).remove(0).to_vec();
    frame.extend([0xa2, 0x06, 3, b'n', b'e', b'w']); // field 100
    assert!(matches!(Reader::new(9).up(frame.into()), Ok(Up::Beat { number: 9 })));
}

/// A turn of version 3, which has no such field: epoch 1, and nothing else.
#[test]
fn a_turn_of_an_older_worker_does_not_ask_again() {
    let Ok(Up::Report { says: Says::Turn(turn), .. }) = Reader::new(9).up(Bytes::from_static(&[0x0a, 2, 0x10, 1])) else {
        panic!("no turn")
    };
    assert_eq!((turn.epoch, turn.asks_again), (1, false));
}

#[test]
fn a_turn_of_very_many_empty_records_takes_no_room_for_them() {
    const RECORDS: usize = 1 << 20;
    let turn: Bytes = [0x1a, 0].repeat(RECORDS).into();
    let body = bodies::TurnBody::decode(turn.clone()).unwrap();
    let each = std::mem::size_of_val(&body.proposals[0]);
    assert!(body.proposals.len() == RECORDS && body.proposals.capacity() * each <= 16 * turn.len(), "{each} bytes each");
    let message = bodies::UpBody { kind: Some(bodies::UpKind::Turn(body)) }.encode_to_vec();
    assert!(Reader::new(9).up(message.into()).is_err(), "and the first of them is none");
}

#[test]
fn what_is_too_long_is_named() {
    let mut frames = Frames::new(10);
    frames.add(Bytes::from_static(&[11 << 2]));
    assert!(frames.next().unwrap_err().to_string().contains("at most 10"));
    let mut frames = Frames::new(usize::MAX);
    frames.add(Bytes::from_static(&[0xff; 5]));
    assert!(frames.next().is_err(), "no length is that long");
    let mut buffer = Outbox::default();
    let (says, mut small) = (
        Says::Heartbeat(RecordHeartbeat { epoch: 1, step: StepId::sleep("", 1), attempt: 1, details: Payload::json("12345") }),
        Reader::new(4),
    );
    put_up(Up::Report { session: 1, says: says.clone() }, usize::MAX, &mut buffer).unwrap();
    let frame = heard(vec![all(buffer).freeze()]).remove(0);
    assert!(small.up(frame.clone()).unwrap_err().to_string().contains("at most 4"));
    assert!(small.down(frame).is_err());
    let mut nothing = Outbox::default();
    assert!(put_up(Up::Report { session: 1, says }, 9, &mut nothing).is_err() && nothing.is_empty());
}

#[test]
fn a_hello_that_cannot_be_is_refused_with_a_reason() {
    let offer = Offer::new(WorkflowName::new("checkout").unwrap());
    let good =
        Hello { version: VERSION, name: "w".into(), process: 0, offers: vec![offer], sessions_max: 1, heartbeat: Duration::from_secs(1) };
    let versions = |versions| vec![Offer { versions: Some(versions), ..good.offers[0].clone() }];
    let bad = [
        Hello { name: String::new(), ..good.clone() },
        Hello { name: "a\nb".into(), ..good.clone() },
        Hello { offers: Vec::new(), ..good.clone() },
        Hello { offers: vec![good.offers[0].clone(); 10_001], ..good.clone() },
        Hello { offers: versions((0..100_001).map(|number| number.to_string()).collect()), ..good.clone() },
        Hello { offers: versions(["7".repeat(129)].into()), ..good.clone() },
        Hello { sessions_max: 0, ..good.clone() },
        Hello { heartbeat: Duration::ZERO, ..good.clone() },
        Hello { heartbeat: Duration::MAX, ..good.clone() },
    ];
    for hello in bad {
        assert!(hello.check().is_err() && Hello::decode(&hello.encode()).is_err(), "{hello:?}");
    }
    let mut other_version = good.encode().to_vec();
    other_version[1] = 9;
    assert!(Hello::decode(&other_version).unwrap_err().to_string().contains("version 9"));
    assert!(BTreeMap::from([(1, good.check())])[&1].is_ok());
}
