//! `steadfast tenant …`: what is asked of a tenant's latest task.

mod next;
mod show;

use crate::args::{Common, TenantCommand, TenantRetry, TenantVerb};
use crate::client::{Ask, Body, Client, encoded};
use crate::commands::run::{Context, key};
use crate::config::Config;
use crate::error::Error;
use crate::output;
use crate::output::style::{self, paint};
use steadfast_server::shapes::Task;

pub(crate) async fn run(common: &Common, command: TenantCommand) -> Result<(), Error> {
    let context = Context { client: Client::new(&Config::load(&common.given())?)?, json: common.json };
    match command {
        TenantCommand::Show(args) => show::run(&context, &args.tenant).await,
        TenantCommand::Retry(TenantRetry { verb, from_start }) => {
            operate(&context, "retry", Body::default().with("fromCheckpoint", Some(!from_start)), &verb).await
        }
        TenantCommand::Pause(args) => operate(&context, "pause", Body::default(), &args).await,
        TenantCommand::Resume(args) => operate(&context, "resume", Body::default(), &args).await,
        TenantCommand::Cancel(args) => operate(&context, "cancel", Body::default(), &args).await,
        TenantCommand::Rollback(args) => operate(&context, "rollback", Body::default(), &args).await,
        TenantCommand::Handover(args) => operate(&context, "hand-over", Body::default(), &args).await,
    }
}

async fn operate(context: &Context, verb: &str, body: Body, args: &TenantVerb) -> Result<(), Error> {
    let body = body.with("reason", args.why.reason.as_ref());
    let ask = Ask { body: Some(body), key: Some(key(&args.why)?), ..Ask::default() };
    let answer = context.client.post(&path(&args.tenant.tenant, verb), ask).await?;
    if context.json {
        output::data(&answer.text);
        return Ok(());
    }
    let task: Task = answer.read()?;
    let status = paint(style::of_status(task.status.as_str()), task.status.as_str());
    let stage = show::stage(&task).map(|stage| format!("  {stage}")).unwrap_or_default();
    output::data(format_args!("{}  {status}{stage}", task.tenant_id));
    output::hint(format_args!(
        "look at it with: steadfast tenant show {}, or steadfast plan show {} --watch",
        task.tenant_id, task.plan_id
    ));
    Ok(())
}

/// The path of something of a tenant.
fn path(tenant: &str, rest: &str) -> String {
    format!("/v1/tenants/{}/{rest}", encoded(tenant))
}
