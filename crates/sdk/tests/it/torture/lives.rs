//! Families of runs with several lives, under limits, with letters, and an operator who asks for anything at any moment: whatever happens, the facts
//! hold, and when the faults are over every run can be brought to its end.

mod entities;
mod facts;
mod ledger;
mod operator;
mod plan;
pub(super) mod swept;

use super::script::Chance;
use super::{Ground, MS, PATIENCE, dead, plan_faults, shards};
use futures_util::future::join_all;
use ledger::Ledger;
use operator::{Operator, answer};
use plan::{Plan, SLOTS};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast::{Engine, EngineBuilder, Error, Retention, Status, Wait};
use steadfast_kernel::EntityId;
use tokio::time::Instant;

/// How many types of events there are: every one of them happens.
pub(super) const KINDS: usize = 34;

struct Top {
    id: String,
    workflow: &'static str,
    plan: Plan,
    deadline: Option<Duration>,
    limited: bool,
}

impl Top {
    fn draw(chance: &mut Chance, id: String) -> Self {
        Top {
            id,
            workflow: if chance.below(3) == 0 { "manual" } else { "top" },
            plan: Plan::draw(chance, 0),
            deadline: (chance.below(6) == 0).then(|| chance.below(300) as u32 * MS),
            limited: chance.below(2) == 0,
        }
    }
}

/// A few processes one after the other, all but the last with faults. Tells which events have happened.
pub(super) fn case(ground: Ground, seed: u64) -> BTreeSet<&'static str> {
    let mut chance = Chance::new(seed);
    let tops: Vec<_> = (0..1 + chance.below(4))
        .map(|n| Top::draw(&mut chance, format!("lives-{ground:?}-{seed}-{n}")))
        .collect();
    let slack = if matches!(ground, Ground::Virtual) { Duration::ZERO } else { 50 * MS };
    let ledger = Ledger::of(shards::store(&mut chance), tops.iter().map(|top| top.id.clone()).collect(), slack);
    let (mut operator, mut lived) = (Operator::default(), Duration::ZERO);
    for left in (0..1 + chance.below(5)).rev() {
        lived += ground.runtime().block_on(async {
            let engine = ground.engine(&ledger.store(), lived, Retention::new()).await;
            if left > 0 {
                plan_faults(&mut chance, &ledger.store());
                disturbed(&mut chance, &ledger, &tops, &mut operator, engine).await
            } else {
                healed(&mut chance, &ledger, &tops, &mut operator, engine).await
            }
        });
        if left > 0 {
            ledger.restart();
        }
        facts::always(&ledger);
    }
    facts::at_rest(&ledger);
    facts::kinds(&ledger)
}

/// A process that ends when the store is dead, or after a random while.
async fn disturbed(chance: &mut Chance, ledger: &Ledger, tops: &[Top], operator: &mut Operator, engine: EngineBuilder) -> Duration {
    let (store, begun) = (ledger.store(), Instant::now());
    let (life, gently, every) = (chance.below(200) as u32 * MS, chance.below(3) == 0, 2 + chance.below(20));
    let engine = plan::register(engine).start().await.unwrap();
    let work = async {
        tokio::join!(join_all(tops.iter().map(|top| start(&engine, ledger, top))), operator.operate(chance, ledger, &engine, 40, every));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = work => {}
        () = dead(&store) => {}
        () = tokio::time::sleep(life) => {}
    }
    if gently {
        engine.shutdown().await;
    }
    begun.elapsed()
}

/// A process without faults: everything comes to its end, is asked for more, and comes to its end again.
async fn healed(chance: &mut Chance, ledger: &Ledger, tops: &[Top], operator: &mut Operator, engine: EngineBuilder) -> Duration {
    let begun = Instant::now();
    let engine = plan::register(engine).start().await.unwrap();
    join_all(tops.iter().map(|top| start(&engine, ledger, top))).await;
    converge(chance, ledger, &engine).await;
    facts::at_rest(ledger);
    operator.operate(chance, ledger, &engine, 10, 30).await;
    converge(chance, ledger, &engine).await;
    for run in ledger.runs() {
        let replayed = engine.replay(run.as_str()).await.unwrap();
        let lines = || entities::life(&ledger.store(), &EntityId::Run(run.clone())).lines();
        assert!(replayed.mismatch.is_none(), "{run}: {:?} {:#?}", replayed.mismatch, lines());
    }
    engine.shutdown().await;
    begun.elapsed()
}

/// Starts a run as often as it takes.
async fn start(engine: &Engine, ledger: &Ledger, top: &Top) {
    loop {
        let mut start = engine.start(top.workflow, &top.plan).id(&top.id);
        if let Some(deadline) = top.deadline {
            start = start.deadline(deadline);
        }
        if top.limited {
            start = start.limit("tops", SLOTS);
        }
        match start.await {
            Ok(run) => return ledger.started(&top.id, run.is_new()),
            Err(error) if error.code() == "SF0103" => return, // it was started with another plan, and is kept
            Err(error) => tokio::time::sleep(error.retry_after().expect("only what passes")).await,
        }
    }
}

/// Sees to whatever waits for a person, until every run has ended.
async fn converge(chance: &mut Chance, ledger: &Ledger, engine: &Engine) {
    let begun = Instant::now();
    while !rests(ledger).await {
        for run in ledger.runs() {
            match see_to(chance, ledger, engine, run.as_str()).await {
                Err(error) if !["SF0104", "SF0105", "SF0109", "SF0112", "SF0113"].contains(&error.code()) => panic!("{run}: {error:?}"),
                _ => {}
            }
        }
        tokio::time::sleep(3 * MS).await;
        assert!(begun.elapsed() < PATIENCE, "left alone, the runs do not end: {:#?}", stuck(ledger, engine).await);
    }
}

async fn rests(ledger: &Ledger) -> bool {
    ledger.open_runs().is_empty() && shards::outbox(&ledger.store()).is_empty()
}

async fn see_to(chance: &mut Chance, ledger: &Ledger, engine: &Engine, id: &str) -> Result<(), Error> {
    let run = engine.run(id)?;
    let view = run.view().await?;
    let blocked = view.waits.iter().any(|wait| matches!(wait, Wait::NoWorker { .. } | Wait::Mismatch { .. }));
    assert!(!blocked, "{view:?} {:#?}", entities::life(&ledger.store(), &EntityId::Run(run.id().clone())).lines());
    assert!(!matches!(view.status, Status::Waiting | Status::Ready) || !view.waits.is_empty(), "it waits for nothing: {view:?}");
    match (view.status, chance.below(6)) {
        (Status::Paused, 0) => run.cancel().await,
        (Status::Paused, _) => run.resume().await,
        (Status::Interrupted, 0) => run.cancel().await,
        (Status::Interrupted, 1) => run.terminate().await,
        (Status::Interrupted, 2) => run.retry().from_start().await,
        (Status::Interrupted, _) => run.retry().await,
        (_, how) if !view.waits.is_empty() => answer(ledger, &run, how).await,
        _ => Ok(()),
    }
}

async fn stuck(ledger: &Ledger, engine: &Engine) -> Vec<String> {
    let mut stuck = vec![format!("{:?}", shards::outbox(&ledger.store()))];
    for run in ledger.open_runs() {
        let view = engine.run(run.as_str()).unwrap().view().await;
        stuck.push(format!("{view:?} {:#?}", entities::life(&ledger.store(), &EntityId::Run(run)).lines()));
    }
    stuck
}
