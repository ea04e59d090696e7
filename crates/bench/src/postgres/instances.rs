//! Several instances on one database: what they do together beside one alone, and how soon what a killed one had goes on.
//!
//! Every instance is a process of its own, which is this program; all of them share this machine and the database. Each starts its own runs, whose ids are drawn so that they are its own;
//! with names (`three-instances-named`), two in three of them belong to shards of another one, so that the start and the result go over the network.

use crate::load::{Span, slice};
use crate::report::{Measured, Report};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use steadfast::cluster::{Cluster, Line, Member};
use steadfast::messages::Node;
use steadfast::{Clock, Ctx, Engine, Failure, RunId, SystemClock, Timestamp, workflow};
use steadfast_store_postgres::{Postgres, Settings};
use steadfast_test_servers::PostgresServer;

/// How many runs there are at once, over all instances.
const RUNS: usize = 256;

const STEPS: u32 = 10;

/// As long as it is by default.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// For those who have no time to wait for the end of one.
const SHORT_LEASE: Duration = Duration::from_secs(3);

/// How many runs are under way when an instance is killed.
const UNDER_WAY: usize = 100;

/// What the runs that tick have done in this process, at last.
static TICKS: LazyLock<Mutex<BTreeMap<RunId, Timestamp>>> = LazyLock::new(Mutex::default);

/// One instance, in this process.
pub(super) struct Instance {
    pub(super) engine: Engine,
    node: Node,
}

impl Instance {
    pub(super) async fn start(url: &str, lease: Duration) -> Result<Self> {
        let store = Postgres::open(Settings::new(url)).await?;
        let node = Node::bind("127.0.0.1:0").await.map_err(|failure| anyhow!("{failure}"))?;
        let address = format!("http://{}", node.addr().context("it listens")?);
        let id = store.process().to_owned();
        let member = Member { id, name: "bench".into(), address, version: env!("CARGO_PKG_VERSION").into() };
        let carrier = Arc::new(Line::new(node.clone()));
        let cluster = Cluster { leases: Arc::new(store.leases(lease)), member, carrier };
        let builder = Engine::on(store).register(crate::runs::steps).register(super::sleeps).register(tick);
        let engine = builder.cluster(cluster).start().await?;
        engine.answer_instances(&node);
        Ok(Instance { engine, node })
    }

    /// Waits until so many instances have divided the shards among them.
    async fn shared_by(&self, instances: usize) -> Result<()> {
        loop {
            let view = self.engine.cluster().await?.context("it is shared")?;
            let held = |id: &str| view.leases.iter().filter(|lease| !lease.is_over && lease.holder.as_deref() == Some(id)).count();
            let least = view.leases.len() / instances;
            let is_fair = |share: usize| share >= least.saturating_sub(instances) && share > 0;
            if view.instances.len() == instances && view.instances.iter().all(|instance| is_fair(held(&instance.member.id))) {
                return Ok(());
            }
            SystemClock.sleep(Duration::from_millis(50)).await;
        }
    }

    pub(super) async fn stop(self) {
        self.node.close_after(self.engine.shutdown(), Duration::from_secs(5)).await;
    }
}

/// Says that it is there four times a second, for a minute.
#[workflow]
async fn tick(ctx: Ctx, _input: ()) -> Result<(), Failure> {
    for number in 0..240 {
        let run = ctx.run_id().clone();
        ctx.step(&format!("t{number}"), || {
            TICKS.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), SystemClock.now());
            async { Ok::<_, Failure>(()) }
        })
        .await?;
        ctx.sleep(Duration::from_millis(250)).await?;
    }
    Ok(())
}

/// An instance in another process.
struct There {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl There {
    fn start(url: &str, lease: Duration, arguments: &[&str]) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([crate::restart::CHILD, "instance", url, &lease.as_millis().to_string()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (to, from) = (process.stdin.take().context("a pipe")?, process.stdout.take().context("a pipe")?);
        Ok(There { process, to, from: BufReader::new(from) })
    }

    fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.from.read_line(&mut line)? > 0, "an instance has ended");
        Ok(line.trim().to_owned())
    }

    fn say(&mut self, word: &str) -> Result<()> {
        Ok(writeln!(self.to, "{word}")?)
    }
}

impl Drop for There {
    fn drop(&mut self) {
        let _it_has_ended = (self.process.kill(), self.process.wait());
    }
}

