//! A plan for one tenant in real time, whose stages are commands that leave their traces in files.

use super::TASK;
use crate::support::Shelf;
use serde_json::Value as Json;
use std::fs;
use std::time::Duration;
use steadfast::testing::Journal;
use steadfast::{Engine, TaskInfo, TaskStatus};

/// No task of these tests takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Site {
    shelf: Shelf,
    engine: Engine,
}

impl Site {
    /// Creates the plan of that text, `p`, for `acme`.
    pub(super) async fn of(text: &str) -> Self {
        let shelf = Shelf::of(&[text]);
        let engine = shelf.engine().await;
        let name = shelf.library.names().remove(0);
        engine.create_plan(name.as_str()).id("p").tenants(["acme"]).await.unwrap();
        Site { shelf, engine }
    }

    /// What the commands wrote, line by line.
    pub(super) fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.shelf.folder.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_string).collect()
    }

    /// A stage fails from here on.
    pub(super) fn break_down(&self, stage: &str) {
        fs::write(self.shelf.folder.path().join(format!("{stage}.broken")), "").unwrap();
    }

    pub(super) fn mend(&self, stage: &str) {
        fs::remove_file(self.shelf.folder.path().join(format!("{stage}.broken"))).unwrap();
    }

    /// Starts the plan. Where its task stands when it has ended.
    pub(super) async fn start(&self) -> TaskStatus {
        self.engine.plan("p").unwrap().start().await.unwrap();
        self.ended().await
    }

    /// A person has the task begin again. Where it stands when it has ended.
    pub(super) async fn retry(&self, from_checkpoint: bool) -> TaskStatus {
        self.engine.retry_task_by_tenant("acme", from_checkpoint).await.unwrap();
        self.ended().await
    }

    /// A person has undone what the task did. Where it stands when it has ended.
    pub(super) async fn roll_back(&self) -> TaskStatus {
        self.engine.task_of("acme").await.unwrap().roll_back().await.unwrap();
        self.ended().await
    }

    /// What the task returned.
    pub(super) async fn result(&self) -> Json {
        self.engine.run(TASK).unwrap().result().await.unwrap()
    }

    pub(super) async fn task(&self) -> TaskInfo {
        self.engine.task_status_by_tenant("acme").await.unwrap()
    }

    /// What the stages have left so far, if a retry would go on from there.
    pub(super) async fn left(&self) -> Option<Json> {
        let checkpoint = self.task().await.checkpoint?;
        Some(serde_json::from_slice(&checkpoint.data.bytes).unwrap())
    }

    async fn ended(&self) -> TaskStatus {
        let run = self.engine.run(TASK).unwrap();
        if tokio::time::timeout(PATIENCE, run.result::<Json>()).await.is_err() {
            panic!("it has not ended: {}\n{}", run.why().await.unwrap(), Journal::of(&run).await);
        }
        self.task().await.status
    }
}
