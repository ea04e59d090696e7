//! `steadfast plan list`.

use crate::args::PlanList;
use crate::commands::pages::{self, Part};
use crate::commands::run::Context;
use crate::duration;
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::PlanSummary;

pub(super) async fn run(context: &Context, args: PlanList) -> Result<(), Error> {
    let PlanList { status, definition, limit, cursor, all } = args;
    let filter = [("status", status.map(|status| status.to_uppercase())), ("definition", definition)];
    let filter = filter.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let whole = pages::read(&context.client, "/v1/plans", filter, Part { limit, cursor, all }).await?;
    if context.json {
        output::data(whole.to_json());
        return Ok(());
    }
    let plans: Vec<PlanSummary> = whole.each()?;
    if plans.is_empty() {
        output::say("no plans");
        return Ok(());
    }
    output::data(table(&plans, time::now()).to_text());
    whole.hint_at_more();
    Ok(())
}

fn table(plans: &[PlanSummary], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::whole("PLAN"),
        Column::cut("DEFINITION"),
        Column::whole("STATUS"),
        Column::whole("DONE"),
        Column::spare("FAILED"),
        Column::whole("CREATED"),
        Column::spare("TOOK"),
        Column::cut("WHY"),
    ]);
    for plan in plans {
        let progress = &plan.progress;
        let took = plan.started_at.zip(plan.ended_at).map(|(from, to)| to.0.saturating_since(from.0));
        let bad = progress.failed + progress.interrupted + progress.rollback_failed;
        table.row(vec![
            Cell::styled(plan.id.clone(), style::BOLD),
            plan.definition.clone().into(),
            Cell::status(plan.status.as_str()),
            format!("{} of {}", progress.completed, progress.total).into(),
            if bad == 0 { "".into() } else { Cell::styled(bad.to_string(), style::BAD) },
            time::relative(plan.created_at.0, now).into(),
            took.map(duration::rough).unwrap_or_default().into(),
            plan.why.clone().unwrap_or_default().into(),
        ]);
    }
    table
}
