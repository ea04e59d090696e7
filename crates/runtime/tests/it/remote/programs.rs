//! The code that both sides of the tests know, and a memory of what it did that outlives engines and workers.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use steadfast_kernel::{Code as Why, Failure, Payload, Policy, Recovery, WorkflowName};
use steadfast_runtime::host::{Context, StepCall, Until};
use steadfast_runtime::{Code, Registered, Registry};
use tokio::sync::Semaphore;

type Outcome = Result<Payload, Failure>;

/// A function as code.
struct Fun<F>(F);

impl<F> Code for Fun<F>
where
    F: Fn(Context, Payload) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
{
    fn begin(&self, context: Context, input: Payload) -> BoxFuture<'static, Outcome> {
        (self.0)(context, input)
    }
}

/// What happened, by run and step.
#[derive(Default)]
struct Memory {
    calls: BTreeMap<String, u32>,
    /// Steps that wait for the test to let them go on.
    held: BTreeMap<String, Arc<Semaphore>>,
    /// Attempts that were dropped before they ended.
    dropped: BTreeMap<String, u32>,
}

static MEMORY: LazyLock<Mutex<Memory>> = LazyLock::new(Mutex::default);

fn memory<T>(with: impl FnOnce(&mut Memory) -> T) -> T {
    with(&mut MEMORY.lock().unwrap())
}

/// How often a step was called. Runs of different tests must have different ids.
pub(crate) fn calls(run: &str, step: &str) -> u32 {
    memory(|memory| memory.calls.get(&format!("{run}/{step}")).copied().unwrap_or_default())
}

/// How many attempts of it were dropped before they ended.
pub(crate) fn dropped(run: &str, step: &str) -> u32 {
    memory(|memory| memory.dropped.get(&format!("{run}/{step}")).copied().unwrap_or_default())
}

/// Forgets what was done in a run.
pub(crate) fn forget(run: &str) {
    let prefix = format!("{run}/");
    memory(|memory| memory.calls.retain(|key, _| !key.starts_with(&prefix)));
}

/// Lets so many attempts of a step go on that holds.
pub(crate) fn let_go(run: &str, step: &str, attempts: usize) {
    held(run, step).add_permits(attempts);
}

fn held(run: &str, step: &str) -> Arc<Semaphore> {
    memory(|memory| Arc::clone(memory.held.entry(format!("{run}/{step}")).or_insert_with(|| Arc::new(Semaphore::new(0)))))
}

/// Notes a call, and tells which it is.
fn call(context: &Context, step: &str) -> u32 {
    memory(|memory| {
        let count = memory.calls.entry(format!("{}/{step}", context.run_id())).or_default();
        *count += 1;
        *count
    })
}

struct Noticed(Option<String>);

impl Drop for Noticed {
    fn drop(&mut self) {
        if let Some(key) = self.0.take() {
            memory(|memory| *memory.dropped.entry(key).or_default() += 1);
        }
    }
}

/// A step that succeeds.
fn step<'a>(context: &Context, name: &'static str) -> StepCall<'a> {
    let inner = context.clone();
    let attempts = Box::new(move || {
        let count = call(&inner, name);
        async move { Ok(Payload::json(format!("\"{name} {count}\""))) }.boxed()
    });
    context.step(name, attempts).unwrap()
}

/// A step that holds until the test lets it go on.
fn holding<'a>(context: &Context, name: &'static str) -> StepCall<'a> {
    let inner = context.clone();
    let attempts = Box::new(move || {
        call(&inner, name);
        let (held, key) = (held(inner.run_id().as_str(), name), format!("{}/{name}", inner.run_id()));
        async move {
            let mut noticed = Noticed(Some(key));
            held.acquire().await.map_err(Failure::permanent)?.forget();
            noticed.0 = None;
            Ok(Payload::json("true"))
        }
        .boxed()
    });
    context.step(name, attempts).unwrap()
}

/// A step that fails the first time.
fn flaky<'a>(context: &Context, name: &'static str) -> StepCall<'a> {
    let inner = context.clone();
    let attempts = Box::new(move || {
        let count = call(&inner, name);
        async move { if count == 1 { Err(Failure::new(Why::Unavailable, "down")) } else { Ok(Payload::json("1")) } }.boxed()
    });
    let mut step = context.step(name, attempts).unwrap();
    step.set_policy(Policy::exponential(Duration::from_secs(2)));
    step
}

/// A step that can be undone.
fn undoable<'a>(context: &Context, name: &'static str) -> StepCall<'a> {
    let (mut step, inner) = (step(context, name), context.clone());
    let undo = Arc::new(move |_: Payload| {
        call(&inner, &format!("undo-{name}"));
        async { Ok(()) }.boxed()
    });
    step.set_undo(undo, Policy::default());
    step
}

