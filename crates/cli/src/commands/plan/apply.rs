//! `steadfast plan apply`: create a plan, and if wanted start it and follow it.

use super::watch::{self, Last};
use super::{tenants, vars, verb};
use crate::args::Apply;
use crate::client::{Answer, Ask, Body, file_or_stdin, fresh_key};
use crate::commands::run::{Context, key};
use crate::error::Error;
use crate::live::grid;
use crate::output;
use steadfast_server::shapes::{Plan, PlanStatus};

pub(super) async fn run(context: &Context, args: Apply) -> Result<(), Error> {
    let id = args.id.clone().map_or_else(fresh_key, Ok)?;
    let answer = created(context, &args, &id).await?;
    let plan: Plan = answer.read()?;
    for locked in &plan.skipped {
        output::say(format_args!("{} is left out: {} has its lock", locked.tenant_id, locked.holder));
    }
    let is_new = matches!(plan.status, PlanStatus::Created | PlanStatus::Ready);
    let answer = if args.start && is_new { verb(context, &id, "start", &args.why).await? } else { answer };
    if !args.watch {
        return told(context, &answer);
    }
    if !context.json {
        output::data(&id);
    }
    watch::to_the_end(context, &id, Last::Nothing).await
}

/// Has the server create the plan. With an id of its own, a request whose answer got lost can be sent again.
async fn created(context: &Context, args: &Apply, id: &str) -> Result<Answer, Error> {
    if [&args.tenants_file, &args.vars_file].iter().all(|file| file.as_deref() == Some("-")) {
        return Err(Error::Usage("--tenants-file and --vars-file cannot both be read from stdin".into()));
    }
    let (whom, vars) = (whom(args)?, given_vars(args)?);
    let body = Body::default()
        .with("definition", Some(&args.definition))
        .with("tenants", Some(whom))
        .with("id", Some(id))
        .with("vars", (!vars.is_empty()).then_some(vars))
        .with("maxConcurrency", args.max_concurrency)
        .with("reason", args.why.reason.as_ref());
    // A key is good for one request; the one that was given is for the start, if there is one.
    let given = if args.start { fresh_key()? } else { key(&args.why)? };
    context.client.post("/v1/plans", Ask { body: Some(body), key: Some(given), ..Ask::default() }).await
}

fn whom(args: &Apply) -> Result<Vec<String>, Error> {
    let mut whom = args.tenants.clone();
    if let Some(file) = &args.tenants_file {
        let (from, text) = file_or_stdin("--tenants-file", file)?;
        whom.extend(tenants::listed(&from, &text)?);
    }
    if whom.is_empty() {
        return Err(Error::Usage("--tenants-file: there is no tenant in it".into()));
    }
    Ok(whom)
}

fn given_vars(args: &Apply) -> Result<vars::Vars, Error> {
    let mut all = match &args.vars_file {
        Some(file) => {
            let (from, text) = file_or_stdin("--vars-file", file)?;
            vars::of_file(&from, &text)?
        }
        None => vars::Vars::new(),
    };
    args.vars.iter().try_for_each(|given| vars::add(&mut all, given))?;
    Ok(all)
}

fn told(context: &Context, answer: &Answer) -> Result<(), Error> {
    if context.json {
        output::data(&answer.text);
        return Ok(());
    }
    let plan: Plan = answer.read()?;
    output::data(&plan.id);
    output::hint(grid::sentence(&plan).unwrap_or_else(|| format!("look at it with: steadfast plan show {} --watch", plan.id)));
    Ok(())
}
