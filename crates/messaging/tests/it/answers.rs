//! Answers that wait to be read: nobody else waits for them, and their bytes have a bound.

use crate::network::{Raw, counted, ms, node, node_by, pass, request, secs, until};
use bytes::Bytes;
use std::collections::BTreeSet;
use steadfast_messaging::envelope::{Body, Reply};
use steadfast_messaging::wire::memory::Memory;
use steadfast_messaging::{Code, Failure, Limits};
use tokio::sync::watch;

const MIB: usize = 1 << 20;

/// Asks for more than there is room for, and does not read the answers.
async fn deaf(raw: &mut Raw, name: &str, count: u64) {
    let calls: Vec<_> = (1..=count)
        .map(|number| Body::Call(request(number, &format!("{name}{number}"), "big", "")))
        .collect();
    raw.say(&calls).await;
    pass(ms(100)).await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_does_not_hold_up_another_who_waits_for_the_same_answer() {
    let network = Memory::new(1);
    let b = node(&network, "b");
    b.route("big", |_| async { Ok(vec![0; MIB]) });
    let open = watch::Sender::new(false);
    let opens = open.subscribe();
    b.route("gate", move |_| {
        let mut opens = opens.clone();
        async move {
            opens.wait_for(|open| *open).await.unwrap();
            Ok("open")
        }
    });
    let (mut slow, mut quick) = (Raw::connect(&network, "b", "raw").await, Raw::connect(&network, "b", "raw").await);
    deaf(&mut slow, "slow", 70).await;
    deaf(&mut quick, "quick", 70).await;
    for raw in [&mut slow, &mut quick] {
        raw.say(&[Body::Call(request(1000, "x", "gate", ""))]).await;
        pass(ms(10)).await;
    }
    open.send_replace(true);
    pass(ms(10)).await;
    let answer = loop {
        match quick.within(secs(1)).await {
            Some(Body::Reply(reply)) if reply.number == 1000 => break reply.payload,
            Some(_) => {}
            None => panic!("it has to wait for the other"),
        }
    };
    assert_eq!(answer, "open");
}

#[tokio::test(start_paused = true)]
async fn answers_that_wait_have_a_bound_in_bytes_and_who_is_not_told_one_asks_again() {
    let network = Memory::new(1);
    let mut limits = Limits::default();
    (limits.requests_bytes_max, limits.outgoing_bytes_max) = (10 * MIB, MIB);
    let b = node_by(&network, "b", |builder| builder.limits(limits));
    let runs = counted(&b, "big", |_| Ok(Bytes::from(vec![0; MIB])));
    let mut raw = Raw::connect(&network, "b", "raw").await;
    deaf(&mut raw, "", 200).await;
    until("all have run", || runs.get() == 200).await;
    let (mut answered, mut refused) = (BTreeSet::new(), BTreeSet::new());
    while answered.len() + refused.len() < 200 {
        let Some(Body::Reply(Reply { number, payload, error, .. })) = raw.within(secs(1)).await else { panic!("no reply") };
        match error.map(Failure::from) {
            None => assert!(payload.len() == MIB && answered.insert(number)),
            Some(failure) => {
                assert_eq!((failure.code, failure.retry_after), (Code::ResourceExhausted, Some(ms(100))));
                assert!(refused.insert(number));
            }
        }
    }
    assert!((5..=12).contains(&answered.len()), "of a MiB each: {} of them", answered.len());
    for number in refused {
        raw.say(&[Body::Call(request(number, &number.to_string(), "big", ""))]).await;
        assert_eq!(raw.reply().await.unwrap().len(), MIB);
    }
    assert_eq!((runs.get(), b.counts().requests), (200, 0), "each ran once, and none waits");
}

/// A refusal, an answer that is known from before and the taking of a tell are said though nothing else finds room.
#[tokio::test(start_paused = true)]
async fn who_reads_late_is_told_all_the_same_what_was_refused_taken_and_known() {
    let network = Memory::new(1);
    let mut limits = Limits::default();
    limits.outgoing_bytes_max = MIB;
    let b = node_by(&network, "b", |builder| builder.limits(limits));
    let runs = counted(&b, "big", |_| Ok(Bytes::from(vec![0; MIB])));
    b.route("note", |_| async { Ok("noted") });
    let mut raw = Raw::connect(&network, "b", "raw").await;
    deaf(&mut raw, "", 20).await;
    until("all have run", || runs.get() == 20).await;
    let late = [
        Body::Call(request(101, "refused", "nobody-knows-it", "")),
        Body::Tell(request(102, "taken", "note", "")),
        Body::Call(request(103, "20", "big", "")), // the same as number 20
    ];
    raw.say(&late).await;
    pass(ms(100)).await;
    let mut told = BTreeSet::new();
    while told.len() < 23 {
        let Some(Body::Reply(Reply { number, payload, error, .. })) = raw.within(secs(1)).await else { panic!("only {told:?}") };
        match number {
            101 => assert_eq!(error.map(Failure::from).map(|failure| failure.code), Some(Code::NotFound)),
            102 => assert_eq!((payload.len(), error), (0, None)),
            _ => assert_eq!((payload.len(), error), (MIB, None)),
        }
        assert!(told.insert(number));
    }
    assert_eq!(runs.get(), 20);
}
