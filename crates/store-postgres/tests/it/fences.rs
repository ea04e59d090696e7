//! Several shards, and several instances that share them.

use crate::fixture::{Database, Holder, event, seqs, until};
use futures_util::future::{join, join_all};
use steadfast_store::{Batch, Error, Fence, Head, Position, Store};

#[tokio::test]
async fn an_instance_that_lost_a_shard_cannot_write_it_and_goes_on_with_the_others() {
    let database = Database::new();
    let (here, there) = (database.open().await, database.open().await);
    let (mut kept, mut lost) = (Holder::claim(&here, 0).await, Holder::claim(&here, 1).await);
    let mut taken = Holder::claim(&there, 1).await;
    let outcomes = join_all([kept.send("kept"), lost.send("lost"), kept.send("kept"), lost.send("lost")]).await;
    for (outcome, is_kept) in outcomes.iter().zip([true, false, true, false]) {
        assert_eq!(outcome.is_ok(), is_kept, "{outcome:?}");
        assert!(is_kept || matches!(outcome, Err(Error::Fenced { shard: 1, term: 1 })), "{outcome:?}");
    }
    taken.send("taken").await.unwrap();
    kept.send("kept").await.unwrap();
    assert_eq!((seqs(&here, "kept").await, seqs(&here, "lost").await, seqs(&here, "taken").await), (3, 0, 1));
    assert_eq!(here.head(1).await.unwrap(), Head { term: 2, seq: 1 });
}

/// What one cannot commit does not fail those that are in line with it, whatever the reason is.
#[tokio::test]
async fn a_batch_that_the_database_refuses_fails_alone() {
    let database = Database::new();
    let store = database.open().await;
    database.psql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF NEW.workflow_id = 'poison' THEN RAISE EXCEPTION 'no' USING ERRCODE = '22023'; END IF; RETURN NEW; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON steadfast.workflow_events FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let (mut bad, mut good) = (Holder::claim(&store, 0).await, Holder::claim(&store, 1).await);
    let outcomes = join_all([good.send("fine"), bad.send("poison"), good.send("fine"), bad.send("after")]).await;
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, false], "{outcomes:?}");
    assert!(matches!(outcomes[3], Err(Error::Gap { shard: 0, after: 1 })), "what was built on it fails with it");
    assert_eq!(seqs(&store, "fine").await, 2);
    assert_eq!(store.commits(), 2);
}

/// What would go wrong with each of them is not tried with each of them.
#[tokio::test]
async fn trouble_that_no_batch_is_the_reason_of_is_met_once() {
    let database = Database::new();
    let store = database.open().await;
    database.psql(
        "CREATE SEQUENCE tries;
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           PERFORM nextval('tries'); RAISE EXCEPTION 'no' USING ERRCODE = '53200'; END $$;
         CREATE TRIGGER fail BEFORE INSERT ON steadfast.workflow_events EXECUTE FUNCTION fail()",
    );
    let mut holder = Holder::claim(&store, 0).await;
    let outcomes = join_all((0..50).map(|_| holder.send("a"))).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Unavailable { .. }))), "{outcomes:?}");
    assert_eq!(database.psql("SELECT last_value FROM tries"), "1");
}

/// Who commits to shards, and who begins to write some, locks them in one order.
#[tokio::test]
async fn shards_are_locked_in_the_order_of_their_ids() {
    let database = Database::new();
    let (here, there) = (database.open().await, database.open().await);
    let mut heads = vec![];
    for shard in (1..=40).rev() {
        heads.push((shard, here.claim(shard).await.unwrap().term));
    }
    let mut other = database.client().await;
    // The first one has them already, and the second one not yet.
    for (after, store) in [&here, &there].into_iter().enumerate() {
        let after = after as u64;
        let fences: Vec<_> = heads
            .iter()
            .map(|(shard, term)| Fence { shard: *shard, term: *term, after, upto: after + 1 })
            .collect();
        loop {
            let first = other.transaction().await.unwrap();
            first.query("SELECT FROM steadfast.shards WHERE id = 1 FOR UPDATE", &[]).await.unwrap();
            let batch = tokio::spawn(store.commit(Batch { fences: fences.clone(), ..Batch::default() }));
            until("it waits for the first shard", async || database.connections("wait_event_type = 'Lock'") == 1).await;
            let free = "SELECT count(*) FROM (SELECT FROM steadfast.shards WHERE id > 1 FOR UPDATE SKIP LOCKED) AS free";
            assert_eq!(database.psql(free), "62");
            first.rollback().await.unwrap();
            match batch.await.unwrap() {
                Ok(()) => break,
                Err(error) => assert!(error.to_string().contains("somebody else has locked"), "{error}"), // it has waited for too long
            }
        }
    }
}

