//! What every plan has to stand: a failure at any stage, every stage twice, and every undo twice.

use super::crash::Crash;
use super::lab::{Lab, LabBuilder};
use super::meddler::is_meant;
use super::world::pause;
use crate::{Engine, EngineBuilder, EntityId, Error, Follow, TaskInfo, TaskStatus, VirtualClock, Wait};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use steadfast_kernel::Failure;

/// The plan of every play.
const PLAN: &str = "check";
/// Longer than anything is waited for in virtual time.
const PATIENCE: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Checks of a plan, for one tenant. Each plays it again and again on engines of its own, with a failure or the death of the process at another stage each
/// time. A check panics in the end with all that was wrong: at which stage, and what was done to it.
///
/// Gates are opened as soon as a task waits at them. Stages that do nothing for this tenant with these variables are left out.
///
/// ```
/// use steadfast::testing::PlanCheck;
/// use steadfast::{Engine, Failure, Plan, Task};
///
/// fn switch() -> Plan {
///     Plan::new("switch")
///         .stage("drain", |task: Task| async move { Ok::<_, Failure>(serde_json::json!({ "drained": task.tenant() })) })
///         .undo(|_task| async { Ok::<_, Failure>(()) })
///         .stage("verify", |task: Task| async move { task.checkpoint::<String>("drained").map(drop) })
/// }
///
/// #[tokio::main(flavor = "current_thread")] // in a test: #[tokio::test]
/// async fn main() {
///     let check = PlanCheck::new("switch", || Engine::in_memory().plan(switch())).tenant("acme");
///     check.fail_at_every_stage().await;
///     check.run_every_stage_twice().await;
///     check.undo_twice().await;
/// }
/// ```
#[must_use = "nothing is checked yet"]
pub struct PlanCheck<F> {
    definition: String,
    engine: F,
    tenant: String,
    vars: Value,
    real_time: bool,
}

impl<F: Fn() -> EngineBuilder> PlanCheck<F> {
    /// Checks the plan of that name. `engine` gives an engine that has it, for every play: begin there with fresh fakes, too.
    pub fn new(definition: &str, engine: F) -> Self {
        PlanCheck { definition: definition.into(), engine, tenant: "acme".into(), vars: json!({}), real_time: false }
    }

    /// Whom it is carried out for: `acme`, unless it is said.
    pub fn tenant(mut self, tenant: &str) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// What it is created with: an object; nothing, unless it is said.
    ///
    /// # Panics
    /// If that cannot be written as JSON.
    pub fn vars(mut self, vars: &(impl Serialize + ?Sized)) -> Self {
        self.vars = serde_json::to_value(vars).unwrap_or_else(|error| panic!("the variables cannot be written as JSON: {error}"));
        self
    }

    /// Its stages begin processes or talk to a network: time is real, and what it waits for takes as long.
    pub fn in_real_time(mut self) -> Self {
        self.real_time = true;
        self
    }

    /// Has the task fail for good at every stage in turn. It must be failed with the checkpoint of the stage before; retried from there, it must do all
    /// stages that are left, and none of those before.
    ///
    /// # Panics
    /// If that is not so, or the plan does not complete when nothing goes wrong.
    pub async fn fail_at_every_stage(&self) {
        let stages = self.undisturbed().await;
        let mut wrong = Vec::new();
        for at in stages.working() {
            let play = self.play().await;
            play.lab.fail_attempt(&stages.names[at], 1, Failure::permanent("as the check wants it"));
            note(&mut wrong, &stages.names[at], "made to fail", play.goes_on_after_a_failure(&stages, at).await);
            play.lab.forget();
        }
        self.report(&wrong);
    }

    /// Has the process die at every stage in turn, when the work of the stage is done and not on record. Retried, the task must do that stage once more and
    /// complete: stages have to be safe to repeat.
    ///
    /// # Panics
    /// If that is not so, or the plan does not complete when nothing goes wrong.
    pub async fn run_every_stage_twice(&self) {
        let stages = self.undisturbed().await;
        let mut wrong = Vec::new();
        for at in stages.working() {
            let play = self.play().await;
            play.lab.crash_at(Crash::BeforeOutcome(stages.names[at].clone()));
            note(&mut wrong, &stages.names[at], "run twice", play.goes_on_after_a_crash(&stages, at).await);
            play.lab.forget();
        }
        self.report(&wrong);
    }

