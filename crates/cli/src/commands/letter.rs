//! `steadfast letter …`.

use crate::args::{Common, LetterCommand, LetterId};
use crate::client::{Ask, Body, Client, encoded};
use crate::commands::pages::{self, Part};
use crate::commands::run::{bare, key, told};
use crate::config::Config;
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use steadfast_server::shapes::Letter;

pub(crate) async fn run(common: &Common, command: LetterCommand) -> Result<(), Error> {
    let client = Client::new(&Config::load(&common.given())?)?;
    match command {
        LetterCommand::List { limit, cursor, all } => list(&client, common.json, Part { limit, cursor, all }).await,
        LetterCommand::Show { id } => show(&client, common.json, &id).await,
        LetterCommand::Redrive(args) => redrive(&client, common.json, &args).await,
        LetterCommand::Drop(args) => drop(&client, common.json, &args).await,
    }
}

async fn list(client: &Client, json: bool, part: Part) -> Result<(), Error> {
    let whole = pages::read(client, "/v1/letters", Vec::new(), part).await?;
    if json {
        output::data(whole.to_json());
        return Ok(());
    }
    let letters: Vec<Letter> = whole.each()?;
    if letters.is_empty() {
        output::say("no dead letters");
        return Ok(());
    }
    let now = time::now();
    let mut table = Table::new(vec![
        Column::whole("LETTER"),
        Column::whole("ABOUT"),
        Column::cut("STEP"),
        Column::spare("TENANT"),
        Column::whole("ADDED"),
        Column::cut("WHY"),
    ]);
    for letter in &letters {
        table.row(vec![
            Cell::styled(letter.id.clone(), style::BOLD),
            letter.run.as_ref().or(letter.key.as_ref()).cloned().unwrap_or_default().into(),
            step(letter).into(),
            letter.tenant.clone().unwrap_or_default().into(),
            time::relative(letter.added_at.0, now).into(),
            told(&letter.failure).into(),
        ]);
    }
    output::data(table.to_text());
    whole.hint_at_more();
    Ok(())
}

async fn show(client: &Client, json: bool, id: &str) -> Result<(), Error> {
    let answer = client.get(&path(id, ""), Vec::new()).await?;
    if json {
        output::data(answer.text);
        return Ok(());
    }
    let letter: Letter = answer.read()?;
    output::data(format_args!("{}  {}", style::paint(style::BOLD, &letter.id), about(&letter)));
    output::data(style::paint(style::BAD, told(&letter.failure)));
    for cause in &letter.failure.causes {
        output::data(format_args!("  caused by: {cause}"));
    }
    output::data(format_args!("\n{}{}", fact("added"), time::relative(letter.added_at.0, time::now())));
    if let Some(attempt) = letter.attempt {
        output::data(format_args!("{}{attempt}", fact("attempt")));
    }
    if let Some(tenant) = &letter.tenant {
        output::data(format_args!("{}{tenant}", fact("tenant")));
    }
    if let Some(payload) = &letter.payload {
        let name = if letter.key.is_some() { "value" } else { "input" };
        output::data(format_args!("{}{}", fact(name), payload.as_str()));
    }
    output::hint(format_args!(
        "\nwhen the cause is mended: steadfast letter redrive {}; to forget it: steadfast letter drop {}",
        letter.id, letter.id
    ));
    Ok(())
}

/// The step of a run, or what is to be told of a key.
fn step(letter: &Letter) -> &str {
    if letter.key.is_some() { "expiry" } else { bare(letter.path.as_deref().unwrap_or_default()) }
}

fn about(letter: &Letter) -> String {
    match (&letter.key, letter.revision) {
        (Some(key), Some(revision)) => format!("expiry of {key}, revision {revision}"),
        _ => format!("step {} of {}", step(letter), letter.run.as_deref().unwrap_or_default()),
    }
}

fn fact(name: &str) -> String {
    style::paint(style::FAINT, format_args!("{name:<10}"))
}

async fn redrive(client: &Client, json: bool, args: &LetterId) -> Result<(), Error> {
    let answer = client.post(&path(&args.id, "/redrive"), ask(args)?).await?;
    let what = if is_expiry(&args.id) { "the expiry is told again" } else { "its run begins again at that step" };
    done(json, &answer.text, format_args!("{} is redriven: {what}", args.id));
    Ok(())
}

async fn drop(client: &Client, json: bool, args: &LetterId) -> Result<(), Error> {
    let mut ask = ask(args)?;
    ask.query.extend(args.why.reason.clone().map(|reason| ("reason", reason)));
    ask.body = None; // many intermediaries take the body of a DELETE away
    let answer = client.delete(&path(&args.id, ""), ask).await?;
    done(json, &answer.text, format_args!("{} is dropped", args.id));
    Ok(())
}

fn done(json: bool, answer: &str, said: std::fmt::Arguments<'_>) {
    match (json, answer.trim()) {
        (true, "") => output::data("null"),
        (true, answer) => output::data(answer),
        (false, _) => output::say(said),
    }
}

/// Letters of keys are in the box of their key.
fn is_expiry(id: &str) -> bool {
    id.starts_with("key:")
}

fn ask(args: &LetterId) -> Result<Ask, Error> {
    let body = Body::default().with("reason", args.why.reason.as_ref());
    Ok(Ask { body: Some(body), key: Some(key(&args.why)?), ..Ask::default() })
}

fn path(id: &str, rest: &str) -> String {
    format!("/v1/letters/{}{rest}", encoded(id))
}