/// Those that wait for a commit share the next one.
#[tokio::test]
async fn batches_that_wait_are_one_transaction() {
    let database = Database::new();
    let store = database.open().await;
    let mut holders = vec![];
    for shard in 0..64 {
        holders.push(Holder::claim(&store, shard).await);
    }
    let mut outcomes = vec![];
    for _ in 0..4 {
        outcomes.extend(holders.iter_mut().map(|holder| holder.send(&format!("of-{}", holder.shard))));
    }
    for outcome in join_all(outcomes).await {
        outcome.unwrap();
    }
    let transactions = database.psql("SELECT count(*), count(DISTINCT xmin::text) FROM steadfast.workflow_events");
    let (events, transactions) = transactions.split_once('|').unwrap();
    assert_eq!(events, "256");
    assert!(transactions.parse::<u32>().unwrap() <= 3, "{transactions} transactions");
    assert_eq!(store.commits(), 256);
}

/// Rows of shards are locked in one order, whatever the order of the fences is.
#[tokio::test]
async fn instances_that_both_want_some_shards_do_not_lock_each_other_out() {
    let database = Database::new();
    let (here, there) = (database.open().await, database.open().await);
    for round in 0..20 {
        let (first, second) = (here.claim(0).await.unwrap(), there.claim(1).await.unwrap());
        let fence = |shard, head: Head| Fence { shard, term: head.term, after: head.seq, upto: head.seq + 1 };
        let of_others = |shard| Fence { shard, term: round, after: 0, upto: 1 };
        let one = Batch { fences: vec![fence(0, first), of_others(1)], ..Batch::default() };
        let two = Batch { fences: vec![fence(1, second), of_others(0)], ..Batch::default() };
        let (one, two) = join(here.commit(one), there.commit(two)).await;
        assert!(matches!(one, Err(Error::Fenced { shard: 1, .. })), "{one:?}");
        assert!(matches!(two, Err(Error::Fenced { shard: 0, .. })), "{two:?}");
    }
}

/// A statement that comes late from a connection that was given up is refused by the database itself.
#[tokio::test]
async fn what_another_connection_sends_is_refused() {
    let database = Database::new();
    let store = database.open().await;
    Holder::claim(&store, 0).await.send("a").await.unwrap();
    let fence = |writer: &str| {
        let call = format!("SELECT steadfast.fence(9, {writer}, ARRAY[0], ARRAY[1], ARRAY[1], ARRAY[2], ARRAY[0])");
        database
            .server
            .try_psql(&database.name, &format!("BEGIN; SET LOCAL steadfast.transaction = 'begun'; {call}; ROLLBACK"))
    };
    let error = fence("'somebody'").unwrap_err();
    assert!(error.contains("written by another connection"), "{error}");
    fence("(SELECT writer FROM steadfast.shards WHERE id = 0)").unwrap();
}

/// One shard has much more than the others, and none of it is left out.
#[tokio::test]
async fn a_page_of_the_feed_is_full_though_one_shard_has_most_of_it() {
    let database = Database::new();
    let store = database.open().await;
    let (mut few, mut many) = (Holder::claim(&store, 0).await, Holder::claim(&store, 7).await);
    few.send("few").await.unwrap();
    join_all((0..100).map(|_| many.send("many"))).await.into_iter().for_each(Result::unwrap);
    assert_eq!(store.feed(&Position::default(), None, 60).await.unwrap().len(), 60);
    let all = store.feed(&Position::default(), None, 500).await.unwrap();
    assert_eq!(all.len(), 101);
    assert_eq!(store.feed(&all.iter().map(|fed| fed.place).collect(), None, 500).await.unwrap(), []);
}

/// Who goes on from a place of a shard misses nothing: places have no gaps, also when commits fail.
#[tokio::test]
async fn places_of_a_shard_rise_by_one() {
    let database = Database::new();
    let store = database.open().await;
    let (mut a, mut b) = (Holder::claim(&store, 0).await, Holder::claim(&store, 7).await);
    for _ in 0..3 {
        join(a.send("a"), b.send("b")).await.0.unwrap();
        let stale =
            Batch { fences: vec![Fence { shard: 7, term: 9, after: 0, upto: 1 }], events: vec![event(7, "c", 1)], ..Batch::default() };
        store.commit(stale).await.unwrap_err();
    }
    let places = "SELECT shard, string_agg(place::text, ' ' ORDER BY place) FROM steadfast.workflow_events GROUP BY shard ORDER BY shard";
    assert_eq!(database.psql(places), "0|1 2 3\n7|1 2 3");
}
