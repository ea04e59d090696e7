//! What the code of a run does: a plan, drawn at random, that may start runs with plans of their own.

use super::ledger;
use crate::torture::script::Chance;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use steadfast::{Ctx, EngineBuilder, Failure, Policy, Settings, workflow};

/// How long an attempt that hangs is waited for.
const TIMEOUT: Duration = Duration::from_millis(12);

/// The slots of every key; the number never changes, so that nobody ever holds one too many.
pub(super) const SLOTS: u32 = 2;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan(pub(super) Vec<Act>);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Act {
    Step(Step),
    Sleep(u64),
    /// Waits for a word, for so long at the most.
    Listen(Option<u64>),
    Note,
    Child(Child),
    /// Side by side.
    Both(Plan, Plan),
    /// The rest is done in another life.
    Continue,
    Fail,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Step {
    does: Does,
    attempts: u32,
    undo: Option<Undo>,
    /// An attempt that may have happened is not simply made again; with a probe, or a person has to say.
    once: Option<bool>,
    /// The code goes on if it fails.
    gets_over_it: bool,
}

/// What the attempts of a step do; calls are counted over all lives of the run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Does {
    Succeed { ms: u64 },
    FailAtFirst { calls: u32, as_: Kind },
    HangAtFirst,
    PanicAtFirst,
    Beat { times: u64, fails: u32 },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Kind {
    Transient,
    Permanent,
    Poison,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Undo {
    Works,
    FailsAtFirst { calls: u32 },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Child {
    plan: Plan,
    wait: WaitFor,
    limited: bool,
    deadline_ms: Option<u64>,
    gets_over_it: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum WaitFor {
    Now,
    /// After everything else.
    Later,
    Never,
    Detached,
}

impl Plan {
    /// A plan of a run so deep in its family.
    pub(super) fn draw(chance: &mut Chance, depth: usize) -> Self {
        Plan((0..chance.below(6)).map(|_| Act::draw(chance, depth, true)).collect())
    }
}

impl Act {
    fn draw(chance: &mut Chance, depth: usize, alone: bool) -> Self {
        match chance.below(20) {
            0 | 1 => Act::Sleep(chance.below(40)),
            2 => Act::Listen((chance.below(2) == 0).then(|| chance.below(60))),
            3 => Act::Note,
            4..=7 if depth < 2 => Act::Child(Child {
                plan: Plan::draw(chance, depth + 1),
                wait: [WaitFor::Now, WaitFor::Now, WaitFor::Later, WaitFor::Never, WaitFor::Detached][chance.below(5) as usize],
                limited: chance.below(3) == 0,
                deadline_ms: (chance.below(8) == 0).then(|| chance.below(150)),
                gets_over_it: chance.below(2) == 0,
            }),
            8 | 9 if alone => {
                let branch = |chance: &mut Chance| Plan((0..chance.below(3)).map(|_| Act::draw(chance, depth, false)).collect());
                Act::Both(branch(chance), branch(chance))
            }
            10 if alone && chance.below(2) == 0 => Act::Continue,
            11 if chance.below(3) == 0 => Act::Fail,
            _ => Act::Step(Step::draw(chance)),
        }
    }
}

impl Step {
    fn draw(chance: &mut Chance) -> Self {
        let calls = 1 + chance.below(4) as u32;
        let does = match chance.below(10) {
            0 => Does::FailAtFirst { calls, as_: Kind::Transient },
            1 => Does::FailAtFirst { calls, as_: Kind::Permanent },
            2 | 3 => Does::FailAtFirst { calls, as_: Kind::Poison },
            4 => Does::HangAtFirst,
            5 => Does::PanicAtFirst,
            6 => Does::Beat { times: 1 + chance.below(4), fails: chance.below(3) as u32 },
            _ => Does::Succeed { ms: chance.below(12) },
        };
        let undo = match chance.below(4) {
            0 => Some(Undo::Works),
            1 => Some(Undo::FailsAtFirst { calls: chance.below(4) as u32 }),
            _ => None,
        };
        let once = (chance.below(5) == 0).then(|| chance.below(2) == 0);
        Step { does, attempts: 1 + chance.below(3) as u32, undo, once, gets_over_it: chance.below(3) == 0 }
    }
}

#[workflow]
async fn top(ctx: Ctx, plan: Plan) -> Result<u64, Failure> {
    Code { ctx, child: "middle" }.play(&plan).await
}

#[workflow]
async fn manual(ctx: Ctx, plan: Plan) -> Result<u64, Failure> {
    Code { ctx, child: "middle" }.play(&plan).await
}

#[workflow]
async fn middle(ctx: Ctx, plan: Plan) -> Result<u64, Failure> {
    Code { ctx, child: "low" }.play(&plan).await
}

#[workflow]
async fn low(ctx: Ctx, plan: Plan) -> Result<u64, Failure> {
    Code { ctx, child: "none" }.play(&plan).await
}

/// Runs only wait for the slots of runs below them, so that none waits in a circle.
pub(super) fn register(engine: EngineBuilder) -> EngineBuilder {
    engine
        .register(top)
        .register_with(manual, Settings::new().manual_recovery().limit(2))
        .register_with(middle, Settings::new().limit(2))
        .register_with(low, Settings::new().manual_recovery())
}

struct Code {
    ctx: Ctx,
    child: &'static str,
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Code {
    fn play<'a>(&'a self, plan: &'a Plan) -> BoxFuture<'a, Result<u64, Failure>> {
        async move {
            let (mut sum, mut later) = (0, Vec::new());
            for (place, act) in plan.0.iter().enumerate() {
                sum += match act {
                    Act::Step(step) => self.step(&format!("s{place}"), step).await?,
                    Act::Sleep(time) => self.ctx.sleep(ms(*time)).await.map(|()| 1)?,
                    Act::Listen(within) => self.listen(*within).await?,
                    Act::Note => {
                        self.ctx.note(format!("at {place}"));
                        1
                    }
                    Act::Child(child) => {
                        let started = self.start(child).await?;
                        match child.wait {
                            WaitFor::Now => over(started.result::<u64>().await, child.gets_over_it)?,
                            WaitFor::Later => {
                                later.push((started, child.gets_over_it));
                                0
                            }
                            WaitFor::Never | WaitFor::Detached => 0,
                        }
                    }
                    Act::Both(one, other) => {
                        let (one, other) = self.ctx.join((self.play(one), self.play(other))).await;
                        one? + other?
                    }
                    Act::Continue => return self.ctx.continue_as_new(&Plan(plan.0[place + 1..].to_vec())),
                    Act::Fail => return Err(Failure::permanent("as planned")),
                };
            }
            for (child, gets_over_it) in later {
                sum += over(child.result().await, gets_over_it)?;
            }
            Ok(sum)
        }
        .boxed()
    }

    async fn start(&self, child: &Child) -> Result<steadfast::Child, Failure> {
        let mut start = self.ctx.start(self.child, &child.plan);
        if child.limited {
            start = start.limit(&format!("under-{}", self.child), SLOTS);
        }
        if let Some(deadline) = child.deadline_ms {
            start = start.deadline(ms(deadline));
        }
        if child.wait == WaitFor::Detached {
            start = start.detached();
        }
        start.await
    }

    async fn listen(&self, within: Option<u64>) -> Result<u64, Failure> {
        let mut signal = self.ctx.signal::<u64>("word");
        if let Some(within) = within {
            signal = signal.within(ms(within));
        }
        match signal.await {
            Err(failure) if failure.code == steadfast::Code::DeadlineExceeded => Ok(0),
            said => said,
        }
    }

    async fn step(&self, name: &str, step: &Step) -> Result<u64, Failure> {
        let policy = Policy::constant(ms(8)).max_attempts(step.attempts);
        let mut call = self.ctx.step(name, || self.attempt(step)).retry(policy).timeout(TIMEOUT);
        if let Some(probed) = step.once {
            call = call.not_repeatable();
            if probed {
                call = call.probe(|| async { Ok::<_, Failure>(ledger::happened(&self.ctx).then_some(9)) });
            }
        }
        if let Some(undo) = step.undo {
            let ctx = self.ctx.clone();
            call = call
                .undo(move |_: u64| {
                    let call = ledger::begun(&ctx);
                    async move {
                        match undo {
                            Undo::FailsAtFirst { calls } if call <= calls => Err(Failure::transient("cannot be undone yet")),
                            _ => Ok(()),
                        }
                    }
                })
                .undo_retry(Policy::constant(ms(5)).max_attempts(2));
        }
        over(call.await, step.gets_over_it)
    }

    async fn attempt(&self, step: &Step) -> Result<u64, Failure> {
        let call = ledger::begun(&self.ctx);
        match step.does {
            Does::FailAtFirst { calls, as_ } if call <= calls => {
                tokio::time::sleep(ms(1)).await;
                return Err(match as_ {
                    Kind::Transient => Failure::transient("not yet"),
                    Kind::Permanent => Failure::permanent("no"),
                    Kind::Poison => Failure::poison("cannot be understood"),
                });
            }
            Does::HangAtFirst if call <= 1 => std::future::pending().await,
            Does::PanicAtFirst if call <= 1 => panic!("at first"),
            Does::Beat { times, fails } => self.beat(times, call <= fails).await?,
            Does::Succeed { ms: time } => tokio::time::sleep(ms(time)).await,
            _ => {}
        }
        if step.once.is_some() {
            ledger::happens(&self.ctx);
        }
        Ok(u64::from(call))
    }

    async fn beat(&self, times: u64, fails: bool) -> Result<(), Failure> {
        ledger::recalled(&self.ctx, self.ctx.last_heartbeat::<u64>()?);
        let heartbeat = self.ctx.heartbeat();
        for n in 1..=times {
            ledger::beats(&self.ctx, n);
            heartbeat.beat(&n)?;
            tokio::time::sleep(ms(2)).await;
        }
        if fails { Err(Failure::transient("not yet")) } else { Ok(()) }
    }
}

fn over(outcome: Result<u64, Failure>, gets_over_it: bool) -> Result<u64, Failure> {
    if gets_over_it { Ok(outcome.unwrap_or(1000)) } else { outcome }
}
