//! One file per table: what is written and what is read. Writes are steps of the transaction of their batches; of several changes of one row only the last is made.

pub(crate) mod callbacks;
pub(crate) mod definitions;
pub(crate) mod events;
#[cfg(test)]
mod explained;
pub(crate) mod feed;
pub(crate) mod keys;
pub(crate) mod letters;
pub(crate) mod locks;
pub(crate) mod outbox;
pub(crate) mod plans;
pub(crate) mod runs;
pub(crate) mod shards;
pub(crate) mod snapshots;
pub(crate) mod sweep;
pub(crate) mod tasks;
pub(crate) mod timers;

use crate::session::{Param, Step, param};
use crate::types::{At, Freed, stored};
use std::collections::BTreeMap;
use steadfast_kernel::Timestamp;
use steadfast_store::Batch;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// What is stored but cannot be; it does not show the value.
#[derive(Debug)]
pub(crate) struct Wrong(pub(crate) String);

pub(crate) type Read<T> = Result<T, Wrong>;

/// The steps of a transaction.
#[derive(Default)]
pub(crate) struct Steps<'a>(pub(crate) Vec<Step<'a>>);

impl<'a> Steps<'a> {
    /// Adds one. It does something only in a transaction that has begun.
    fn add<const N: usize>(&mut self, sql: &'static str, params: [Param<'a>; N]) {
        debug_assert!(sql.contains("steadfast.begun()"), "{sql}");
        self.0.push(Step { sql, params: params.into() });
    }
}

/// What all batches have of something, in order.
fn all<'a, T: 'a>(batches: &'a [Batch], of: impl Fn(&'a Batch) -> &'a [T]) -> impl Iterator<Item = &'a T> {
    batches.iter().flat_map(move |batch| of(batch).iter())
}

/// What changes leave behind: what is there in the end, and the keys of what is not. Both are in the order of the keys.
fn net<K: Ord, T>(changes: impl Iterator<Item = (K, Option<T>)>) -> (Vec<(K, T)>, Vec<K>) {
    let (mut put, mut gone) = (Vec::new(), Vec::new());
    for (key, change) in changes.collect::<BTreeMap<_, _>>() {
        match change {
            Some(row) => put.push((key, row)),
            None => gone.push(key),
        }
    }
    (put, gone)
}

/// A column of rows that are put.
fn column<T, V>(rows: &[T], value: impl Fn(&T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}

/// A count for a column. PostgreSQL's integers are signed; what is too large for that comes back all the same.
pub(crate) fn integer(count: u64) -> i64 {
    count.cast_signed()
}

/// How many rows at most.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Read<T> {
    row.try_get(column).map_err(|_| Wrong(format!("column {column} has a value of another kind")))
}

pub(crate) fn count(row: &Row, column: &str) -> Read<u64> {
    get::<i64>(row, column).map(i64::cast_unsigned)
}

pub(crate) fn small(row: &Row, column: &str) -> Read<u32> {
    get::<i32>(row, column).map(i32::cast_unsigned)
}

fn small_if(row: &Row, column: &str) -> Read<Option<u32>> {
    Ok(get::<Option<i32>>(row, column)?.map(i32::cast_unsigned))
}

pub(crate) fn time(row: &Row, column: &str) -> Read<Timestamp> {
    get::<At>(row, column).map(|At(time)| time)
}

fn time_if(row: &Row, column: &str) -> Read<Option<Timestamp>> {
    Ok(get::<Option<At>>(row, column)?.map(|At(time)| time))
}

pub(crate) fn free(row: &Row, column: &str) -> Read<String> {
    get::<Freed>(row, column).map(|Freed(text)| text)
}

fn free_if(row: &Row, column: &str) -> Read<Option<String>> {
    Ok(get::<Option<Freed>>(row, column)?.map(|Freed(text)| text))
}

fn bytes(row: &Row, column: &str) -> Read<bytes::Bytes> {
    get::<&[u8]>(row, column).map(bytes::Bytes::copy_from_slice)
}

/// A text column that has to be one of the things that are known.
fn parsed<T>(row: &Row, column: &str, parse: impl FnOnce(&str) -> Option<T>) -> Read<T> {
    parse(get(row, column)?).ok_or_else(|| Wrong(format!("an unknown value in column {column}")))
}

pub(crate) fn parsed_if<T>(row: &Row, column: &str, parse: impl FnOnce(&str) -> Option<T>) -> Read<Option<T>> {
    match get::<Option<&str>>(row, column)? {
        None => Ok(None),
        Some(_) => parsed(row, column, parse).map(Some),
    }
}

/// How many characters of a long text an index has.
const INDEXED: usize = 200;

/// A list that is put together from what is asked for: its clauses, and their values.
pub(crate) struct Query<'a> {
    pub(crate) sql: String,
    pub(crate) params: Vec<Param<'a>>,
}

impl<'a> Query<'a> {
    fn new(sql: &str) -> Self {
        Query { sql: sql.into(), params: Vec::new() }
    }

    /// Adds some SQL; each `$` in it is one of the values.
    fn ask<const N: usize>(&mut self, sql: &str, values: [Param<'a>; N]) {
        let mut parts = sql.split('$');
        self.sql.extend(parts.next());
        for (part, value) in parts.zip(values) {
            self.params.push(value);
            self.sql.push_str(&format!("${}{part}", self.params.len()));
        }
    }

    /// Asks for a text that may be longer than an index takes, which has only the beginning. Where that is all of it, nothing else is asked, because
    /// PostgreSQL would take both for reasons of their own, and expect fewer rows than there are.
    fn ask_long(&mut self, column: &str, text: &'a str) {
        let text = stored(text);
        let begin: String = text.chars().take(INDEXED).collect();
        let is_all = begin.chars().count() < INDEXED;
        self.ask(&format!(" AND \"left\"({column}, {INDEXED}) = $"), [param(begin)]);
        if !is_all {
            self.ask(&format!(" AND {column} = $"), [param(text.into_owned())]);
        }
    }

    /// Asks for texts that are not less than one, and less than another. PostgreSQL has no U+0000 in texts, so nothing has it that begins so.
    fn ask_between(&mut self, column: &str, from: &str, to: String) {
        if from.contains('\0') {
            return self.ask(" AND false", []);
        }
        self.ask(&format!(" AND {column} >= $ AND {column} < $"), [param(from.to_owned()), param(to)]);
    }

    /// Adds some SQL if there is something to ask for.
    fn ask_if(&mut self, sql: &str, value: Option<Param<'a>>) {
        if let Some(value) = value {
            self.ask(sql, [value]);
        }
    }
}
