//! Workflows that come to every status there is, some of them with texts that would like to be more than text.

#[path = "rollouts.rs"]
pub(crate) mod rollouts;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use steadfast_kernel::{Failure, LetterId, Payload, Policy, Recovery, WorkflowName};
use steadfast_runtime::clock::{Clock, SystemClock};
use steadfast_runtime::host::{Context, Until};
use steadfast_runtime::{Builder, Callbacks, Caller, Code, Engine, MessageLetter, Redeliver, Registered};
use steadfast_server::{CallerSettings, HttpCaller};
use steadfast_store::memory::Memory;

/// What a hostile service answers.
pub(crate) const HOSTILE: &str = "card declined <script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";

/// Delivers every message but those whose request begins with `bad`, and takes three seconds for those that begin with `slow`.
pub(crate) struct Post;

impl Redeliver for Post {
    fn deliver(&self, _: LetterId, message: MessageLetter) -> BoxFuture<'static, Result<(), Failure>> {
        let outcome = if message.request.starts_with("bad") { Err(Failure::transient("the peer is still away")) } else { Ok(()) };
        let takes = Duration::from_secs(if message.request.starts_with("slow") { 3 } else { 0 });
        async move {
            SystemClock.sleep(takes).await;
            outcome
        }
        .boxed()
    }
}

/// What the workflows find outside.
#[derive(Clone, Default)]
pub(crate) struct World {
    /// The card of `declined` is good by now.
    pub(crate) mended: Arc<AtomicBool>,
}

type Outcome = Result<Payload, Failure>;
type Body = fn(Context, Payload, World) -> BoxFuture<'static, Outcome>;

struct Flow(Body, World);

impl Code for Flow {
    fn begin(&self, context: Context, input: Payload) -> BoxFuture<'static, Outcome> {
        (self.0)(context, input, self.1.clone())
    }
}

/// An engine with all of them.
pub(crate) async fn engine(store: Memory, world: &World) -> Engine {
    let policy = Policy::constant(Duration::from_secs(3600)).max_attempts(5);
    let callbacks = Callbacks { policy, ..Callbacks::default() };
    let config = steadfast_runtime::Config { callbacks, ..steadfast_runtime::Config::default() };
    let caller: Arc<dyn Caller> = Arc::new(HttpCaller::new(CallerSettings::default()).unwrap());
    let builder = Builder { config, caller: Some(caller), redeliver: Some(Arc::new(Post)), ..Builder::new(Arc::new(store)) };
    let flows: [(&str, Body); 10] = [
        ("checkout", checkout),
        ("declined", declined),
        ("sick", sick),
        ("away", away),
        ("hold", hold),
        ("approve", approve),
        ("nap", nap),
        ("family", family),
        ("slow", slow),
        ("team/poison", poison),
    ];
    for (name, body) in flows {
        let registered = Registered::new(Arc::new(Flow(body, world.clone())));
        let recovery = if name == "slow" { Recovery::Manual } else { Recovery::Automatic };
        builder.registry.insert(WorkflowName::new(name).unwrap(), Registered { recovery, ..registered });
    }
    builder.registry.insert(WorkflowName::new("eu/switch").unwrap(), rollouts::plan(world));
    builder.start().await.unwrap()
}

fn cannot_ask(error: impl std::fmt::Display) -> Failure {
    Failure::permanent(error)
}

/// A step whose attempts take that long.
async fn step(context: &Context, name: &str, policy: Policy, takes: u64, mut attempt: impl FnMut(u32) -> Outcome + Send) -> Outcome {
    let mut number = 0;
    let attempts = Box::new(move || {
        number += 1;
        let outcome = attempt(number);
        async move {
            SystemClock.sleep(Duration::from_millis(takes)).await;
            outcome
        }
        .boxed()
    });
    let mut call = context.step(name, attempts).map_err(cannot_ask)?;
    call.set_policy(policy);
    call.await
}

fn few() -> Policy {
    Policy::constant(Duration::from_millis(400)).max_attempts(4)
}

