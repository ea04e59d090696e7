//! The replay suite: every scenario is run live, compared with its replay, and gone on with from every prefix of its commits. What comes out must
//! be the same, byte for byte but for the times: events, attempts, delays, payloads, order.
//!
//! Steps know only which attempt they are, so a scenario takes the same way whoever carries it on.
//!
//! Subject: `crates/runtime/src/host/replay.rs`.

use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Ctx, Engine, Entry, Event, Failure, Graph, HOUR, Jitter, MINUTE, Policy, Run, SECOND, Store, Timestamp, workflow};

const MS: Duration = Duration::from_millis(1);

/// Succeeds at that attempt; before it fails and may pass.
async fn at_attempt(ctx: &Ctx, good: u32) -> Result<String, Failure> {
    let attempt = ctx.attempt();
    tokio::time::sleep(MS).await;
    if attempt < good { Err(Failure::transient(format!("attempt {attempt}"))) } else { Ok(format!("attempt {attempt}")) }
}

async fn after<T>(delay: Duration, value: T) -> Result<T, Failure> {
    tokio::time::sleep(delay).await;
    Ok(value)
}

async fn nothing(_: String) -> Result<(), Failure> {
    Ok(())
}

/// One step that succeeds at that attempt.
async fn retried(ctx: &Ctx, good: u32, policy: Policy) -> Result<String, Failure> {
    ctx.step("flaky", || at_attempt(ctx, good)).retry(policy).await
}

/// A step that can be undone.
async fn undoable(ctx: &Ctx, name: &str, delay: Duration) -> Result<String, Failure> {
    ctx.step(name, || after(delay, name.to_string())).undo(nothing).await
}

/// A step whose undo succeeds at its third attempt.
async fn stubborn(ctx: &Ctx, undo_retry: Policy) -> Result<String, Failure> {
    let undo = ctx.clone();
    let undo = move |_: String| {
        let attempt = undo.attempt();
        async move { if attempt < 3 { Err(Failure::transient("not yet")) } else { Ok(()) } }
    };
    ctx.step("one", || after(MS, String::new())).undo(undo).undo_retry(undo_retry).await
}

fn shown<T: std::fmt::Debug>(value: T) -> Result<String, Failure> {
    Ok(format!("{value:?}"))
}

