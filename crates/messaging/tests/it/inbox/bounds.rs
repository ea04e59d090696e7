//! Memory has a bound, whatever comes.

use crate::inbox::start;
use bytes::Bytes;
use std::time::Duration;
use steadfast_messaging::inbox::{Counts, Finish, Inbox, Kind, Settings, Verdict};

#[test]
fn a_hundred_thousand_duplicates_of_few_ids_take_the_memory_of_few() {
    let (mut inbox, now) = (Inbox::new(Settings::default()), start());
    let mut ran = 0;
    for message in 0..100_000_u32 {
        let id = format!("id-{}", message % 10);
        match inbox.check("alice", &id, Kind::Call, 1, message, now + Duration::from_micros(message.into())) {
            Verdict::New(ticket, _) => {
                ran += 1;
                let told: Vec<u32> = inbox.finish(ticket, Finish::of(&Ok(Bytes::from_static(b"done"))), now).into_iter().collect();
                assert_eq!(told, [message]);
            }
            Verdict::Known(outcome, waiter) => assert_eq!((&*outcome.unwrap(), waiter), (&b"done"[..], message)),
            other => panic!("{id}: {other:?}"),
        }
    }
    assert_eq!(ran, 10);
    assert_eq!(inbox.counts(), Counts { running: 0, finished: 10, callers: 1, bytes: 5 + 10 * (4 + 4), forgotten_early: 0 });
}

#[test]
fn duplicates_of_a_call_that_runs_take_the_memory_of_those_who_may_wait() {
    let (mut inbox, now) = (Inbox::new(Settings::default()), start());
    let Verdict::New(ticket, _) = inbox.check("alice", "a", Kind::Call, 1, 0, now) else { panic!("it is new") };
    let waiting = (1..100_000)
        .filter(|waiter| matches!(inbox.check("alice", "a", Kind::Call, 1, *waiter, now), Verdict::Waits(_)))
        .count();
    assert_eq!(waiting, 15);
    assert_eq!(inbox.finish(ticket, Finish::Forget, now).into_iter().count(), 16);
}

#[test]
fn a_million_different_ids_take_the_memory_of_the_bound() {
    let settings = Settings { entries_max: 1000, bytes_max: 20_000, ..Settings::default() };
    let (mut inbox, now) = (Inbox::new(settings), start());
    for message in 0..1_000_000_u32 {
        let (caller, id) = (format!("caller-{}", message / 7 % 5000), message.to_string());
        let Verdict::New(ticket, _) = inbox.check(&caller, &id, Kind::Call, 1, (), now) else { panic!("{id} is new") };
        let _waiters = inbox.finish(ticket, Finish::Keep(Ok(Bytes::from_static(b"0123456789"))), now);
        let counts = inbox.counts();
        assert!(counts.finished <= 1000 && counts.bytes <= 20_000 && counts.callers <= 1000, "{counts:?}");
    }
    let counts = inbox.counts();
    assert_eq!(counts.forgotten_early, 1_000_000 - counts.finished as u64);
    assert!(counts.finished > 900, "{counts:?}");
}

#[test]
fn a_million_ids_that_come_one_after_another_in_time_are_forgotten_in_time() {
    let (mut inbox, start) = (Inbox::new(Settings::default()), start());
    for message in 0..1_000_000_u64 {
        let (now, id) = (start + Duration::from_millis(message * 120), message.to_string());
        let Verdict::New(ticket, _) = inbox.check("alice", &id, Kind::Tell, 1, (), now) else { panic!("{id} is new") };
        let _waiters = inbox.finish(ticket, Finish::Keep(Ok(Bytes::new())), now);
    }
    let counts = inbox.counts();
    assert_eq!((counts.finished, counts.forgotten_early), (1000, 0), "as many as come in a window");
}

/// Runs a call with an answer of that many bytes.
fn run(inbox: &mut Inbox<()>, caller: &str, id: u32, bytes: usize) {
    let Verdict::New(ticket, _) = inbox.check(caller, &id.to_string(), Kind::Call, 1, (), start()) else { panic!("{caller} {id} is new") };
    let _waiters = inbox.finish(ticket, Finish::Keep(Ok(Bytes::from(vec![0; bytes]))), start());
}

/// How many of the first so many of that caller are known.
fn known(inbox: &mut Inbox<()>, caller: &str, count: u32) -> usize {
    let mut is_known = |id: &u32| matches!(inbox.check(caller, &id.to_string(), Kind::Call, 1, (), start()), Verdict::Known(..));
    (0..count).filter(|id| is_known(id)).count()
}

#[test]
fn a_caller_who_has_much_forgets_its_own_and_not_those_of_others() {
    // By their number, and by their bytes.
    for (settings, bytes) in
        [(Settings { entries_max: 1000, ..Settings::default() }, 10), (Settings { bytes_max: 100_000, ..Settings::default() }, 1000)]
    {
        let mut inbox = Inbox::new(settings);
        (0..40).for_each(|id| run(&mut inbox, "before", id, 10));
        for id in 0..10_000 {
            run(&mut inbox, "greedy", id, bytes);
            if id % 200 == 0 {
                run(&mut inbox, "meanwhile", id / 200, 10);
            }
        }
        assert_eq!((known(&mut inbox, "before", 40), known(&mut inbox, "meanwhile", 50)), (40, 50));
        assert!(inbox.counts().forgotten_early > 8000);
    }
}

#[test]
fn a_long_row_of_those_who_have_little_is_not_walked_at_once() {
    let mut inbox = Inbox::new(Settings { entries_max: 10_000, ..Settings::default() });
    (0..2000).for_each(|id| run(&mut inbox, "before", id, 10));
    (0..8000).for_each(|id| run(&mut inbox, "greedy", id, 10));
    run(&mut inbox, "greedy", 8000, 10);
    assert_eq!((inbox.counts().forgotten_early, inbox.counts().finished), (1, 10_000));
    (8001..20_000).for_each(|id| run(&mut inbox, "greedy", id, 10));
    let known = known(&mut inbox, "before", 2000);
    assert!((1960..2000).contains(&known), "one in 65 is the price: {known}");
}
