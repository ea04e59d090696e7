//! What was asked for from the start: sent again when that may help, run once.

use crate::network::{Raw, counted, echo, ms, pass, request, secs, two};
use bytes::Bytes;
use std::future::IntoFuture;
use steadfast_messaging::envelope::Body;
use steadfast_messaging::wire::memory::Faults;
use steadfast_messaging::{Code, Failure, Policy};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_retry_succeeds_on_the_second_attempt() {
    let (_network, a, b) = two(1);
    let runs = counted(&b, "flaky", |run| if run == 1 { Err(Failure::transient("not yet")) } else { Ok(Bytes::from("done")) });
    let began = Instant::now();
    assert_eq!(a.call("b", "flaky", "").await.unwrap(), "done");
    assert_eq!(runs.get(), 2);
    assert!((ms(800)..=ms(1200)).contains(&began.elapsed()), "one backoff of 1 s ± 20 %, not {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_not_retried() {
    let (_network, a, b) = two(1);
    let runs = counted(&b, "no", |_| Err(Failure::permanent("never").code(Code::FailedPrecondition)));
    let failure = a.call("b", "no", "").await.unwrap_err();
    assert_eq!((failure.code, failure.attempts, runs.get()), (Code::FailedPrecondition, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn retries_stop_at_the_deadline_with_the_last_failure() {
    let (_network, a, b) = two(1);
    let runs = counted(&b, "busy", |_| Err(Failure::transient("still busy").code(Code::Unavailable)));
    let began = Instant::now();
    let failure = a.call("b", "busy", "").timeout(ms(1500)).await.unwrap_err();
    assert_eq!((failure.code, &*failure.message, failure.attempts, runs.get()), (Code::Unavailable, "still busy", 2, 2));
    assert_eq!(began.elapsed(), ms(1500));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_alone_is_deadline_exceeded_and_after_a_failure_it_is_that_failure() {
    let (network, a, b) = two(1);
    let runs = counted(&b, "once", |_| Err(Failure::transient("still busy").code(Code::ResourceExhausted)));
    echo(&b, "echo");
    a.call("b", "echo", "").await.unwrap();
    network.set("b", "a", Faults { swallow: true, ..Faults::default() });
    let failure = a.call("b", "echo", "").timeout(ms(200)).await.unwrap_err();
    assert_eq!(failure.code, Code::DeadlineExceeded);
    assert!(!failure.causes.iter().any(|cause| cause.contains("sent again")), "the budget has nothing to do with it: {failure:?}");
    network.heal();
    let call = tokio::spawn(
        a.call("b", "once", "")
            .timeout(secs(2))
            .policy(Policy::transient().attempt_timeout(secs(5)))
            .into_future(),
    );
    crate::network::until("it has run once", || runs.get() == 1).await;
    pass(ms(100)).await;
    network.set("b", "a", Faults { swallow: true, ..Faults::default() });
    let failure = call.await.unwrap().unwrap_err();
    assert_eq!((failure.code, &*failure.message, failure.attempts), (Code::ResourceExhausted, "still busy", 2), "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_are_independent_one_in_backoff_does_not_hold_up_another() {
    let (_network, a, b) = two(1);
    let runs = counted(&b, "busy", |_| Err(Failure::transient("busy")));
    echo(&b, "echo");
    let slow = tokio::spawn(a.call("b", "busy", "").into_future());
    crate::network::until("the first waits", || runs.get() == 1).await;
    let began = Instant::now();
    for _ in 0..100 {
        a.call("b", "echo", "x").await.unwrap();
    }
    assert!(began.elapsed() < ms(100) && !slow.is_finished());
    assert_eq!(slow.await.unwrap().unwrap_err().max_attempts, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_first_request_passes_and_its_duplicate_gets_the_cached_answer() {
    let (network, _a, b) = two(1);
    let runs = counted(&b, "count", |run| Ok(Bytes::from(run.to_string())));
    let mut raw = Raw::connect(&network, "b", "raw").await;
    for attempt in 1..=3 {
        let mut request = request(1, "x", "count", "same");
        request.attempt = attempt;
        raw.say(&[Body::Call(request)]).await;
        assert_eq!(raw.reply().await.unwrap(), "1");
    }
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_tell_is_taken_again_and_not_run() {
    let (network, _a, b) = two(1);
    let runs = counted(&b, "count", |_| Ok(Bytes::new()));
    let mut raw = Raw::connect(&network, "b", "raw").await;
    for _ in 0..3 {
        raw.say(&[Body::Tell(request(1, "x", "count", "same"))]).await;
        raw.reply().await.unwrap();
        pass(ms(10)).await;
    }
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_expired_entry_is_a_new_request() {
    let (network, _a, b) = two(1);
    let runs = counted(&b, "count", |_| Ok(Bytes::new()));
    for (wait, expected) in [(secs(0), 1), (secs(119), 1), (secs(2), 2)] {
        pass(wait).await;
        let mut raw = Raw::connect(&network, "b", "raw").await;
        raw.say(&[Body::Call(request(1, "x", "count", "same"))]).await;
        raw.reply().await.unwrap();
        assert_eq!(runs.get(), expected, "after {wait:?} more");
    }
}
