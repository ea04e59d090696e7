//! `steadfast plan …`: a file per command.

mod apply;
mod list;
mod show;
mod tenants;
mod vars;
mod watch;

use crate::args::{Common, PlanCommand, PlanVerb, Why};
use crate::client::{Answer, Ask, Body, Client, encoded};
use crate::commands::run::{Context, key};
use crate::config::Config;
use crate::error::Error;
use crate::live::grid;
use crate::output;
use crate::output::style::{self, paint};
use steadfast_server::shapes::Plan;

pub(crate) async fn run(common: &Common, command: PlanCommand) -> Result<(), Error> {
    let context = Context { client: Client::new(&Config::load(&common.given())?)?, json: common.json };
    match command {
        PlanCommand::Apply(args) => apply::run(&context, args).await,
        PlanCommand::List(args) => list::run(&context, args).await,
        PlanCommand::Show(args) => show::run(&context, &args).await,
        PlanCommand::Start(args) if args.watch => {
            let PlanVerb { plan, why } = &args.verb;
            verb(&context, &plan.plan, "start", why).await?;
            watch::to_the_end(&context, &plan.plan, watch::Last::Grid).await
        }
        PlanCommand::Start(args) => operate(&context, "start", &args.verb).await,
        PlanCommand::Pause(args) => operate(&context, "pause", &args).await,
        PlanCommand::Resume(args) => operate(&context, "resume", &args).await,
        PlanCommand::Cancel(args) => operate(&context, "cancel", &args).await,
        PlanCommand::Rollback(args) => operate(&context, "rollback", &args).await,
    }
}

async fn operate(context: &Context, what: &str, args: &PlanVerb) -> Result<(), Error> {
    let answer = verb(context, &args.plan.plan, what, &args.why).await?;
    if context.json {
        output::data(&answer.text);
        return Ok(());
    }
    told(&answer.read()?);
    Ok(())
}

async fn verb(context: &Context, plan: &str, verb: &str, why: &Why) -> Result<Answer, Error> {
    let body = Body::default().with("reason", why.reason.as_ref());
    let ask = Ask { body: Some(body), key: Some(key(why)?), ..Ask::default() };
    context.client.post(&path(plan, verb), ask).await
}

/// Says where a plan stands now.
fn told(plan: &Plan) {
    let status = paint(style::of_status(plan.status.as_str()), plan.status.as_str());
    output::data(format_args!("{}  {status}  {}", plan.id, grid::counts(plan)));
    output::hint(grid::sentence(plan).unwrap_or_else(|| format!("look at it with: steadfast plan show {}", plan.id)));
}

/// The path of a plan, or of something of it.
fn path(plan: &str, rest: &str) -> String {
    let slash = if rest.is_empty() { "" } else { "/" };
    format!("/v1/plans/{}{slash}{rest}", encoded(plan))
}
