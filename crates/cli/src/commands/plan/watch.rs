//! Following a plan to its end.

use super::{path, show};
use crate::client::Answer;
use crate::commands::run::Context;
use crate::error::Error;
use crate::live::grid::{self, PlanView};
use crate::live::{Away, Watch};
use crate::output::{self, time};
use std::time::Duration;
use steadfast_server::shapes::{Plan, PlanStatus};

/// How long it may be silent before it is looked at anyway.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// What is printed at the end, for who has not seen it on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// Nothing: stdout has the id of the plan.
    Nothing,
    /// The grid.
    Grid,
    /// The whole grid, also for who saw a part of it.
    WholeGrid,
}

/// Shows how a plan goes until it has ended, and says how.
///
/// # Errors
/// If it ends otherwise than completed, the server stays away, or the person leaves.
pub(super) async fn to_the_end(context: &Context, plan: &str, last: Last) -> Result<(), Error> {
    let mut view = PlanView::new();
    let (answer, ended) = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => return Err(left(plan)),
        ended = ended(context, plan, &mut view) => ended?,
    };
    if context.json {
        output::data(answer.text);
    } else if last == Last::WholeGrid || (last == Last::Grid && !output::is_read_by_a_person()) {
        output::data(show::text(&ended, true));
    }
    match ended.status {
        PlanStatus::Completed => Ok(()),
        _ if context.json => Err(Error::Said(1)),
        status => Err(Error::Failed(format!(
            "{plan} {}: {}\n  see what happened with: steadfast plan show {plan}, and steadfast tenant show TENANT",
            if status == PlanStatus::Cancelled { "was cancelled" } else { "failed" },
            grid::counts(&ended)
        ))),
    }
}

async fn ended(context: &Context, id: &str, view: &mut PlanView) -> Result<(Answer, Plan), Error> {
    let (mut watch, mut away) = (Watch::of_plan(&context.client, id), Away::default());
    let mut last: Option<(Answer, Plan)> = None;
    let mut look = true;
    loop {
        if look {
            watch.connect().await;
            match context.client.get(&path(id, ""), Vec::new()).await {
                Ok(answer) => {
                    let plan = answer.read()?;
                    last = Some((answer, plan));
                    away.is_back();
                }
                Err(error) if last.is_none() => return Err(error), // it was not there to begin with
                Err(error) => {
                    if away.tolerate(error)? {
                        view.say("the server does not answer; trying again (the plan is kept)");
                    }
                }
            }
        }
        if let Some((_, plan)) = &last {
            view.show(plan, time::now());
        }
        match last.take() {
            Some((answer, plan)) if plan.status.is_final() => return Ok((answer, plan)),
            other => last = other,
        }
        let pause = if view.ticks() { Duration::from_secs(1) } else { SILENCE_MAX };
        look = watch.changed(pause).await || !view.ticks() || away.is_away();
    }
}

fn left(plan: &str) -> Error {
    output::say(format_args!(
        "\nthe plan goes on without you; look at it with: steadfast plan show {plan}\npause it with: steadfast plan pause {plan}"
    ));
    Error::Said(130)
}
