//! `steadfast run list`.

use super::Context;
use crate::args::List;
use crate::commands::pages::{self, Part};
use crate::duration;
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::RunSummary;

pub(super) async fn run(context: &Context, args: List) -> Result<(), Error> {
    let List { status, workflow, tenant, wait, q, limit, cursor, all } = args;
    let upper = |text: Option<String>| text.map(|text| text.to_uppercase());
    let filter = [("status", upper(status)), ("workflow", workflow), ("tenant", tenant), ("wait", upper(wait)), ("q", q)];
    let filter = filter.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let whole = pages::read(&context.client, "/v1/runs", filter, Part { limit, cursor, all }).await?;
    if context.json {
        output::data(whole.to_json());
        return Ok(());
    }
    let runs: Vec<RunSummary> = whole.each()?;
    match runs.is_empty() {
        true if whole.next_cursor.is_none() => output::say("no runs"),
        true => output::say("no runs so far"),
        false => output::data(table(&runs, time::now()).to_text()),
    }
    whole.hint_at_more();
    Ok(())
}

fn table(runs: &[RunSummary], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::whole("RUN"),
        Column::cut("WORKFLOW"),
        Column::whole("STATUS"),
        Column::spare("TENANT"),
        Column::whole("STARTED"),
        Column::spare("TOOK"),
        Column::cut("WHY"),
    ]);
    for run in runs {
        let took = run.ended_at.map(|ended| ended.0.saturating_since(run.started_at.0));
        let why = match (&run.wait, &run.text) {
            (Some(wait), Some(text)) => format!("{wait}: {text}"),
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => String::new(),
        };
        table.row(vec![
            Cell::styled(run.id.clone(), style::BOLD),
            run.workflow.clone().into(),
            Cell::status(run.status.as_str()),
            run.tenant.clone().unwrap_or_default().into(),
            time::relative(run.started_at.0, now).into(),
            took.map(duration::rough).unwrap_or_default().into(),
            why.into(),
        ]);
    }
    table
}