    /// Rolls the task back after every stage in turn; then once more for every undo, with a process that dies when its work is done and not on record, so
    /// that it is done twice. Everything must be rolled back in the end, newest first.
    ///
    /// # Panics
    /// If that is not so, or the plan does not complete when nothing goes wrong.
    pub async fn undo_twice(&self) {
        let stages = self.undisturbed().await;
        let (mut wrong, working) = (Vec::new(), stages.working());
        let play = self.play().await;
        note(&mut wrong, &stages.names[stages.names.len() - 1], "rolled back after it", play.rolls_back(TaskStatus::Completed).await);
        let undone = play.undone();
        for pair in working.windows(2) {
            let (done, next) = (pair[0], &stages.names[pair[1]]);
            let play = self.play().await;
            play.lab.fail_attempt(next, 1, Failure::permanent("as the check wants it"));
            let mut ended = play.rolls_back(TaskStatus::Failed).await;
            let wanted: Vec<_> = undone.iter().filter(|name| stages.names[..=done].contains(*name)).cloned().collect();
            if ended.is_ok() && play.undone() != wanted {
                ended = Err(format!("{:?} were undone, not {wanted:?}", play.undone()));
            }
            note(&mut wrong, &stages.names[done], "rolled back after it", ended);
            play.lab.forget();
        }
        for name in &undone {
            let play = self.play().await;
            note(&mut wrong, name, "undone twice", play.rolls_back_twice(name).await);
            play.lab.forget();
        }
        self.report(&wrong);
    }

    fn report(&self, wrong: &[String]) {
        assert!(wrong.is_empty(), "plan {} does not stand this:\n{}", self.definition, wrong.join("\n"));
    }

    /// A fresh world, in which the plan is created.
    async fn play(&self) -> Play {
        let template = (self.engine)();
        if let Some(wrong) = &template.wrong {
            panic!("{wrong}");
        }
        let clock = (!self.real_time).then(|| {
            pause();
            VirtualClock::start()
        });
        let lab = LabBuilder::of(template).open_in(clock).await;
        let create = async |engine: Engine| engine.create_plan(&self.definition).id(PLAN).tenants([&self.tenant]).vars(&self.vars).await;
        if let Err(error) = lab.ask(create).await {
            panic!("plan {} cannot be created: {error}", self.definition);
        }
        Play { lab, tenant: self.tenant.clone() }
    }

    /// What the stages are, and which of them do something, when nothing goes wrong.
    async fn undisturbed(&self) -> Stages {
        let play = self.play().await;
        match play.start().await {
            Ok(task) if task.status == TaskStatus::Completed => {}
            Ok(task) => panic!("plan {} does not complete when nothing goes wrong: {}", self.definition, said(&task)),
            Err(error) => panic!("plan {} cannot be started: {error}", self.definition),
        }
        let info = play.lab.ask(async |engine| engine.plan_status(PLAN).await).await;
        let names = info.map_or_else(|error| panic!("plan {} cannot be read: {error}", self.definition), |info| info.stages);
        let works = names.iter().map(|name| !play.lab.calls(name).is_empty()).collect();
        Stages { names, works }
    }
}

/// The stages of a plan.
struct Stages {
    names: Vec<String>,
    /// Which of them call something.
    works: Vec<bool>,
}

impl Stages {
    fn working(&self) -> Vec<usize> {
        (0..self.names.len()).filter(|at| self.works[*at]).collect()
    }
}

fn note(wrong: &mut Vec<String>, stage: &str, what: &str, outcome: Result<(), String>) {
    wrong.extend(outcome.err().map(|why| format!("stage {stage}, {what}: {why}")));
}

/// Where a task stands, for one who has to find out why.
fn said(task: &TaskInfo) -> String {
    let stage = task.stage.as_ref().map(|(_, name)| format!(" at stage {name}")).unwrap_or_default();
    let failure = task.failure.as_ref().map(|failure| format!(": {}", failure.message)).unwrap_or_default();
    format!("the task is {}{stage}{failure}", task.status.as_str())
}

/// One world.
struct Play {
    lab: Lab,
    tenant: String,
}

impl Play {
    async fn goes_on_after_a_failure(&self, stages: &Stages, at: usize) -> Result<(), String> {
        let failed = self.start().await.map_err(|error| error.to_string())?;
        is(&failed, TaskStatus::Failed)?;
        has_checkpoint_before(&failed, at)?;
        self.lab.forget();
        self.completes_from(stages, at).await
    }

    async fn goes_on_after_a_crash(&self, stages: &Stages, at: usize) -> Result<(), String> {
        let interrupted = self.start().await.map_err(|error| error.to_string())?;
        is(&interrupted, TaskStatus::Interrupted)?;
        has_checkpoint_before(&interrupted, at)?;
        self.completes_from(stages, at).await
    }