/// A bit of everything.
async fn everything(context: Context, _: Payload) -> Outcome {
    step(&context, "first").await?;
    flaky(&context, "flaky").await?;
    context.note("half way".into()).unwrap();
    let chance = context.random("dice").unwrap();
    context.version("change", 1..=2).unwrap();
    let fork = context.fork("both").unwrap();
    let left = fork.branch(0, async { step(&context, "left").await });
    let right = fork.branch(1, async {
        context.sleep(Until::After(Duration::from_secs(60))).unwrap().await;
        step(&context, "right").await
    });
    let (left, right) = join(left, right).await;
    left?;
    right?;
    let child = context.start("child", Payload::json("2")).unwrap().start()?;
    child.await?;
    context.skip("unneeded").unwrap();
    let mut charge = step(&context, "charge");
    charge.set_not_repeatable();
    charge.await?;
    let mut asked = context.signal("go").unwrap();
    asked.set_within(Duration::from_secs(3600));
    let told = asked.await.map(|told| told.bytes).unwrap_or_else(|_| "\"nobody\"".into());
    let told = String::from_utf8(told.to_vec()).unwrap();
    Ok(Payload::json(format!("[{chance}, {told}]")))
}

/// Two steps, the first of which holds.
async fn holds(context: Context, _: Payload) -> Outcome {
    holding(&context, "hold").await?;
    step(&context, "after").await
}

/// Many steps in a row.
async fn ten(context: Context, _: Payload) -> Outcome {
    for name in ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"] {
        step(&context, name).await?;
    }
    step(&context, "s9").await
}

/// Does two things, waits, and fails: what it did is undone.
async fn undoes(context: Context, _: Payload) -> Outcome {
    undoable(&context, "reserve").await?;
    undoable(&context, "pack").await?;
    holding(&context, "hold").await?;
    Err(Failure::permanent("out of stock"))
}

/// A step that may not be repeated, and holds.
async fn once(context: Context, _: Payload) -> Outcome {
    let mut pay = holding(&context, "pay");
    pay.set_not_repeatable();
    pay.await
}

/// Waits to be told something.
async fn waits(context: Context, _: Payload) -> Outcome {
    step(&context, "before").await?;
    context.signal("go").unwrap().await
}

/// Sleeps for a day.
async fn sleeps(context: Context, _: Payload) -> Outcome {
    context.sleep(Until::After(Duration::from_secs(24 * 3600))).unwrap().await;
    step(&context, "after").await
}

async fn child(context: Context, input: Payload) -> Outcome {
    step(&context, "of-child").await?;
    Ok(input)
}

/// Begins again twice.
async fn continues(context: Context, input: Payload) -> Outcome {
    step(&context, "round").await?;
    let round: u32 = std::str::from_utf8(&input.bytes).unwrap().parse().unwrap();
    if round < 3 { Err(context.continue_as_new(Payload::json((round + 1).to_string())).unwrap()) } else { Ok(input) }
}

/// Returns something large.
async fn large(context: Context, _: Payload) -> Outcome {
    let big = || async { Ok(Payload::json(vec![b'7'; 1 << 20])) }.boxed();
    for _ in 0..3 {
        context.step("big", Box::new(big)).unwrap().await?;
    }
    step(&context, "small").await
}

/// Has a long journal when it holds.
async fn heavy(context: Context, _: Payload) -> Outcome {
    large(context.clone(), Payload::json("null")).await?;
    holding(&context, "hold").await
}

/// Returns so much at once that it does not fit into one message.
async fn huge(context: Context, _: Payload) -> Outcome {
    let big = || async { Ok(Payload::json(vec![b'7'; 1 << 20])) }.boxed();
    let fork = context.fork("all").unwrap();
    let steps = (0..4).map(|index| {
        let context = context.clone();
        fork.branch(index, async move { context.step("big", Box::new(big)).unwrap().await })
    });
    futures_util::future::try_join_all(steps).await?;
    Ok(Payload::json("null"))
}

/// All of them.
pub(crate) fn all() -> Registry {
    let registry = Registry::default();
    macro_rules! add {
        ($($name:ident),+) => {$(
            registry.insert(
                WorkflowName::new(stringify!($name)).unwrap(),
                Registered::new(Arc::new(Fun(|context, input| $name(context, input).boxed()))),
            );
        )+};
    }
    add!(everything, holds, ten, undoes, once, waits, sleeps, child, continues, large, heavy, huge);
    let manual = Registered::new(Arc::new(Fun(|context, input| holds(context, input).boxed())));
    registry.insert(WorkflowName::new("manual").unwrap(), Registered { recovery: Recovery::Manual, ..manual });
    registry
}

/// Only these.
pub(crate) fn only(names: &[&str]) -> Registry {
    let (registry, all) = (Registry::default(), all());
    for name in names {
        let name = WorkflowName::new(name).unwrap();
        registry.insert(name.clone(), all.get(&name).unwrap());
    }
    registry
}
