//! Runs that are hosted by other processes, over messages.

use super::{listen, node, start};
use crate::support::{engine, until};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use steadfast::messages::memory::{Faults, Memory as Network};
use steadfast::messages::{Incoming, wire};
use steadfast::worker::{Attempted, Observer, Parted, RunEnded, Span, Worker, WorkerBuilder};
use steadfast::{Ctx, Engine, Failure, MINUTE, Policy, SECOND, Status, VirtualClock, Wait, memory, workflow};
use tokio::sync::Notify;

#[workflow]
async fn ship(ctx: Ctx, order: String) -> Result<String, Failure> {
    let sent: String = ctx.step("send", || async { Ok::<_, Failure>(format!("sent {order}")) }).await?;
    ctx.sleep(SECOND).await?;
    ctx.step("note", || async { Ok::<_, Failure>(()) }).await?;
    Ok(sent)
}

/// A server without any code.
pub(super) async fn server(network: &Network, store: &memory::Memory) -> Engine {
    start(network, engine(store).messages(node(network, "server")).workers()).await
}

pub(super) fn worker(network: &Network, name: &str) -> WorkerBuilder {
    let wire: Arc<dyn wire::Wire> = Arc::new(network.wire_of(name));
    Worker::of("server").name(name).wire(wire).clock(VirtualClock::start())
}

#[tokio::test(start_paused = true)]
async fn a_worker_hosts_runs_of_a_server_that_has_no_code() {
    let (network, store) = (Network::new(1), memory::Memory::new());
    let server = server(&network, &store).await;
    let refused = server.start("ship", "o-0").await.err().unwrap();
    assert!(refused.to_string().contains("no workflow \"ship\""), "{refused}");

    let worker = worker(&network, "w1").register(ship).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let run = server.start("ship", "o-1").id("o-1").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "sent o-1");
    let [view] = &server.workers()[..] else { panic!("one worker") };
    assert_eq!((&*view.name, view.draining), ("w1", false));
    assert_eq!(worker.drain().await, Parted::Drained);
    until("the server knows", async || server.workers().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_worker_is_missing_waits_with_that_reason_and_goes_on_when_one_comes() {
    let (network, store) = (Network::new(2), memory::Memory::new());
    let server = server(&network, &store).await;
    let first = worker(&network, "w1").register(ship).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    assert_eq!(first.drain().await, Parted::Drained);
    until("it is gone", async || server.workers().is_empty()).await;

    let run = server.start("ship", "o-2").id("o-2").await.unwrap(); // it is known: somebody brought it before
    until("it waits", async || matches!(run.view().await.unwrap().waits[..], [Wait::NoWorker { .. }])).await;
    let _second = worker(&network, "w2").register(ship).start().await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "sent o-2");
}

#[workflow]
async fn stuck(ctx: Ctx, _: ()) -> Result<String, Failure> {
    ctx.step("hold", || async {
        let before = HELD.fetch_add(1, Ordering::SeqCst);
        IN_FLIGHT.notify_one();
        match before {
            0 => std::future::pending().await,
            again => Ok::<_, Failure>(format!("attempt {again}")),
        }
    })
    .await
}

static HELD: AtomicU32 = AtomicU32::new(0);
static IN_FLIGHT: Notify = Notify::const_new();

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_lost_in_the_middle_of_a_step_is_noticed_within_its_heartbeat() {
    let (network, store) = (Network::new(3), memory::Memory::new());
    let server = server(&network, &store).await;
    let _first = worker(&network, "w1").heartbeat(9 * SECOND).register(stuck).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let run = server.start("stuck", &()).id("s-1").await.unwrap();
    IN_FLIGHT.notified().await;
    let _second = worker(&network, "w2").heartbeat(9 * SECOND).register(stuck).start().await.unwrap();
    until("both are there", async || server.workers().len() == 2).await;

    let lost_at = tokio::time::Instant::now();
    network.set_both("w1", "server", Faults { swallow: true, ..Faults::default() }); // half-open: nobody hears of it
    assert_eq!(run.result::<String>().await.unwrap(), "attempt 1");
    let noticed = lost_at.elapsed();
    assert!(noticed <= 10 * SECOND, "{noticed:?}");
    assert_eq!(run.view().await.unwrap().status, Status::Completed);
    assert_eq!(HELD.load(Ordering::SeqCst), 2, "the first attempt has no record, so the second repeats its number");
}

#[workflow]
async fn pay(ctx: Ctx, amount: u64) -> Result<String, Failure> {
    ctx.call("bank", "transfer", &amount).await
}