/// What such a process does: it takes part, and is told when to work and when to end.
pub(crate) async fn child(arguments: &[&str]) -> Result<()> {
    let [url, lease_ms, instances, runs, counted_ms, named] = arguments else { bail!("{arguments:?} is nothing for an instance to do") };
    let (instances, runs, counted_ms) = (instances.parse()?, runs.parse()?, counted_ms.parse()?);
    let here = Instance::start(url, Duration::from_millis(lease_ms.parse()?)).await?;
    here.shared_by(instances).await?;
    println!("ready");
    let mut words = std::io::stdin().lines();
    let mut word = || words.next().context("nobody is there")?.context("it cannot be read");
    ensure!(word()? == "go");
    let counted = Duration::from_millis(counted_ms);
    let (engine, count, process) = (here.engine.clone(), Arc::new(AtomicU64::new(0)), std::process::id());
    let named = *named == "named";
    let run = move || {
        let mut start = engine.start("steps", &STEPS);
        if named {
            start = start.id(format!("{process}-{}", count.fetch_add(1, Ordering::Relaxed)));
        }
        async move { Ok(start.await?.result::<u32>().await.map(drop)?) }
    };
    let seen = slice(runs, Span { warm_up: counted / 4, counted }, run).await?;
    println!("{}", seen.per_s());
    word()?;
    here.stop().await;
    Ok(())
}

/// Steps per second of so many instances.
fn together(server: &PostgresServer, instances: usize, counted: Duration, how: &str) -> Result<f64> {
    let database = server.database();
    let url = server.url(&database);
    let (of, runs, time) = (instances.to_string(), (RUNS / instances).to_string(), counted.as_millis().to_string());
    let start = |_| There::start(&url, LEASE, &[&of, &runs, &time, how]);
    let mut all = (0..instances).map(start).collect::<Result<Vec<_>>>()?;
    for instance in &mut all {
        ensure!(instance.hear()? == "ready");
    }
    all.iter_mut().try_for_each(|instance| instance.say("go"))?;
    let mut per_s = 0.0;
    for instance in &mut all {
        per_s += instance.hear()?.parse::<f64>()?;
    }
    all.iter_mut().try_for_each(|instance| instance.say("end"))?;
    for instance in &mut all {
        instance.process.wait()?;
    }
    Ok(per_s * f64::from(STEPS))
}

pub(super) fn three(report: &Report, server: &PostgresServer, quick: bool) -> Result<()> {
    let counted = Duration::from_secs(if quick { 1 } else { 6 });
    let (mut one, mut three, mut named) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if quick { 1 } else { 3 } {
        one.push(together(server, 1, counted, "drawn")?);
        three.push(together(server, 3, counted, "drawn")?);
        named.push(together(server, 3, counted, "named")?);
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (one, three, named) = (median(one), median(three), median(named));
    report.say(&Measured::rate("one-instance", one).concurrency(RUNS))?;
    report.say(&Measured::rate("three-instances", three).concurrency(RUNS))?;
    report.say(&Measured::rate("three-instances-named", named).concurrency(RUNS))?;
    report.say(&Measured::value("three-to-one", three / one, "steps of three instances for each of one, on one machine"))
}

/// Kills an instance, and looks how long it takes until the last of its runs goes on.
pub(super) async fn take_over(report: &Report, server: &PostgresServer, quick: bool) -> Result<()> {
    let (url, lease) = (server.url(&server.database()), if quick { SHORT_LEASE } else { LEASE });
    let here = Instance::start(&url, lease).await?;
    let mut there = There::start(&url, lease, &["2", "1", "1", "drawn"])?;
    ensure!(there.hear()? == "ready");
    here.shared_by(2).await?;
    let mut runs = Vec::new();
    for _ in 0..UNDER_WAY {
        runs.push(here.engine.start("tick", &()).id(format!("tick-{}", runs.len())).await?.id().clone());
    }
    SystemClock.sleep(Duration::from_secs(2)).await;
    let ticks = || TICKS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (killed_at, before) = (SystemClock.now(), ticks());
    there.process.kill()?;
    let lost: Vec<_> = runs.iter().filter(|run| !before.contains_key(*run)).collect();
    ensure!(!lost.is_empty(), "it had no run");
    let took = loop {
        let now = ticks();
        let first: Option<Vec<_>> = lost.iter().map(|run| now.get(*run)).collect();
        if let Some(first) = first {
            break first.into_iter().map(|at| at.saturating_since(killed_at)).max().unwrap_or_default();
        }
        SystemClock.sleep(Duration::from_millis(5)).await;
    };
    let unit = format!("s until the last of {} runs of a killed instance goes on; a lease is {} s", lost.len(), lease.as_secs());
    report.say(&Measured::value("take-over", took.as_secs_f64(), unit))?;
    here.stop().await;
    Ok(())
}
