//! Samples: the newest win, and nothing is sent again.

use crate::network::{ms, pass, secs, two, until};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use steadfast_messaging::wire::memory::Faults;
use steadfast_messaging::{Code, Node};
use tokio::time::Instant;

/// What the handler of a route was given; it takes that long for each.
fn seen(node: &Node, route: &str, each: u64) -> Arc<Mutex<Vec<u32>>> {
    let seen: Arc<Mutex<Vec<u32>>> = Arc::default();
    let kept = Arc::clone(&seen);
    node.route_samples(route, move |incoming| {
        kept.lock().push(std::str::from_utf8(&incoming.payload).unwrap().parse().unwrap());
        async move { pass(ms(each)).await }
    });
    seen
}

#[tokio::test(start_paused = true)]
async fn the_first_sample_makes_a_connection_and_those_after_it_arrive_in_order() {
    let (network, a, b) = two(1);
    let seen = seen(&b, "s", 0);
    a.sample("b", "s", "0").unwrap();
    until("there is a connection", || a.counts().connections == 1).await;
    for number in 1..=50 {
        a.sample("b", "s", number.to_string()).unwrap();
    }
    until("all have come", || seen.lock().len() == 50).await;
    assert!(seen.lock().is_sorted());
    assert_eq!(network.counts().links, 1);
    assert_eq!(a.sample("b", "s", vec![0; 5 << 20]).unwrap_err().code, Code::InvalidArgument);
    a.sample("b", "nobody", "").unwrap();
}

#[tokio::test(start_paused = true)]
async fn when_too_many_wait_the_newest_win_on_either_side() {
    let (network, a, b) = two(1);
    let seen = seen(&b, "slow", 1000);
    a.sample("b", "slow", "0").unwrap();
    until("there is a connection", || a.counts().connections == 1).await;
    for number in 1..=1000 {
        a.sample("b", "slow", number.to_string()).unwrap();
    }
    pass(secs(100)).await;
    let came = seen.lock().clone();
    assert!(came.len() <= 65 && came.is_sorted() && came.last() == Some(&1000), "{came:?}");
    assert!(came[came.len() - 60..].iter().all(|number| *number > 900), "{came:?}");
    for number in 1001..=2000 {
        a.sample("b", "slow", number.to_string()).unwrap();
        pass(ms(1)).await; // each travels by itself: it is the handler that is too slow
    }
    pass(secs(100)).await;
    let came = seen.lock().clone();
    assert!(came.len() <= 65 + 66 && came.last() == Some(&2000), "{came:?}");
    assert_eq!((network.counts().dropped, b.counts().requests), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lost_sample_is_not_sent_again_and_a_handler_that_panics_gets_the_next_one() {
    let (network, a, b) = two(1);
    let first = seen(&b, "s", 0);
    a.sample("b", "s", "0").unwrap();
    until("there is a connection", || a.counts().connections == 1).await;
    network.set("a", "b", Faults { drop: 1.0, ..Faults::default() });
    a.sample("b", "s", "1").unwrap();
    pass(secs(2)).await;
    network.heal();
    a.sample("b", "s", "2").unwrap();
    pass(secs(20)).await;
    assert_eq!(*first.lock(), [2]);
    let runs = crate::network::Count::default();
    let run = runs.clone();
    b.route_samples("panics", move |_| {
        assert!(run.add() != 1, "the first one, on purpose");
        async {}
    });
    a.sample("b", "panics", "").unwrap();
    a.sample("b", "panics", "").unwrap();
    until("both were given to it", || runs.get() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_end_is_dropped_after_a_minute_and_the_newest_follow() {
    let (_network, a, b) = two(1);
    let seen: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let kept = Arc::clone(&seen);
    b.route_samples("stuck", move |incoming| {
        kept.lock().push(incoming.left());
        std::future::pending()
    });
    a.sample("b", "stuck", "").unwrap();
    until("there is a connection", || a.counts().connections == 1).await;
    let at = Instant::now();
    for _ in 0..2 {
        a.sample("b", "stuck", "").unwrap();
    }
    pass(secs(59)).await;
    assert_eq!(seen.lock().len(), 1);
    until("the second has its turn", || seen.lock().len() == 2).await;
    assert!((secs(60)..secs(61)).contains(&at.elapsed()), "{:?}", at.elapsed());
    assert_eq!(*seen.lock(), [secs(60), secs(60)]);
}