#[tokio::test(start_paused = true)]
async fn a_call_is_the_same_request_whichever_worker_makes_it() {
    let (network, store) = (Network::new(4), memory::Memory::new());
    let bank = node(&network, "bank").build().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let go_on = Arc::new(Notify::new());
    bank.route("transfer", {
        let (asked, go_on) = (Arc::clone(&asked), Arc::clone(&go_on));
        move |incoming: Incoming| {
            asked.lock().unwrap().push(incoming.caller.scope.to_string());
            let go_on = Arc::clone(&go_on);
            async move {
                go_on.notified().await;
                Ok("\"done\"")
            }
        }
    });
    listen(&network, &bank);
    let server = server(&network, &store).await;
    let first = worker(&network, "w1").heartbeat(9 * SECOND).register(pay).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let run = server.start("pay", &7).id("p-1").await.unwrap();
    until("the bank was asked", async || !asked.lock().unwrap().is_empty()).await;
    drop(first); // as in a crash
    network.cut_off("w1");
    let _second = worker(&network, "w2").register(pay).start().await.unwrap();
    tokio::time::sleep(9 * SECOND).await; // by then the first has let go of the run in any case
    until("the other one asks, too", async || server.workers().iter().any(|worker| worker.sessions == 1)).await;
    go_on.notify_one();
    assert_eq!(run.result::<String>().await.unwrap(), "done");
    assert_eq!(*asked.lock().unwrap(), ["server"], "one request, on behalf of the server");
}

#[workflow]
async fn scan(ctx: Ctx, pages: usize) -> Result<usize, Failure> {
    let mut bytes = 0;
    for _ in 0..pages {
        bytes += ctx.step("page", || async { Ok::<_, Failure>("7".repeat(900 << 10)) }).await?.len();
    }
    let last: usize = ctx
        .step("last", || async { Ok::<_, Failure>(SCANS.fetch_add(1, Ordering::SeqCst) as usize) })
        .await?;
    Ok(bytes + last)
}

static SCANS: AtomicU32 = AtomicU32::new(0);

#[tokio::test(start_paused = true)]
async fn a_line_that_is_slow_is_no_line_that_is_dead() {
    let (network, store) = (Network::new(7), memory::Memory::new());
    network.set_both("w1", "server", Faults { rate: Some(200 << 10), ..Faults::default() });
    let server = server(&network, &store).await;
    let worker = worker(&network, "w1").heartbeat(6 * SECOND).register(scan).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let since = server.workers()[0].since;
    let began = tokio::time::Instant::now();
    let mut runs = Vec::new();
    for id in ["scan-1", "scan-2", "scan-3"] {
        runs.push(server.start("scan", &3).id(id).await.unwrap());
    }
    for run in &runs {
        let bytes = tokio::time::timeout(MINUTE * 10, run.result::<usize>()).await.unwrap().unwrap();
        assert!(bytes < 3 + 3 * (900 << 10));
    }
    assert!(began.elapsed() > 30 * SECOND, "{:?}", began.elapsed());
    assert_eq!(server.workers()[0].since, since, "it was there all the time");
    assert_eq!(SCANS.load(Ordering::SeqCst), 3);
    drop(worker);
}

