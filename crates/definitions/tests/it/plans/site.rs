//! A plan for one tenant in real time, whose stages are commands that leave their traces in files.

use super::TASK;
use crate::support::Shelf;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
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
        Site::with(text, &json!({}), |_| ()).await
    }

    /// The same with variables, and with more in the folder of the definition.
    pub(super) async fn with(text: &str, vars: &Json, furnish: impl FnOnce(&Path)) -> Self {
        let shelf = Shelf::of(&[text]);
        furnish(shelf.folder.path());
        let engine = shelf.engine().await;
        let name = shelf.library.names().remove(0);
        engine.create_plan(name.as_str()).id("p").tenants(["acme"]).vars(vars).await.unwrap();
        Site { shelf, engine }
    }

    /// What is in a file, if there is one.
    pub(super) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.shelf.folder.path().join(file)).unwrap_or_default()
    }

    pub(super) fn lines(&self, file: &str) -> Vec<String> {
        self.read(file).lines().map(str::to_string).collect()
    }

    /// Makes an empty file.
    pub(super) fn write(&self, file: &str) {
        let path = self.shelf.folder.path().join(file);
        path.parent().map(fs::create_dir_all).transpose().unwrap();
        fs::write(path, "").unwrap();
    }

    pub(super) fn remove(&self, file: &str) {
        fs::remove_file(self.shelf.folder.path().join(file)).unwrap();
    }

    /// What the commands wrote, line by line.
    pub(super) fn log(&self) -> Vec<String> {
        self.lines("log")
    }

    /// A stage fails from here on.
    pub(super) fn break_down(&self, stage: &str) {
        self.write(&format!("{stage}.broken"));
    }

    pub(super) fn mend(&self, stage: &str) {
        self.remove(&format!("{stage}.broken"));
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