/// Every scenario, by name.
#[workflow]
async fn scenario(ctx: Ctx, name: String) -> Result<String, Failure> {
    let ctx = &ctx;
    let exponential = || Policy::exponential(SECOND);
    match name.as_str() {
        "success_after_1_retry" => retried(ctx, 2, exponential()).await,
        "success_after_2_retries" => retried(ctx, 3, exponential()).await,
        "success_after_3_retries" => retried(ctx, 4, exponential()).await,
        "success_after_4_retries" => retried(ctx, 5, exponential()).await,
        "success_after_5_retries" => retried(ctx, 6, exponential().max_attempts(6)).await,
        "exhaustion_after_1_attempt" => retried(ctx, 99, exponential().max_attempts(1)).await,
        "exhaustion_after_2_attempts" => retried(ctx, 99, exponential().max_attempts(2)).await,
        "exhaustion_after_3_attempts" => retried(ctx, 99, exponential().max_attempts(3)).await,
        "exhaustion_after_4_attempts" => retried(ctx, 99, exponential().max_attempts(4)).await,
        "exhaustion_after_5_attempts" => retried(ctx, 99, exponential().max_attempts(5)).await,
        "linear_backoff" => retried(ctx, 4, Policy::linear(SECOND)).await,
        "scheduled_backoff" => retried(ctx, 3, Policy::schedule([SECOND, 7 * SECOND])).await,
        "proportional_jitter" => retried(ctx, 4, exponential().jitter(Jitter::Proportional(200))).await,
        "full_jitter" => retried(ctx, 4, exponential().jitter(Jitter::Full)).await,
        "equal_jitter" => retried(ctx, 4, exponential().jitter(Jitter::Equal)).await,
        "zero_delay" => retried(ctx, 5, Policy::constant(Duration::ZERO)).await,
        "permanent_failure" => ctx.step("no", || async { Err(Failure::permanent("no")) }).await,
        "poison_failure" => ctx.step("what", || async { Err(Failure::poison("what?")) }).await,
        "failure_handled" => {
            let failed: Result<(), Failure> = ctx.step("no", || async { Err(Failure::permanent("no")) }).await;
            let why = failed.expect_err("it fails").message;
            ctx.step("sorry", || after(MS, why.clone())).await
        }
        "timeout_then_success" => {
            let slow_once = || {
                let delay = if ctx.attempt() == 1 { HOUR } else { MS };
                after(delay, "in time".to_string())
            };
            ctx.step("slow", slow_once).timeout(SECOND).await
        }
        "timeouts_exhaust_the_attempts" => {
            ctx.step("slow", || after(HOUR, String::new()))
                .timeout(SECOND)
                .retry(Policy::constant(SECOND).max_attempts(2))
                .await
        }
        "policy_deadline" => retried(ctx, 99, Policy::constant(10 * SECOND).max_attempts(99).deadline(35 * SECOND)).await,
        "run_deadline_in_a_sleep" => ctx.sleep(24 * HOUR).await.map(|()| String::new()),
        "run_deadline_in_a_backoff" => retried(ctx, 99, Policy::constant(20 * MINUTE).max_attempts(99)).await,
        "sleep_between_steps" => {
            let before = ctx.step("before", || after(MS, 1)).await?;
            ctx.sleep(24 * HOUR).await?;
            shown(before + ctx.step("after", || after(MS, 1)).await?)
        }
        "many_sleeps" => {
            for _ in 0..5 {
                ctx.sleep(SECOND).await?;
            }
            ctx.sleep(Duration::ZERO).await?;
            shown(())
        }
        "ten_steps" => {
            let mut sum = 0;
            for i in 0..10 {
                sum += ctx.step("add", || after(MS, i)).await?;
            }
            shown(sum)
        }
        "chance" => {
            let before = (ctx.random(), ctx.uuid());
            ctx.sleep(SECOND).await?;
            shown((before, ctx.random(), ctx.uuid()))
        }
        "join_of_two" => shown(ctx.join((ctx.step("a", || after(MS, 1)), ctx.step("b", || after(SECOND, 2)))).await),
        "join_with_mixed_retries" => {
            let branch = |good: u32| async move { retried(ctx, good, Policy::constant(good * SECOND)).await };
            shown(ctx.join((branch(1), branch(2), branch(4))).await)
        }
        "join_where_one_branch_fails" => {
            let bad = async { ctx.step("x", || async { Err::<u32, _>(Failure::permanent("bad")) }).await };
            let good = async { ctx.step("x", || after(SECOND, 7)).await };
            shown(ctx.join((bad, good)).await)
        }
        "all_of_ten" => {
            let item = |n: u32| async move { ctx.step("item", || after((n * 100 + 1) * MS, n)).await };
            shown(ctx.all((0..10).map(item)).await)
        }
        "nested_joins" => {
            let leaf = |ms: u32| async move { ctx.step("leaf", || after(ms * MS, ms)).await };
            let inner = |a: u32, b: u32| async move { ctx.join((leaf(a), leaf(b))).await };
            shown(ctx.join((inner(1, 2000), inner(400, 9000))).await)
        }
        "loops_side_by_side" => {
            let walk = |pace: u32| async move {
                let mut sum = 0;
                for n in 0..4 {
                    sum += ctx.step("walk", || after(pace * MS, n * pace)).await?;
                    ctx.sleep(pace * MS).await?;
                }
                Ok::<_, Failure>(sum)
            };
            shown(ctx.join((walk(1), walk(100))).await)
        }
        "race_of_steps" => shown(
            ctx.race((ctx.step("slow", || after(HOUR, "slow".to_string())), ctx.step("fast", || after(MS, "fast".to_string()))))
                .await,
        ),
        "race_against_a_sleep" => {
            let work = async { ctx.step("work", || after(HOUR, "done".to_string())).await };
            let limit = async { ctx.sleep(MINUTE).await.map(|()| "too slow".to_string()) };
            shown(ctx.race((work, limit)).await)
        }
        "race_whose_loser_backs_off" => {
            let loser = async { retried(ctx, 99, Policy::constant(HOUR)).await };
            let winner = async { ctx.sleep(SECOND).await.map(|()| "winner".to_string()) };
            let won = ctx.race((loser, winner)).await;
            ctx.sleep(24 * HOUR).await?;
            shown(won)
        }
        "race_inside_a_join" => {
            let race = |ms: u32| async move {
                let (slow, fast) = (async { ctx.sleep(HOUR).await }, async { ctx.sleep(ms * MS).await });
                ctx.race((slow, fast)).await.0
            };
            shown(ctx.join((race(1), race(1000))).await)
        }
        "signal_that_comes_early" => {
            ctx.sleep(MINUTE).await?;
            ctx.signal::<String>("go").await
        }
        "signal_that_is_waited_for" | "cancel_while_waiting_for_a_signal" => ctx.signal::<String>("go").within(HOUR).await,
        "signal_that_does_not_come" => shown(ctx.signal::<String>("other").within(MINUTE).await),
        "signals_in_order" => shown((ctx.signal::<String>("go").await?, ctx.signal::<String>("go").await?)),
        "signal_in_a_branch" => {
            let wait = async { ctx.signal::<String>("go").await };
            let work = async { retried(ctx, 3, Policy::constant(10 * SECOND)).await };
            shown(ctx.join((wait, work)).await)
        }
        "undo_of_a_sequence" => {
            for name in ["one", "two", "three"] {
                undoable(ctx, name, MS).await?;
            }
            Err(Failure::permanent("back"))
        }
        "undo_of_branches" => {
            let _both = ctx.join((undoable(ctx, "slow", SECOND), undoable(ctx, "fast", MS))).await;
            Err(Failure::permanent("back"))
        }
        "undo_with_retries" => {
            stubborn(ctx, Policy::linear(SECOND)).await?;
            Err(Failure::permanent("back"))
        }
        "undo_after_a_deadline" | "cancel_in_a_sleep" => {
            undoable(ctx, "one", MS).await?;
            ctx.sleep(24 * HOUR).await.map(|()| String::new())
        }
        "cancel_in_a_backoff" => {
            undoable(ctx, "one", MS).await?;
            retried(ctx, 99, Policy::constant(HOUR).max_attempts(99)).await
        }
        "cancel_in_an_attempt" => {
            undoable(ctx, "one", MS).await?;
            ctx.step("stuck", || after(100 * HOUR, String::new())).await
        }
        "cancel_while_it_is_being_undone" => {
            stubborn(ctx, Policy::constant(10 * MINUTE)).await?;
            Err(Failure::permanent("back"))
        }
        "cancel_without_undo" => ctx.sleep(24 * HOUR).await.map(|()| String::new()),
        "graph_of_a_diamond" => {
            let graph = Graph::new()
                .step("root", |_| after(MS, 1))
                .step("left", |done| async move { after(SECOND, done.get::<u32>("root")? + 1).await })
                .after(["root"])
                .step("right", |done| async move { after(MINUTE, done.get::<u32>("root")? + 2).await })
                .after(["root"])
                .step("tip", |done| async move { after(MS, done.get::<u32>("left")? + done.get::<u32>("right")?).await })
                .after(["left", "right"]);
            shown(ctx.graph(graph).await?.get::<u32>("tip"))
        }
        "graph_with_a_failure" => {
            let graph = Graph::new()
                .step("bad", |_| async { Err::<u32, _>(Failure::permanent("bad")) })
                .step("never", |_| after(MS, 0))
                .after(["bad"])
                .step("beside", |_| at_attempt(ctx, 2))
                .retry(Policy::constant(SECOND));
            shown(ctx.graph(graph).await.map(drop))
        }
        "not_repeatable" => {
            let found = || async { Ok::<_, Failure>(Some("attempt 1".to_string())) };
            ctx.step("once", || at_attempt(ctx, 1)).not_repeatable().probe(found).await
        }
        "version" => {
            let version = ctx.version("change", 1..=3);
            ctx.step("work", || after(MS, version)).await.and_then(shown)
        }
        "panic_in_a_step" => {
            let shaky = || {
                let attempt = ctx.attempt();
                async move {
                    assert!(attempt > 1, "the first attempt");
                    Ok::<_, Failure>("recovered".to_string())
                }
            };
            ctx.step("shaky", shaky).await
        }
        "panic_of_the_workflow" => panic!("of the workflow"),
        other => Err(Failure::permanent(format!("there is no scenario {other}"))),
    }
}

