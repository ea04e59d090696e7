//! `steadfast letter redrive`: one letter, or all that fit, part by part.

use super::{ask, done, path};
use crate::args::Redrive;
use crate::client::{Ask, Body, Client};
use crate::commands::run::key;
use crate::error::Error;
use crate::output;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use steadfast_server::shapes::{LetterRefused, LettersRedriven, Time};

/// How many are asked for at once if there is no rate.
const PART: u64 = 500;

/// For how long a part takes at a rate: after that there is news.
const PART_SECONDS: u64 = 5;

/// How many reasons are told.
const REASONS_MAX: usize = 10;

pub(super) async fn run(client: &Client, json: bool, args: &Redrive) -> Result<(), Error> {
    let is_narrow = !args.which.parts().is_empty();
    match &args.id {
        Some(_) if is_narrow || args.all || args.dry_run || args.rate.is_some() || args.limit.is_some() => {
            Err(Error::Usage("name one letter, or say which are meant: not both".into()))
        }
        Some(id) => one(client, json, id, args).await,
        None if !is_narrow && !args.all => Err(Error::Usage(
            "name a letter, or say which are meant: --workflow, --route, --key-prefix, --kind, --code, …; --all means every dead letter"
                .into(),
        )),
        None => many(client, json, args).await,
    }
}

async fn one(client: &Client, json: bool, id: &str, args: &Redrive) -> Result<(), Error> {
    let answer = client.post(&path(id, "/redrive"), ask(&args.why)?).await?;
    let what = match id.split_once(':') {
        Some(("key", _)) => "the expiry is told again",
        Some(("route", _)) => "its message is delivered",
        _ => "its run begins again at that step",
    };
    done(json, &answer.text, format_args!("{id} is redriven: {what}"));
    Ok(())
}

/// What came of all parts.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sum {
    matching: u64,
    redriven: u64,
    refused: u64,
    reasons: Vec<LetterRefused>,
    more: bool,
}

/// Where the next part begins.
#[derive(Default)]
struct Place {
    cursor: Option<String>,
    added_before: Option<Time>,
}

async fn many(client: &Client, json: bool, args: &Redrive) -> Result<(), Error> {
    let key = key(&args.why)?;
    let counted: LettersRedriven = part(client, args, &key, true, PART, &Place::default()).await?;
    let matching = counted.matching.unwrap_or_default();
    let wanted = args.limit.map_or(matching, |limit| limit.min(matching));
    if args.dry_run || matching == 0 {
        counted_only(json, wanted, args.dry_run);
        return Ok(());
    }
    if !args.yes && !std::io::stdin().is_terminal() {
        return Err(Error::Usage(format!(
            "{wanted} dead letters would be tried again, and nobody is there to ask: say --yes if that is meant"
        )));
    }
    if !args.yes && !is_meant(wanted) {
        return Err(Error::Failed("the dead letters are left as they are".into()));
    }
    let (mut sum, mut place) = (Sum { matching, ..Sum::default() }, Place::default());
    loop {
        let left = args.limit.map_or(u64::MAX, |limit| limit - sum.redriven - sum.refused);
        let size = args.rate.map_or(PART, |rate| u64::from(rate) * PART_SECONDS).min(left);
        let came: LettersRedriven = part(client, args, &key, false, size, &place).await?;
        sum.redriven += came.redriven;
        sum.refused += came.refused;
        sum.reasons.extend(came.reasons);
        sum.reasons.truncate(REASONS_MAX);
        sum.more = came.more;
        let is_over = !came.more || came.next_cursor == place.cursor || args.limit.is_some_and(|limit| sum.redriven + sum.refused >= limit);
        place = Place { cursor: came.next_cursor, added_before: came.added_before };
        progress(&sum, wanted, is_over);
        if is_over {
            return ended(json, &sum);
        }
        if let Some(rate) = args.rate {
            output::time::pass(Duration::from_secs(1) / rate).await; // the pace goes on from part to part
        }
    }
}

/// Has a part of them tried again, or counts all of them.
async fn part(client: &Client, args: &Redrive, key: &str, dry_run: bool, limit: u64, place: &Place) -> Result<LettersRedriven, Error> {
    let mut body = Body::default().with("reason", args.why.reason.as_ref()).with("limit", Some(limit));
    for (name, value) in args.which.parts() {
        body = body.with(name, Some(value));
    }
    body = body.with("perSecond", args.rate).with("dryRun", dry_run.then_some(true));
    body = body.with("cursor", place.cursor.as_ref()).with("addedBefore", place.added_before);
    let key = if dry_run { None } else { Some(key.to_string()) };
    client.post("/v1/letters/redrive", Ask { body: Some(body), key, ..Ask::default() }).await?.read()
}

fn counted_only(json: bool, matching: u64, dry_run: bool) {
    match (json, matching) {
        (true, _) => output::data(serde_json::to_string(&Sum { matching, more: matching > 0, ..Sum::default() }).unwrap_or_default()),
        (false, 0) => output::say("no such dead letters"),
        (false, _) if dry_run => output::say(format_args!("{} would be tried again", letters(matching))),
        (false, _) => {}
    }
}

fn is_meant(wanted: u64) -> bool {
    output::say(format_args!("Try {} again? [y/N]", letters(wanted)));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// One line that is written again and again on a terminal, and a line for each part elsewhere.
fn progress(sum: &Sum, wanted: u64, is_over: bool) {
    let tried = sum.redriven + sum.refused;
    let text = format!("{tried} of {wanted} tried again, {} of them refused", sum.refused);
    if !std::io::stderr().is_terminal() {
        return output::say(text);
    }
    let mut stderr = std::io::stderr().lock();
    let _unheard = write!(stderr, "\r\x1b[K{text}{}", if is_over { "\n" } else { "" });
    let _unheard = stderr.flush();
}

fn ended(json: bool, sum: &Sum) -> Result<(), Error> {
    if json {
        output::data(serde_json::to_string(sum).unwrap_or_default());
    } else {
        for why in &sum.reasons {
            output::say(format_args!("{}: {} ({})", why.letter, output::plain(&why.detail), why.code));
        }
        output::say(format_args!("{} redriven, {} still there", letters(sum.redriven), sum.refused));
    }
    if sum.refused > 0 { Err(Error::Said(1)) } else { Ok(()) }
}

fn letters(number: u64) -> String {
    if number == 1 { "1 dead letter".into() } else { format!("{number} dead letters") }
}
