//! Checks that concurrent calls are linearizable: every answer fits one serial order.

use super::Harness;
use super::fixture::{Writer, all_timers, arm, changes, disarm, event, events, row, rows, run, seqs, timer};
use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use steadfast_kernel::TimerName;
use steadfast_store::{Batch, Error, Head, Store};

/// Every shard has a line of its own; one that loses its claim holds up nobody else.
pub async fn writers_of_shards_do_not_disturb_each_other(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writers = vec![];
    for shard in 0..8 {
        writers.push(Writer::claim(&store, shard).await);
    }
    store.claim(3).await.unwrap();
    let mut outcomes = vec![];
    for seq in 1..=25 {
        for writer in &mut writers {
            let id = format!("of-{}", writer.shard);
            outcomes.push((writer.shard, writer.send(events([event(&id, seq)]))));
        }
    }
    for (shard, outcome) in join_all(outcomes.into_iter().map(|(shard, outcome)| outcome.map(move |outcome| (shard, outcome)))).await {
        assert_eq!(outcome.is_ok(), shard != 3, "shard {shard}: {outcome:?}");
    }
    for writer in &writers {
        let expected = if writer.shard == 3 { vec![] } else { (1..=25).collect() };
        assert_eq!(seqs(&store, &format!("of-{}", writer.shard)).await, expected);
    }
    assert_eq!(store.commits(), 7 * 25);
}

/// Two who take themselves for the same holder, as after an outcome that nobody heard: one of them is right.
pub async fn of_two_batches_with_one_number_one_is_applied(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for seq in 1..=10 {
        let one = writer.fenced(events([event("one", seq)]));
        let other = Batch { fences: one.fences.clone(), ..events([event("other", seq)]) };
        let (one, other) = join(store.commit(one), store.commit(other)).await;
        assert!(one.is_ok() != other.is_ok(), "{one:?}, {other:?}");
        for refused in [one, other].into_iter().filter_map(Result::err) {
            assert!(matches!(refused, Error::Gap { shard: 0, after } if after == seq - 1), "{refused:?}");
        }
    }
    let (one, other) = (seqs(&store, "one").await, seqs(&store, "other").await);
    let mut all = [one, other].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=10).collect::<Vec<_>>());
    assert_eq!(store.head(0).await.unwrap(), writer.head);
}

/// However many claim at once, there is a last one, and only that one writes.
pub async fn claims_at_once_have_terms_of_their_own(harness: &impl Harness) {
    let store = harness.open().await;
    let mut heads: Vec<Head> = join_all((0..12).map(|_| store.claim(5))).await.into_iter().map(Result::unwrap).collect();
    heads.sort_by_key(|head| head.term);
    assert_eq!(heads.iter().map(|head| head.term).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
    for head in heads {
        let mut writer = Writer::claimed(&store, 5, head);
        let outcome = writer.send(Batch::default()).await;
        assert_eq!(outcome.is_ok(), head.term == 12, "term {}: {outcome:?}", head.term);
    }
}

/// What was in line before a claim is applied before it, what comes after it is not; there is no third way.
pub async fn a_claim_takes_its_place_among_commits(harness: &impl Harness) {
    let store = harness.open().await;
    let mut old = Writer::claim(&store, 0).await;
    let before: Vec<_> = (1..=20).map(|seq| old.send(events([event("a", seq)]))).collect();
    let head = store.claim(0).await.unwrap();
    assert_eq!(head, Head { term: 2, seq: 20 });
    let after: Vec<_> = (21..=25).map(|seq| old.send(events([event("a", seq)]))).collect();
    let mut new = Writer::claimed(&store, 0, head);
    new.write(events([event("b", 1)])).await;
    for outcome in join_all(before).await {
        outcome.unwrap();
    }
    for outcome in join_all(after).await {
        assert!(matches!(outcome, Err(Error::Fenced { shard: 0, term: 1 })), "{outcome:?}");
    }
    assert_eq!(seqs(&store, "a").await.len(), 20);
    assert_eq!(store.head(0).await.unwrap(), new.head);
}

/// Batches of a shard are applied in order, so an outcome tells of all that stand before it.
pub async fn an_outcome_tells_of_those_before_it(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let mut outcomes: Vec<_> = (1..=20).map(|seq| writer.send(events([event("a", seq)]))).collect();
    let last = outcomes.pop();
    last.unwrap().await.unwrap();
    assert_eq!(seqs(&store, "a").await, (1..=20).collect::<Vec<_>>());
    assert_eq!(store.head(0).await.unwrap(), writer.head);
    for outcome in outcomes.into_iter().rev() {
        outcome.await.unwrap();
    }
}

/// While commits are under way a read sees a batch with all it has, or without all of it.
pub async fn a_read_never_sees_half_of_a_batch(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let [here, there] = ["a", "b"].map(|id| timer(id, TimerName::Deadline, 5));
    writer.write(changes([arm(0, &here)])).await;
    for round in 0..30 {
        let (from, to) = if round % 2 == 0 { (&here, &there) } else { (&there, &here) };
        let moved = Batch { timers: vec![disarm(from), arm(0, to)], ..events([event("a", 2 * round + 1), event("a", 2 * round + 2)]) };
        let (outcome, (timers, journal)) = join(writer.send(moved), join(all_timers(&store, 0), seqs(&store, "a"))).await;
        outcome.unwrap();
        assert_eq!(timers.len(), 1, "it is in one of two places: {timers:?}");
        assert!(journal.len() % 2 == 0, "both events or none: {journal:?}");
        assert!((round * 2..=round * 2 + 2).contains(&(journal.len() as u64)), "what was announced is there: {journal:?}");
    }
}

/// Whoever asks may stop listening at any time, as callers with a time limit do.
pub async fn a_call_that_is_dropped_harms_nobody(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    for seq in 1..=10 {
        let _unheard = writer.send(Batch { runs: vec![row("a")], ..events([event("a", seq)]) }).now_or_never();
        let _unread = store.journal(&(&run("a")).into(), 0, 9).now_or_never();
        let _unread = store.timers(0, None, 9).now_or_never();
        let _unread = store.to_recover(0, None, 9).now_or_never();
        let _unread = store.head(0).now_or_never();
    }
    writer.write(rows([row("b")])).await;
    assert_eq!(seqs(&store, "a").await, (1..=10).collect::<Vec<_>>());
    let _unheard = store.claim(0).now_or_never(); // it may be one, or none
    let head = store.claim(0).await.unwrap();
    assert!((2..=3).contains(&head.term) && head.seq == writer.head.seq, "{head:?}");
    Writer::claimed(&store, 0, head).write(events([event("a", 11)])).await;
}
