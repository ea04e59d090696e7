//! The workflow that executes any program and returns what it has seen.

use super::program::{Body, Node, Program, Step};
use super::trail::{Made, Place, Seen, Trail, What, life, note};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use steadfast::{Ctx, Failure, Policy, workflow};

/// How many attempts a step has.
pub(super) const ATTEMPTS: u32 = 3;
/// How many attempts an undo has: more than ever fail.
pub(super) const UNDO_ATTEMPTS: u32 = 4;
/// The longest piece of a trail that fits into one cause of a failure.
const PIECE: usize = 4000;

#[workflow]
pub(super) async fn execute(ctx: Ctx, program: Program) -> Result<Trail, Failure> {
    let code = Code { ctx, ticks: AtomicU32::new(0), life: life() };
    let trail = code.body(&Place::default(), &program.0).await;
    if trail.failed.is_some() { Err(failure(&trail)) } else { Ok(trail) }
}

/// A failure that carries the trail to it.
fn failure(trail: &Trail) -> Failure {
    let text = serde_json::to_string(trail).expect("a trail can be written");
    let pieces = text.as_bytes().chunks(PIECE).map(String::from_utf8_lossy);
    pieces.fold(Failure::permanent("the program has failed"), |failure, piece| failure.cause(piece))
}

/// The trail that a failure carries.
pub(super) fn trail_of(failure: &Failure) -> Option<Trail> {
    serde_json::from_str(&failure.causes.concat()).ok()
}

pub(super) fn within(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

struct Code {
    ctx: Ctx,
    /// Counts what is seen, over all branches: if the order of deliveries changes, so does this.
    ticks: AtomicU32,
    life: u32,
}

type Found = (What, Option<String>);

impl Code {
    fn body<'a>(&'a self, place: &'a Place, body: &'a Body) -> BoxFuture<'a, Trail> {
        async move {
            let mut trail = Trail { seen: Vec::new(), failed: None };
            for node in body {
                let (what, failed) = self.node(place, node).await;
                let (tick, at) = (self.ticks.fetch_add(1, Ordering::Relaxed), self.ctx.now().as_micros());
                trail.seen.push(Seen { tick, at, what });
                trail.failed = failed;
                if trail.failed.is_some() {
                    break;
                }
            }
            trail
        }
        .boxed()
    }

    /// As a branch with a place of its own.
    fn branch<'a>(&'a self, place: Place, body: &'a Body) -> BoxFuture<'a, Trail> {
        async move { self.body(&place, body).await }.boxed()
    }

    async fn node(&self, place: &Place, node: &Node) -> Found {
        match node {
            Node::Step(step) => self.step(place.step(&step.name), step).await,
            Node::Sleep(millis) => match self.ctx.sleep(within(*millis)).await {
                Ok(()) => (What::Slept, None),
                Err(failure) => failed(&failure),
            },
            Node::Signal { name, within } => self.signal(name, *within).await,
            Node::Random => (What::Drew(self.ctx.random()), None),
            Node::Fail => failed(&Failure::permanent("asked to fail")),
            Node::Join(bodies) => each(self.join(place.branches("join", bodies.len()), bodies).await),
            Node::Race(bodies) => {
                let places = place.branches("race", bodies.len());
                let branches: Vec<_> = places.into_iter().zip(bodies).map(|(place, body)| self.branch(place, body)).collect();
                let (index, trail) = self.ctx.race(branches).await;
                let failed = trail.failed.clone();
                (What::Won(index, trail), failed)
            }
            Node::All(times, body) => {
                let places = place.branches("all", *times);
                each(self.ctx.all(places.into_iter().map(|place| self.branch(place, body))).await)
            }
            Node::Loop(times, body) => {
                let mut rounds: Vec<Trail> = Vec::new();
                while rounds.len() < *times && rounds.last().is_none_or(|round| round.failed.is_none()) {
                    rounds.push(self.body(place, body).await);
                }
                each(rounds)
            }
            Node::Branch(name, body) => {
                let trail = self.ctx.branch(name, self.branch(place.branch(name), body)).await;
                let failed = trail.failed.clone();
                (What::Within(trail), failed)
            }
            Node::Try(body) => (What::Within(self.body(place, body).await), None),
        }
    }

    async fn step(&self, id: String, step: &Step) -> Found {
        let attempts = || {
            let attempt = self.ctx.attempt();
            note(Made { life: self.life, step: id.clone(), attempt, undo: false });
            let (id, step) = (id.clone(), step.clone());
            async move { attempt_of(id, &step, attempt).await }
        };
        let policy = Policy::exponential(within(20)).max_attempts(ATTEMPTS);
        let mut call = self.ctx.step(&step.name, attempts).retry(policy);
        if let Some(fails) = step.undo {
            let (ctx, life) = (self.ctx.clone(), self.life);
            call = call
                .undo(move |step: String| {
                    let attempt = ctx.attempt();
                    note(Made { life, step: step.clone(), attempt, undo: true });
                    async move { if attempt <= fails { Err(Failure::transient(format!("{step} cannot be undone yet"))) } else { Ok(()) } }
                })
                .undo_retry(Policy::exponential(within(10)).max_attempts(UNDO_ATTEMPTS));
        }
        match call.await {
            Ok(output) => (What::Output(output), None),
            Err(failure) => failed(&failure),
        }
    }

    async fn signal(&self, name: &str, millis: Option<u64>) -> Found {
        let mut call = self.ctx.signal::<u64>(name);
        if let Some(millis) = millis {
            call = call.within(within(millis));
        }
        match call.await {
            Ok(said) => (What::Signal(said), None),
            Err(failure) if failure.code == steadfast::Code::DeadlineExceeded => (What::TooLate, None),
            Err(failure) => failed(&failure),
        }
    }

    async fn join(&self, places: Vec<Place>, bodies: &[Body]) -> Vec<Trail> {
        let mut places = places.into_iter();
        let mut next = |index: usize| self.branch(places.next().expect("a place per branch"), &bodies[index]);
        match bodies.len() {
            2 => <[Trail; 2]>::from(self.ctx.join((next(0), next(1))).await).into(),
            3 => <[Trail; 3]>::from(self.ctx.join((next(0), next(1), next(2))).await).into(),
            4 => <[Trail; 4]>::from(self.ctx.join((next(0), next(1), next(2), next(3))).await).into(),
            other => panic!("no program joins {other} branches"),
        }
    }
}

async fn attempt_of(id: String, step: &Step, attempt: u32) -> Result<String, Failure> {
    if step.takes > 0 {
        tokio::time::sleep(within(step.takes)).await;
    }
    if attempt <= step.transient {
        return Err(Failure::transient(down(&id)));
    }
    if step.fails { Err(Failure::permanent(refused(&id))) } else { Ok(id) }
}

/// What a failure looks like in a trail.
pub(super) fn shown(message: &str, attempts: u32) -> String {
    format!("{message} ({attempts})")
}

pub(super) fn down(id: &str) -> String {
    format!("{id} is down")
}

pub(super) fn refused(id: &str) -> String {
    format!("{id} is refused")
}

fn failed(failure: &Failure) -> Found {
    let shown = shown(&failure.message, failure.attempts);
    (What::Failed(shown.clone()), Some(shown))
}

/// Side by side or one after another: the first failure in the order of the program counts.
fn each(trails: Vec<Trail>) -> Found {
    let failed = trails.iter().find_map(|trail| trail.failed.clone());
    (What::Each(trails), failed)
}