fn checkout(context: Context, input: Payload, _: World) -> BoxFuture<'static, Outcome> {
    async move {
        step(&context, "reserve", few(), 120, |_| Ok(Payload::json(r#"{"reservation":"r-17","items":[{"sku":"tea","count":2}]}"#))).await?;
        step(&context, "charge", few(), 90, |attempt| match attempt {
            1 | 2 => Err(Failure::transient("payments: 503 Service Unavailable")),
            _ => Ok(Payload::json(r#"{"id":5,"amount":"19.90"}"#)),
        })
        .await?;
        context.skip("gift-wrap").map_err(cannot_ask)?;
        let long = format!("{{\"label\":\"{}\"}}", "wide ".repeat(100));
        step(&context, "ship", few(), 200, |_| Ok(Payload::json(long.clone()))).await?;
        Ok(input)
    }
    .boxed()
}

fn declined(context: Context, _: Payload, world: World) -> BoxFuture<'static, Outcome> {
    async move {
        step(&context, "reserve", few(), 20, |_| Ok(Payload::json("7"))).await?;
        step(&context, "charge", few(), 20, |_| {
            if world.mended.load(Ordering::Relaxed) {
                return Ok(Payload::json("\"paid\""));
            }
            let mut failure = Failure::permanent(HOSTILE);
            failure.causes = vec!["the bank said no".into(), "insufficient funds".into()];
            Err(failure)
        })
        .await
    }
    .boxed()
}

fn sick(context: Context, _: Payload, _: World) -> BoxFuture<'static, Outcome> {
    async move {
        step(&context, "quote", few(), 250, |_| Ok(Payload::json("12"))).await?;
        let policy = Policy::exponential(Duration::from_millis(300))
            .factor(4.0)
            .max_attempts(8)
            .max_delay(Duration::from_secs(3600));
        step(&context, "order", policy, 150, |_| Err(Failure::transient("connect: connection refused (10.0.0.7:443)"))).await
    }
    .boxed()
}

fn away(context: Context, _: Payload, _: World) -> BoxFuture<'static, Outcome> {
    async move {
        let hourly = Policy::constant(Duration::from_secs(3_600));
        step(&context, "call", hourly, 1, |_| Err(Failure::transient("no answer"))).await
    }
    .boxed()
}

fn hold(context: Context, _: Payload, _: World) -> BoxFuture<'static, Outcome> {
    async move { context.signal("go").map_err(cannot_ask)?.await }.boxed()
}

fn approve(context: Context, _: Payload, _: World) -> BoxFuture<'static, Outcome> {
    async move {
        step(&context, "prepare", few(), 60, |_| Ok(Payload::json("{\"diff\":3}"))).await?;
        let mut approval = context.approval("release", vec!["operator".into()]).map_err(cannot_ask)?;
        approval.set_within(Duration::from_secs(7_200));
        approval.await
    }
    .boxed()
}

fn nap(context: Context, _: Payload, _: World) -> BoxFuture<'static, Outcome> {
    async move {
        step(&context, "measure", few(), 15, |_| Ok(Payload::json("1"))).await?;
        context.note("measured once; again tomorrow".into()).map_err(cannot_ask)?;
        context.sleep(Until::After(Duration::from_secs(86_400))).map_err(cannot_ask)?.await;
        Ok(Payload::json("2"))
    }
    .boxed()
}

fn family(context: Context, input: Payload, _: World) -> BoxFuture<'static, Outcome> {
    async move { context.start("hold", input).map_err(cannot_ask)?.start()?.await }.boxed()
}

fn slow(context: Context, _: Payload, _: World) -> BoxFuture<'static, Outcome> {
    async move {
        step(&context, "open", few(), 80, |_| Ok(Payload::json("true"))).await?;
        step(&context, "copy", few(), 3_600_000, |_| Ok(Payload::json("true"))).await
    }
    .boxed()
}

fn poison(context: Context, _: Payload, _: World) -> BoxFuture<'static, Outcome> {
    async move { step(&context, "read", Policy::once(), 5, |_| Err(Failure::poison("not a letter: unexpected end of file"))).await }.boxed()
}