    /// Retries the task, which must do the stages from that one on, and only those.
    async fn completes_from(&self, stages: &Stages, at: usize) -> Result<(), String> {
        let before = self.lab.all_calls().len();
        let tenant = &self.tenant;
        let retry = async |engine: Engine| engine.retry_task(tenant).await?.id("again").await;
        self.lab.ask(retry).await.map_err(|error| format!("it cannot be retried: {error}"))?;
        is(&self.rests().await.map_err(|error| error.to_string())?, TaskStatus::Completed)?;
        let calls = self.lab.all_calls().split_off(before);
        for (place, name) in stages.names.iter().enumerate() {
            let is_called = calls.iter().any(|call| is_meant(&call.step, name));
            if is_called && place < at {
                return Err(format!("the retry has done stage {name} again, which was on record"));
            }
            if !is_called && place >= at && stages.works[place] {
                return Err(format!("the retry has not done stage {name}"));
            }
        }
        Ok(())
    }

    /// Starts the task, and rolls it back when it has ended so.
    async fn rolls_back(&self, ended: TaskStatus) -> Result<(), String> {
        is(&self.start().await.map_err(|error| error.to_string())?, ended)?;
        is(&self.roll_back("back").await.map_err(|error| error.to_string())?, TaskStatus::RolledBack)
    }

    async fn rolls_back_twice(&self, stage: &str) -> Result<(), String> {
        is(&self.start().await.map_err(|error| error.to_string())?, TaskStatus::Completed)?;
        self.lab.crash_at(Crash::BeforeOutcome(format!("{stage}/undo")));
        is(&self.roll_back("back").await.map_err(|error| error.to_string())?, TaskStatus::Interrupted)?;
        is(&self.roll_back("back again").await.map_err(|error| error.to_string())?, TaskStatus::RolledBack)?;
        let times = self.lab.calls(&format!("{stage}/undo")).len();
        if times < 2 { Err("it was undone once".into()) } else { Ok(()) }
    }

    /// The stages that were undone, in order.
    fn undone(&self) -> Vec<String> {
        let mut undone: Vec<String> = Vec::new();
        for call in self.lab.all_calls() {
            let Some(stage) = call.step.strip_suffix("/undo").and_then(|step| step.split('#').next()) else { continue };
            if undone.last().is_none_or(|last| last != stage) {
                undone.push(stage.into());
            }
        }
        undone
    }

    async fn start(&self) -> Result<TaskInfo, Error> {
        self.lab.ask(async |engine| engine.plan(PLAN)?.start().id("start").await).await?;
        self.rests().await
    }

    async fn roll_back(&self, id: &str) -> Result<TaskInfo, Error> {
        let tenant = &self.tenant;
        self.lab.ask(async |engine| engine.task_of(tenant).await?.roll_back().id(id).await).await?;
        self.rests().await
    }

    /// Waits until nothing happens to the task any more unless a person wants it, and opens its gates meanwhile.
    async fn rests(&self) -> Result<TaskInfo, Error> {
        match tokio::time::timeout(PATIENCE, self.lab.ask(async |engine| self.rests_in(&engine).await)).await {
            Ok(task) => task,
            Err(_) => panic!("the task does not come to an end:\n{}", self.lab.journal(&format!("{PLAN}/{}", self.tenant)).await),
        }
    }

    async fn rests_in(&self, engine: &Engine) -> Result<TaskInfo, Error> {
        let run = engine.task_of(&self.tenant).await?;
        let entity = EntityId::from(run.id());
        let mut feed = engine.feed(Follow { after: None, entity: Some(entity) }).await?;
        loop {
            let task = engine.task_status_by_tenant(&self.tenant).await?;
            if task.status.is_final() || task.status == TaskStatus::Interrupted {
                return Ok(task);
            }
            for wait in &task.waits {
                if let Wait::Approval { name, .. } = wait {
                    run.signal(name, &json!({ "approved": true })).id(format!("open-{name}")).await?;
                }
            }
            feed.next().await?;
        }
    }
}

fn is(task: &TaskInfo, wanted: TaskStatus) -> Result<(), String> {
    if task.status == wanted { Ok(()) } else { Err(format!("{}, not {}", said(task), wanted.as_str())) }
}

fn has_checkpoint_before(task: &TaskInfo, at: usize) -> Result<(), String> {
    let kept = task.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.index as usize + 1);
    if kept == at { Ok(()) } else { Err(format!("{kept} stages are on record, not {at}")) }
}
