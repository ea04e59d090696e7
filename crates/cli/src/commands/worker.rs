//! `steadfast worker …`.

use crate::args::{Common, WorkerCommand};
use crate::client::Client;
use crate::config::Config;
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Worker, Workers};

/// The most workflows that are named of each worker; with `--json` all are there.
const NAMED_MAX: usize = 5;

pub(crate) async fn run(common: &Common, command: WorkerCommand) -> Result<(), Error> {
    let client = Client::new(&Config::load(&common.given())?)?;
    match command {
        WorkerCommand::List => list(&client, common.json).await,
    }
}

async fn list(client: &Client, json: bool) -> Result<(), Error> {
    let answer = client.get("/v1/workers", Vec::new()).await?;
    if json {
        output::data(answer.text);
        return Ok(());
    }
    let workers = answer.read::<Workers>()?.items;
    if workers.is_empty() {
        output::say("no workers are connected; docs/guide/workers.md says how to write and start one");
        return Ok(());
    }
    output::data(table(&workers, time::now()).to_text());
    Ok(())
}

fn table(workers: &[Worker], now: Timestamp) -> Table {
    let columns = [Column::whole("WORKER"), Column::whole("STATE"), Column::whole("RUNS"), Column::whole("SINCE"), Column::whole("HEARD")];
    let mut table = Table::new(columns.into_iter().chain([Column::spare("WORKFLOWS")]).collect());
    for worker in workers {
        table.row(vec![
            Cell::styled(worker.name.clone(), style::BOLD),
            if worker.draining { "draining" } else { "ready" }.into(),
            format!("{}/{}", worker.runs, worker.runs_max).into(),
            time::relative(worker.since.0, now).into(),
            time::relative(worker.heard_at.0, now).into(),
            named(&worker.workflows).into(),
        ]);
    }
    table
}

fn named(workflows: &[String]) -> String {
    let first = workflows.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match workflows.len().saturating_sub(NAMED_MAX) {
        0 => first,
        others => format!("{first} and {others} others"),
    }
}
