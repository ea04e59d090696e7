//! `steadfast lock …`.

use crate::args::{Break, Common, LockCommand};
use crate::client::{Ask, Client, encoded, fresh_key};
use crate::commands::pages::{self, Part};
use crate::config::Config;
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use std::io::IsTerminal;
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::Lock;

pub(crate) async fn run(common: &Common, command: LockCommand) -> Result<(), Error> {
    let client = Client::new(&Config::load(&common.given())?)?;
    match command {
        LockCommand::List { limit, cursor, all } => list(&client, common.json, Part { limit, cursor, all }).await,
        LockCommand::Break(args) => broken(&client, common.json, &args).await,
    }
}

async fn list(client: &Client, json: bool, part: Part) -> Result<(), Error> {
    let whole = pages::read(client, "/v1/locks", Vec::new(), part).await?;
    if json {
        output::data(whole.to_json());
        return Ok(());
    }
    let locks: Vec<Lock> = whole.each()?;
    if locks.is_empty() {
        output::say("no locks");
        return Ok(());
    }
    output::data(table(&locks, time::now()).to_text());
    whole.hint_at_more();
    Ok(())
}

fn table(locks: &[Lock], now: Timestamp) -> Table {
    let shared = locks.iter().any(|lock| lock.instance.is_some());
    let mut columns = vec![Column::whole("TENANT"), Column::whole("PLAN"), Column::spare("TASK")];
    columns.extend(shared.then(|| Column::spare("INSTANCE")));
    columns.extend(["FENCE", "SINCE", "UNTIL", "WAITING"].map(Column::whole));
    let mut table = Table::new(columns);
    for lock in locks {
        let mut row = vec![Cell::styled(lock.tenant_id.clone(), style::BOLD), lock.plan_id.clone().into(), lock.task_id.clone().into()];
        row.extend(shared.then(|| lock.instance.clone().unwrap_or_default().into()));
        row.extend([
            lock.fence.to_string().into(),
            lock.since.map(|since| time::relative(since.0, now)).unwrap_or_default().into(),
            time::relative(lock.expires_at.0, now).into(),
            if lock.waiting == 0 { "".into() } else { lock.waiting.to_string().into() },
        ]);
        table.row(row);
    }
    table
}

async fn broken(client: &Client, json: bool, args: &Break) -> Result<(), Error> {
    let tenant = &args.tenant.tenant;
    if !args.yes && std::io::stdin().is_terminal() && !is_meant(tenant) {
        return Err(Error::Failed(format!("the lock of {tenant} is left as it is")));
    }
    let key = args.idempotency_key.clone().map_or_else(fresh_key, Ok)?;
    let query = vec![("reason", args.reason.clone())]; // many intermediaries take the body of a DELETE away
    client
        .delete(&format!("/v1/locks/{}", encoded(tenant)), Ask { query, key: Some(key), ..Ask::default() })
        .await?;
    if json {
        output::data("null");
    } else {
        output::say(format_args!("the lock of {tenant} is broken; see what became of its task with: steadfast tenant show {tenant}"));
    }
    Ok(())
}

/// Asks whether a lock is to be broken. What is not a clear yes is a no.
fn is_meant(tenant: &str) -> bool {
    output::say(format_args!(
        "A task that has the lock of {tenant} and is under way is interrupted, but what it has begun may go on for a while.\nBreak the lock of {tenant}? [y/N]"
    ));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