/// What happens from outside. Everything is sent until it is acknowledged, so it is sent again to whoever goes on.
async fn outside(run: &Run, name: &str) {
    if name.contains("signal_") || name.contains("signals_") {
        tokio::time::sleep(SECOND).await;
        for id in ["first", "second"] {
            let _it_may_have_ended = run.signal("go", &id).id(id).await;
        }
    }
    if name.starts_with("cancel_") {
        tokio::time::sleep(MINUTE).await;
        let _it_may_have_ended = run.cancel().by("ada").why("enough").await;
    }
}

async fn start(store: &Memory, clock: steadfast::VirtualClock) -> Engine {
    Engine::on(store.clone()).clock(clock).register(scenario).start().await.unwrap()
}

/// An entry without the times at which it happened to be made.
fn timeless(entry: &Entry) -> Entry {
    let mut entry = Entry { at: Timestamp::EPOCH, ..entry.clone() };
    match &mut entry.event {
        Event::RunStarted { deadline_at: Some(at), .. }
        | Event::RetryScheduled { due_at: at, .. }
        | Event::TimerSet { due_at: at, .. }
        | Event::SignalAwaited { until: Some(at), .. } => *at = Timestamp::EPOCH,
        _ => {}
    }
    entry
}

async fn ended(run: &Run, name: &str) -> Vec<Entry> {
    outside(run, name).await;
    let _either_way = run.result::<String>().await;
    run.journal().await.unwrap()
}

