//! `letters`: the dead letters, as far as lists show them. Their bytes are in the journals of their boxes and keys.

use super::keys::past;
use super::{Query, Read, Steps, Wrong, all, column, count, free, free_if, get, integer, limit as rows, parsed, small, time};
use crate::session::param;
use crate::types::{At, Free, stored};
use std::collections::BTreeMap;
use steadfast_kernel::{Direction, EntityId, Failure, LetterAbout, LetterHome, LetterId, MessageKind, StepId, Timestamp};
use steadfast_store::{Batch, LetterChange, LetterCursor, LetterFilter, LetterKind, LetterRow};
use tokio_postgres::Row;

const PUT: &str = "INSERT INTO steadfast.letters (home, seq, shard, about, detail, tenant, class, code, message, failure, added_at)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[],
  $11::timestamptz[])
WHERE steadfast.begun() ON CONFLICT (home, seq) DO UPDATE SET shard = EXCLUDED.shard, about = EXCLUDED.about, detail = EXCLUDED.detail, tenant = EXCLUDED.tenant,
  class = EXCLUDED.class, code = EXCLUDED.code, message = EXCLUDED.message, failure = EXCLUDED.failure, added_at = EXCLUDED.added_at";

const FAIL: &str = "UPDATE steadfast.letters l SET class = g.class, code = g.code, message = g.message, failure = g.failure
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bytea[]) AS g(home, seq, class, code, message, failure)
WHERE l.home = g.home AND l.seq = g.seq AND steadfast.begun()";

const REMOVE: &str = "DELETE FROM steadfast.letters l USING unnest($1::text[], $2::bigint[]) AS g(home, seq) WHERE l.home = g.home AND l.seq = g.seq AND steadfast.begun()";

pub(crate) const GET: &str = "SELECT * FROM steadfast.letters WHERE home = $1 AND seq = $2";

/// What a letter is about, by its home: as in the index `letters_kind`.
const KIND: &str = "(CASE WHEN strpos(home, ':') = 0 THEN 'step' ELSE split_part(home, ':', 1) END)";

/// In which order letters are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    NewestFirst,
    OldestFirst,
}

/// What becomes of a letter by all changes together.
enum Net<'a> {
    Put(&'a LetterRow, &'a Failure),
    Fail(&'a Failure),
    Remove,
}

/// Puts and removes.
pub(crate) fn change<'a>(batches: &'a [Batch], steps: &mut Steps<'a>) {
    let mut changes = BTreeMap::new();
    for change in all(batches, |batch| &batch.letters) {
        match change {
            LetterChange::Put(row) => drop(changes.insert(key(&row.letter), Net::Put(row, &row.failure))),
            LetterChange::Remove(letter) => drop(changes.insert(key(letter), Net::Remove)),
            LetterChange::Fail(letter, failure) => {
                let change = changes.entry(key(letter)).or_insert(Net::Fail(failure));
                match change {
                    Net::Put(_, why) | Net::Fail(why) => *why = failure,
                    Net::Remove => {}
                }
            }
        }
    }
    let (mut put, mut failed, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for (key, change) in changes {
        match change {
            Net::Put(row, failure) => put.push((key, row, failure)),
            Net::Fail(failure) => failed.push((key, failure)),
            Net::Remove => removed.push(key),
        }
    }
    if !removed.is_empty() {
        let (homes, seqs): (Vec<_>, Vec<_>) = removed.into_iter().unzip();
        steps.add(REMOVE, [param(homes), param(seqs)]);
    }
    if !put.is_empty() {
        add_put(put, steps);
    }
    if !failed.is_empty() {
        add_failed(failed, steps);
    }
}

type Key = (String, i64);

fn add_put<'a>(put: Vec<(Key, &'a LetterRow, &'a Failure)>, steps: &mut Steps<'a>) {
    let (about, details): (Vec<_>, Vec<_>) = put.iter().map(|(_, row, _)| about_texts(&row.about)).unzip();
    steps.add(
        PUT,
        [
            param(column(&put, |(key, ..)| key.0.clone())),
            param(column(&put, |(key, ..)| key.1)),
            param(column(&put, |(_, row, _)| row.shard.cast_signed())),
            param(about),
            param(details),
            param(column(&put, |(_, row, _)| row.tenant.as_deref().map(Free))),
            param(column(&put, |(.., failure)| failure.class.as_str())),
            param(column(&put, |(.., failure)| failure.code.as_str())),
            param(column(&put, |(.., failure)| Free(&failure.message))),
            param(column(&put, |(.., failure)| failure.encode().to_vec())),
            param(column(&put, |(_, row, _)| At(row.added_at))),
        ],
    );
}

