//! `steadfast plan show`: the grid.

use super::path;
use super::watch::{self, Last};
use crate::args::PlanShow;
use crate::commands::run::Context;
use crate::error::Error;
use crate::live::grid::{self, Room};
use crate::output::table::size_of_terminal;
use crate::output::{self, time};
use steadfast_server::shapes::Plan;

pub(super) async fn run(context: &Context, args: &PlanShow) -> Result<(), Error> {
    let plan = &args.plan.plan;
    if args.watch {
        return watch::to_the_end(context, plan, if args.all { Last::WholeGrid } else { Last::Grid }).await;
    }
    let answer = context.client.get(&path(plan, ""), Vec::new()).await?;
    if context.json {
        output::data(answer.text);
    } else {
        output::data(text(&answer.read()?, args.all));
    }
    Ok(())
}

/// The grid for whoever reads stdout: a terminal has what fits it, unless everything is wanted.
pub(super) fn text(plan: &Plan, all: bool) -> String {
    let size = size_of_terminal();
    let room = Room {
        width: size.map(|(width, _)| width),
        height: size.map(|(_, height)| height.saturating_sub(1)).filter(|_| !all), // the shell wants a line, too
    };
    grid::page(plan, room, time::now()).join("\n")
}