async fn check(name: &str) {
    let clock = steadfast::VirtualClock::start();
    let store = Memory::new();
    let live = start(&store, clock).await;
    let mut request = live.start("scenario", &name).id(name);
    if name.contains("deadline") {
        request = request.deadline(HOUR);
    }
    let run = request.await.unwrap();
    let journal = ended(&run, name).await;
    assert!(journal.len() > 1 && journal.last().unwrap().event.is_end());
    assert_eq!(run.replay().await.unwrap().mismatch, None);
    assert_eq!(store.timers(0, None, 10).await.unwrap(), [], "no timer is left behind");
    let commits = usize::try_from(store.commits()).unwrap();
    drop(live);

    let expected: Vec<Entry> = journal.iter().map(timeless).collect();
    for prefix in 1..=commits {
        let rewound = store.rewound(prefix);
        let recorded = rewound.journal(&run.id().into(), 0, 1000).await.unwrap().len();
        let later = journal[recorded - 1].at.saturating_add(MS); // another time than before: nothing that is compared may depend on it
        let clock = steadfast::VirtualClock::start_at(later);
        let engine = start(&rewound, clock).await;
        let again = engine.run(name).unwrap();
        let found = ended(&again, name).await;
        assert_eq!(found[..recorded], journal[..recorded], "what was recorded stays, times included, after {prefix} commits");
        assert_eq!(found.iter().map(timeless).collect::<Vec<_>>(), expected, "after {prefix} of {commits} commits");
        assert_eq!(again.replay().await.unwrap().mismatch, None);
    }
}

macro_rules! scenarios {
    ($($name:ident)+) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            check(stringify!($name)).await;
        }
    )+};
}

scenarios! {
    success_after_1_retry success_after_2_retries success_after_3_retries success_after_4_retries success_after_5_retries
    exhaustion_after_1_attempt exhaustion_after_2_attempts exhaustion_after_3_attempts exhaustion_after_4_attempts exhaustion_after_5_attempts
    linear_backoff scheduled_backoff proportional_jitter full_jitter equal_jitter zero_delay
    permanent_failure poison_failure failure_handled
    timeout_then_success timeouts_exhaust_the_attempts policy_deadline run_deadline_in_a_sleep run_deadline_in_a_backoff
    sleep_between_steps many_sleeps ten_steps chance
    join_of_two join_with_mixed_retries join_where_one_branch_fails all_of_ten nested_joins loops_side_by_side
    race_of_steps race_against_a_sleep race_whose_loser_backs_off race_inside_a_join
    signal_that_comes_early signal_that_is_waited_for signal_that_does_not_come signals_in_order signal_in_a_branch
    undo_of_a_sequence undo_of_branches undo_with_retries undo_after_a_deadline
    cancel_in_a_sleep cancel_in_a_backoff cancel_in_an_attempt cancel_while_waiting_for_a_signal cancel_while_it_is_being_undone cancel_without_undo
    graph_of_a_diamond graph_with_a_failure
    not_repeatable version panic_in_a_step panic_of_the_workflow
}
