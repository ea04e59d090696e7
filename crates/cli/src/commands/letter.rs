//! `steadfast letter …`.

mod redrive;

use crate::args::{Common, LetterCommand, LetterId, Which, Why};
use crate::client::{Ask, Body, Client, encoded};
use crate::commands::pages::{self, Part};
use crate::commands::run::{bare, key, told};
use crate::config::Config;
use crate::error::Error;
use crate::output::table::{Cell, Column, Table};
use crate::output::{self, style, time};
use steadfast_server::shapes::{Data, Letter};

pub(crate) async fn run(common: &Common, command: LetterCommand) -> Result<(), Error> {
    let client = Client::new(&Config::load(&common.given())?)?;
    match command {
        LetterCommand::List { which, limit, cursor, all } => list(&client, common.json, &which, Part { limit, cursor, all }).await,
        LetterCommand::Show { id } => show(&client, common.json, &id).await,
        LetterCommand::Redrive(args) => redrive::run(&client, common.json, &args).await,
        LetterCommand::Drop(args) => drop(&client, common.json, &args).await,
    }
}

async fn list(client: &Client, json: bool, which: &Which, part: Part) -> Result<(), Error> {
    let whole = pages::read(client, "/v1/letters", which.parts(), part).await?;
    if json {
        output::data(whole.to_json());
        return Ok(());
    }
    let letters: Vec<Letter> = whole.each()?;
    if letters.is_empty() {
        output::say(if which.parts().is_empty() { "no dead letters" } else { "no such dead letters" });
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
            letter
                .run
                .as_ref()
                .or(letter.key.as_ref())
                .or(letter.request.as_ref())
                .cloned()
                .unwrap_or_default()
                .into(),
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
    for (name, value) in [("route", &letter.route), ("peer", &letter.peer), ("request", &letter.request)] {
        if let Some(value) = value {
            output::data(format_args!("{}{}", fact(name), output::plain(value)));
        }
    }
    if let Some(payload) = &letter.payload {
        let name = match (&letter.key, &letter.route) {
            (Some(_), _) => "value",
            (_, Some(_)) => "says",
            _ => "input",
        };
        output::data(format_args!("{}{}", fact(name), said(payload)));
    }
    if let Some(size) = letter.size.filter(|_| letter.route.is_some()) {
        output::data(format_args!("{}{size} bytes", fact("size")));
    }
    output::hint(format_args!(
        "\nwhen the cause is mended: steadfast letter redrive {}; to forget it: steadfast letter drop {}",
        letter.id, letter.id
    ));
    Ok(())
}

/// JSON as it is; what is none, in base64.
fn said(payload: &Data) -> String {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Encoded {
        #[serde(rename = "encoding")]
        _encoding: String,
        base64: String,
    }
    match serde_json::from_str::<Encoded>(payload.as_str()) {
        Ok(Encoded { base64, .. }) => format!("{base64} (base64)"),
        Err(_) => payload.as_str().into(),
    }
}

/// The step of a run, what is to be told of a key, or what a message was.
fn step(letter: &Letter) -> &str {
    match (&letter.key, &letter.message_kind) {
        (Some(_), _) => "expiry",
        (_, Some(kind)) => kind,
        _ => bare(letter.path.as_deref().unwrap_or_default()),
    }
}

fn about(letter: &Letter) -> String {
    let way = if letter.direction.as_deref() == Some("sent") { "to" } else { "from" };
    match (&letter.key, letter.revision, &letter.route, &letter.peer) {
        (Some(key), Some(revision), ..) => format!("expiry of {key}, revision {revision}"),
        (_, _, Some(route), Some(peer)) => output::plain(&format!("{} on {route} {way} {peer}", step(letter))),
        _ => format!("step {} of {}", step(letter), letter.run.as_deref().unwrap_or_default()),
    }
}

fn fact(name: &str) -> String {
    style::paint(style::FAINT, format_args!("{name:<10}"))
}

async fn drop(client: &Client, json: bool, args: &LetterId) -> Result<(), Error> {
    let mut ask = ask(&args.why)?;
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

fn ask(why: &Why) -> Result<Ask, Error> {
    let body = Body::default().with("reason", why.reason.as_ref());
    Ok(Ask { body: Some(body), key: Some(key(why)?), ..Ask::default() })
}

fn path(id: &str, rest: &str) -> String {
    format!("/v1/letters/{}{rest}", encoded(id))
}
