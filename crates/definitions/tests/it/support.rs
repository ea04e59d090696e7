//! A library of texts, and a lab or an engine that has it.

use serde_json::{Map, Value as Json, json};
use std::fs;
use std::time::Duration;
use steadfast::testing::{Lab, LabBuilder};
use steadfast::{Engine, EngineBuilder, Error, Failure, Run, Status};
use steadfast_definitions::{Library, Settings};
use steadfast_runtime::Registered;
use tempfile::TempDir;

/// What templates see as `vars`.
pub(crate) fn vars() -> Map<String, Json> {
    match json!({ "shop": "the shop", "here": true }) {
        Json::Object(vars) => vars,
        _ => Map::new(),
    }
}

/// A folder with those definitions in it.
pub(crate) struct Shelf {
    pub(crate) folder: TempDir,
    pub(crate) library: Library,
}

impl Shelf {
    pub(crate) fn of(texts: &[&str]) -> Self {
        Shelf::with(texts, Settings::default(), vars())
    }

    pub(crate) fn with(texts: &[&str], settings: Settings, vars: Map<String, Json>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (number, text) in texts.iter().enumerate() {
            fs::write(folder.path().join(format!("{number}.yaml")), text).unwrap();
        }
        let (library, changes) = Library::open(folder.path(), vars, settings, Vec::new()).unwrap();
        let problems: Vec<String> = changes.problems().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        Shelf { folder, library }
    }

    /// All workflows and plans, as they are registered.
    pub(crate) fn registered(&self) -> Vec<(String, Registered)> {
        let names = self.library.names();
        names.iter().map(|name| (name.to_string(), self.library.registered(name))).collect()
    }

    /// An engine in real time, for what talks to the world outside.
    pub(crate) async fn engine(&self) -> Engine {
        self.builder().start().await.unwrap()
    }

    /// An engine that is not started yet.
    pub(crate) fn builder(&self) -> EngineBuilder {
        self.registered()
            .into_iter()
            .fold(Engine::in_memory(), |engine, (name, registered)| engine.register_code(&name, registered))
    }

    pub(crate) fn lab(&self) -> LabBuilder {
        self.registered()
            .into_iter()
            .fold(Lab::new(), |lab, (name, registered)| lab.register_code(&name, registered))
    }
}

/// Carries out one definition in a lab: the lab, in which the run is `r`, and how it ended.
pub(crate) async fn play(text: &str, input: Json) -> (Lab, Result<Json, Failure>) {
    let shelf = Shelf::of(&[text]);
    let lab = shelf.lab().open().await;
    let name = shelf.library.names().remove(0);
    lab.start_named(name.as_str(), "r", &input).await;
    let result = lab.result("r").await;
    let replayed = lab.ask(async |engine| engine.replay("r").await).await.unwrap();
    assert_eq!(replayed.mismatch, None, "it replays");
    (lab, result)
}

/// How a run of an engine in real time has ended. None of them takes as long as it would wait.
pub(crate) async fn ended(run: &Run) -> Result<Json, Failure> {
    match tokio::time::timeout(Duration::from_secs(60), run.result()).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(Error::Failed { failure, .. })) => Err(failure),
        Ok(Err(error)) => panic!("{error:?}"),
        Err(_) => panic!("it has not ended: {}", run.why().await.unwrap()),
    }
}

/// The lines of the journal of `r`: type and step.
pub(crate) async fn lines(lab: &Lab) -> Vec<String> {
    lab.journal("r").await.lines()
}

pub(crate) async fn status(lab: &Lab) -> Status {
    lab.ask(async |engine| engine.run("r")?.view().await).await.unwrap().status
}
