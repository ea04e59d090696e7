//! The same workflow without HTTP: the engine and the definitions in this process.

use anyhow::{Result, ensure};
use std::sync::Arc;
use steadfast_definitions::{Library, Settings};
use steadfast_kernel::{Payload, WorkflowName};
use steadfast_runtime::{Builder, Engine, Registered, Start};
use steadfast_store::{Batch, Store};
use steadfast_store_embedded::Embedded;
use tempfile::TempDir;

/// An engine, and the folder that it works in.
#[derive(Clone)]
pub(crate) struct Within {
    engine: Engine,
    _folder: Arc<TempDir>,
}

pub(crate) async fn start(definition: &str) -> Result<Within> {
    let folder = tempfile::tempdir()?;
    let definitions = folder.path().join("definitions");
    std::fs::create_dir(&definitions)?;
    std::fs::write(definitions.join("one-step.yaml"), definition)?;
    let store = Arc::new(Embedded::open(folder.path().join("data"))?);
    let (library, changes) = Library::open(&definitions, serde_json::Map::new(), Settings::default(), Vec::new())?;
    let kept = changes.added.iter().map(|definition| definition.kept(steadfast::Timestamp::EPOCH)).collect();
    store.commit(Batch { definitions: kept, ..Batch::default() }).await?;
    let builder = Builder::new(store);
    let name = WorkflowName::new("one-step")?;
    builder.registry.insert(name.clone(), Registered::new(Arc::new(library.code(&name))));
    Ok(Within { engine: builder.start().await?, _folder: Arc::new(folder) })
}

/// Starts a run and waits for it.
pub(crate) async fn run(within: Within) -> Result<()> {
    let start = Start {
        workflow: "one-step".into(),
        input: Payload::json("{\"a\":1}"),
        id: None,
        deadline: None,
        tenant: None,
        limits: Vec::new(),
    };
    let (run, _) = within.engine.start(start).await?;
    let ended = within.engine.ended(&run).await?;
    ensure!(ended.outcome.is_ok(), "the run failed");
    Ok(())
}