fn add_failed<'a>(failed: Vec<(Key, &'a Failure)>, steps: &mut Steps<'a>) {
    steps.add(
        FAIL,
        [
            param(column(&failed, |(key, _)| key.0.clone())),
            param(column(&failed, |(key, _)| key.1)),
            param(column(&failed, |(_, failure)| failure.class.as_str())),
            param(column(&failed, |(_, failure)| failure.code.as_str())),
            param(column(&failed, |(_, failure)| Free(&failure.message))),
            param(column(&failed, |(_, failure)| failure.encode().to_vec())),
        ],
    );
}

fn about_texts(about: &LetterAbout) -> (String, String) {
    let (about, detail) = match about {
        LetterAbout::Step { run, step } => (run.to_string(), step.to_string()),
        LetterAbout::Expiry { key, revision } => (EntityId::Key(key.clone()).to_string(), revision.to_string()),
        LetterAbout::Message { route, direction, kind, peer, request } => {
            let detail = format!("{} {} {peer} {request}", direction.as_str(), kind.as_str());
            (EntityId::Route(route.clone()).to_string(), detail)
        }
    };
    (about, stored(&detail).into_owned())
}

/// The letters that the filter lets through, from the one after that place.
pub(crate) fn list<'a>(filter: &'a LetterFilter, order: Order, after: Option<&'a LetterCursor>, limit: usize) -> Query<'a> {
    let mut query = Query::new("SELECT * FROM steadfast.letters WHERE true");
    let (follows, direction) = if order == Order::NewestFirst { ("<", " DESC") } else { (">", "") };
    if let Some(LetterCursor { added_at, letter }) = after {
        let (home, seq) = key(letter);
        query.ask(&format!(" AND (added_at, home, seq) {follows} ($, $, $)"), [param(At(*added_at)), param(home), param(seq)]);
    }
    clauses(filter, &mut query);
    let order = format!(" ORDER BY added_at{direction}, home{direction}, seq{direction} LIMIT $");
    query.ask(&order, [param(rows(limit))]);
    query
}

/// How many letters the filter lets through.
pub(crate) fn count_of(filter: &LetterFilter) -> Query<'_> {
    let mut query = Query::new("SELECT count(*) AS letters FROM steadfast.letters WHERE true");
    clauses(filter, &mut query);
    query
}

fn clauses<'a>(filter: &'a LetterFilter, query: &mut Query<'a>) {
    let time = |time: Timestamp| param(At(time));
    query.ask_if(" AND home = $", filter.home.as_ref().map(|home| param(home.to_string())));
    let kind = match filter.kind {
        Some(LetterKind::Step) => Some("step"),
        Some(LetterKind::Expiry) => Some("key"),
        Some(LetterKind::Message) => Some("route"),
        None => None,
    };
    query.ask_if(&format!(" AND {KIND} = $"), kind.map(param));
    if let Some(prefix) = &filter.key_prefix {
        let from = format!("key:{prefix}");
        query.ask_between("home", &from, past(&from));
    }
    if let Some(tenant) = &filter.tenant {
        query.ask_long("tenant", tenant);
    }
    query.ask_if(" AND class = $", filter.class.map(|class| param(class.as_str())));
    query.ask_if(" AND code = $", filter.code.map(|code| param(code.as_str())));
    query.ask_if(" AND added_at >= $", filter.since.map(time));
    query.ask_if(" AND added_at < $", filter.until.map(time));
}

pub(crate) fn key(letter: &LetterId) -> Key {
    (letter.home.to_string(), integer(letter.seq))
}

pub(crate) fn row(row: &Row) -> Read<LetterRow> {
    let detail = free(row, "detail")?;
    Ok(LetterRow {
        shard: small(row, "shard")?,
        letter: LetterId { home: parsed(row, "home", LetterHome::parse)?, seq: count(row, "seq")? },
        about: parsed(row, "about", |entity| about(EntityId::from_stored(entity)?, &detail))?,
        tenant: free_if(row, "tenant")?,
        failure: Failure::decode(get(row, "failure")?).ok_or_else(|| Wrong("a failure that cannot be read".into()))?,
        added_at: time(row, "added_at")?,
    })
}

fn about(entity: EntityId, detail: &str) -> Option<LetterAbout> {
    match entity {
        EntityId::Run(run) => Some(LetterAbout::Step { run, step: StepId::from_stored(detail) }),
        EntityId::Key(key) => Some(LetterAbout::Expiry { key, revision: detail.parse().ok()? }),
        EntityId::Route(route) => {
            let mut words = detail.splitn(4, ' ');
            let (direction, kind) = (Direction::parse(words.next()?)?, MessageKind::parse(words.next()?)?);
            Some(LetterAbout::Message { route, direction, kind, peer: words.next()?.into(), request: words.next()?.into() })
        }
        EntityId::Limit(_) | EntityId::Letters(_) | EntityId::Plan(_) | EntityId::Lock(_) => None,
    }
}