#[tokio::test(start_paused = true)]
async fn a_worker_comes_back_by_itself_after_the_server_has_restarted() {
    let (network, store) = (Network::new(5), memory::Memory::new());
    let first = server(&network, &store).await;
    let worker = worker(&network, "w1").register(ship).start().await.unwrap();
    until("the worker is there", async || !first.workers().is_empty()).await;
    let run = first.start("ship", "o-5").id("o-5").await.unwrap();
    drop(run);
    drop(first); // as in a crash
    network.cut_off("server");
    let again = server(&network, &store).await;
    assert_eq!(again.run("o-5").unwrap().result::<String>().await.unwrap(), "sent o-5");
    drop(worker);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_worker_is_refused_with_the_reason() {
    let (network, store) = (Network::new(6), memory::Memory::new());
    let _server = server(&network, &store).await;
    let nothing = worker(&network, "w1").start().await.unwrap_err();
    assert!(nothing.message.contains("register one"), "{nothing}");
    let plain = start(&network, engine(&store).messages(node(&network, "plain"))).await;
    let wire: Arc<dyn wire::Wire> = Arc::new(network.wire_of("w1"));
    let failure = Worker::of("plain").name("w1").wire(wire).register(ship).start().await.unwrap_err();
    assert_eq!(failure.code, steadfast::Code::NotFound, "that engine takes no workers: {failure}");
    drop(plain);
}

/// Code of the server itself, with a step that it does not have.
#[workflow]
async fn sell(ctx: Ctx, amount: u64) -> Result<String, Failure> {
    let receipt: String = ctx.start_and_wait("till/charge", &amount).await?;
    ctx.step("note", || async { Ok::<_, Failure>(()) }).await?;
    Ok(receipt)
}

#[tokio::test(start_paused = true)]
async fn a_step_of_a_worker_is_used_by_runs_that_are_hosted_elsewhere_and_survives_its_loss() {
    let (network, store) = (Network::new(8), memory::Memory::new());
    let engine = engine(&store).register(sell).brought_by_workers("till/charge");
    let server = start(&network, engine.messages(node(&network, "server")).workers()).await;
    let run = server.start("sell", &7).id("order-7").await.unwrap();
    until("it waits", async || matches!(run.view().await.unwrap().waits[..], [Wait::Child { .. }])).await;

    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let till = |name: &'static str, dies: bool| {
        let calls = Arc::clone(&calls);
        worker(&network, name).step("till/charge", move |ctx: Ctx, amount: u64| {
            let calls = Arc::clone(&calls);
            async move {
                let key = ctx.idempotency_key().unwrap();
                calls.lock().unwrap().push(format!("{name} {} {key}", ctx.redelivered()));
                if dies {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Failure>(format!("charged {amount}"))
            }
        })
    };
    let first = till("w1", true).start().await.unwrap();
    until("it is begun", async || calls.lock().unwrap().len() == 1).await;
    let _second = till("w2", false).start().await.unwrap();
    drop(first); // as in a crash
    network.cut_off("w1");
    assert_eq!(run.result::<String>().await.unwrap(), "charged 7");
    let calls = calls.lock().unwrap();
    let [one, two] = &calls[..] else { panic!("{calls:?}") };
    let key = one.strip_prefix("w1 false ").unwrap();
    assert_eq!(two, &format!("w2 true {key}"), "the same attempt once more, and it is told so");
}

#[tokio::test(start_paused = true)]
async fn a_step_of_a_worker_is_tried_again_by_its_policy_and_its_failure_reaches_whoever_uses_it() {
    let (network, store) = (Network::new(9), memory::Memory::new());
    let server = start(&network, engine(&store).register(sell).messages(node(&network, "server")).workers()).await;
    let tried = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tried);
    let charge = move |_: Ctx, _: u64| std::future::ready(Err::<(), _>(Failure::transient(counted.fetch_add(1, Ordering::SeqCst) + 1)));
    let policy = Policy::constant(SECOND).max_attempts(3);
    let _worker = worker(&network, "w1").step_with("till/charge", policy, charge).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let run = server.start("sell", &7).id("order-8").await.unwrap();
    let error = run.result::<String>().await.unwrap_err().to_string();
    assert!(error.contains('3'), "{error}");
    assert_eq!(tried.load(Ordering::SeqCst), 3);
    let twice = worker(&network, "w2").register(ship).step("ship", async |_: Ctx, (): ()| Ok::<_, Failure>(()));
    let failure = twice.start().await.unwrap_err();
    assert!(failure.message.contains("registered twice"), "{failure}");
}

/// Keeps the spans of attempts.
#[derive(Default)]
struct Spans(Mutex<Vec<String>>);

impl Observer for Spans {
    fn attempted(&self, attempted: &Attempted<'_>) {
        self.0.lock().unwrap().push(attempted.span.to_string());
    }

    fn ended(&self, _: &RunEnded<'_>) {}
}

#[tokio::test(start_paused = true)]
async fn the_trace_of_a_run_goes_on_at_its_worker_and_in_what_that_calls() {
    let (network, store) = (Network::new(10), memory::Memory::new());
    let bank = node(&network, "bank").build().unwrap();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let traces = Arc::clone(&told);
    bank.route("transfer", move |incoming: Incoming| {
        traces.lock().unwrap().push(incoming.trace);
        async { Ok("\"done\"") }
    });
    listen(&network, &bank);
    let server = server(&network, &store).await;
    let spans = Arc::new(Spans::default());
    let observer = Arc::clone(&spans) as Arc<dyn Observer>;
    let _worker = worker(&network, "w1").observer(observer).register(pay).start().await.unwrap();
    until("the worker is there", async || !server.workers().is_empty()).await;
    let run = server.start("pay", &7).id("traced").await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "done");
    let (spans, told) = (spans.0.lock().unwrap(), told.lock().unwrap());
    let trace = Span::of_run(run.id()).trace;
    assert_eq!((spans.len(), *spans == *told), (1, true), "{spans:?} {told:?}");
    assert!(spans[0].contains(&trace), "it is the trace that the server sends of the run: {spans:?}");
}
