//! Plans that are carried out: tasks, their stages and what those leave.

mod checkpoints;
mod examples;
mod gates;
mod retries;
mod site;
mod undo;
mod versions;
mod whole;

use crate::support::Shelf;
use serde_json::{Value as Json, json};
use site::Site;
use steadfast::testing::{Lab, LabBuilder};
use steadfast::{Engine, Failure, PlanHandle, Run, RunView, TaskInfo};

/// A lab with one plan, `p`, for `acme`: its task is `p/acme`.
pub(super) struct Rollout {
    pub(super) lab: Lab,
    pub(super) shelf: Shelf,
}

/// The task of the plan.
pub(super) const TASK: &str = "p/acme";

impl Rollout {
    /// Creates the plan of that text, with those variables, and starts it.
    pub(super) async fn of(text: &str, vars: Json) -> Self {
        let rollout = Rollout::created(text, vars).await;
        rollout.start().await;
        rollout
    }

    /// Creates the plan. What is to happen to it can be said before it is started.
    pub(super) async fn created(text: &str, vars: Json) -> Self {
        let shelf = Shelf::of(&[text]);
        let lab = shelf.lab();
        Rollout::on(shelf, lab, vars).await
    }

    pub(super) async fn on(shelf: Shelf, lab: LabBuilder, vars: Json) -> Self {
        let rollout = Rollout { lab: lab.open().await, shelf };
        let name = rollout.shelf.library.names().remove(0);
        let create = async |engine: Engine| engine.create_plan(name.as_str()).id("p").tenants(["acme"]).vars(&vars).await;
        rollout.lab.ask(create).await.unwrap();
        rollout
    }

    pub(super) async fn start(&self) {
        self.lab.ask(async |engine| engine.plan("p")?.start().id("start").await).await.unwrap();
    }

    /// How the task has ended. It replays.
    pub(super) async fn result(&self) -> Result<Json, Failure> {
        let result = self.lab.result(TASK).await;
        let replayed = self.lab.ask(async |engine| engine.replay(TASK).await).await.unwrap();
        assert_eq!(replayed.mismatch, None, "it replays");
        result
    }

    pub(super) async fn task(&self) -> TaskInfo {
        self.lab.settle().await;
        self.lab.ask(async |engine| engine.task_status_by_tenant("acme").await).await.unwrap()
    }

    pub(super) async fn run(&self) -> Run {
        self.lab.engine().await.run(TASK).unwrap()
    }

    pub(super) async fn view(&self) -> RunView {
        self.run().await.view().await.unwrap()
    }

    pub(super) async fn plan(&self) -> PlanHandle {
        self.lab.engine().await.plan("p").unwrap()
    }

    /// What the stages have left so far, if a retry would go on from there.
    pub(super) async fn left(&self) -> Option<Json> {
        let checkpoint = self.task().await.checkpoint?;
        Some(serde_json::from_slice(&checkpoint.data.bytes).unwrap())
    }

    /// A person has the task begin again from its checkpoint.
    pub(super) async fn retry(&self) {
        self.lab.engine().await.retry_task_by_tenant("acme", true).await.unwrap();
    }

    /// A person answers a gate.
    pub(super) async fn answer(&self, stage: &str, answer: Json) {
        self.lab.signal(TASK, stage, &answer).await;
    }

    /// How often the attempts of each stage were made so far.
    pub(super) fn calls(&self, stages: &[&str]) -> Vec<usize> {
        stages.iter().map(|stage| self.lab.calls(stage).len()).collect()
    }

    /// What the journal of the task says of its stages, in order.
    pub(super) async fn said(&self) -> Vec<String> {
        let lines = self.lab.journal(TASK).await.lines();
        lines
            .into_iter()
            .filter(|line| line.starts_with("STAGE_") || line.starts_with("CHECKPOINT_"))
            .collect()
    }
}

fn yes() -> Json {
    json!({ "approved": true })
}
