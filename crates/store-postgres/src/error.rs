//! What PostgreSQL says, in the words of the store.

use crate::migrate;
use std::path::PathBuf;
use steadfast_store::Error;
use tokio_postgres::error::SqlState;

/// Somebody else has the shard, the batch does not follow on, or another connection of ours writes by now; see `fence` in the migrations.
pub(crate) const FENCED: &str = "SF001";
pub(crate) const GAP: &str = "SF002";
pub(crate) const OTHER_WRITER: &str = "SF003";
/// A newer program has changed the schema so that this one cannot go on.
const OUTDATED: &str = "SF005";

/// What is tried first.
pub(crate) const CONNECT: &str = "connect";

/// Which database this is about, for people; without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Database(pub(crate) String);

impl Database {
    /// Trouble while doing `what` ("read a journal").
    pub(crate) fn trouble(&self, what: &str, error: tokio_postgres::Error) -> Error {
        let what = self.what(what);
        match error.code() {
            Some(code) if *code == SqlState::DISK_FULL => Error::Full { what, source: said(&error).into() },
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly { what, source: said(&error).into() },
            Some(code) if [FENCED, GAP, OUTDATED].contains(&code.code()) => {
                self.refused(&error).unwrap_or_else(|| Error::unavailable(what, said(&error)))
            }
            code => {
                let hint = code.and_then(hint).map(|hint| format!(" ({hint})")).unwrap_or_default();
                Error::unavailable(format!("cannot {what}{hint}"), said(&error))
            }
        }
    }

    /// No answer came in time.
    pub(crate) fn too_slow(&self, what: &str) -> Error {
        Error::Unavailable { what: format!("cannot {}: no answer came in time", self.what(what)), source: None }
    }

    fn what(&self, what: &str) -> String {
        format!("{what} {} {}", if what == CONNECT { "to" } else { "in" }, self.0)
    }

    /// A refusal of `fence`, which says in its detail what it is about.
    fn refused(&self, error: &tokio_postgres::Error) -> Option<Error> {
        let said = error.as_db_error()?;
        let (first, number) = said.detail()?.split_once(' ')?;
        let (first, number): (u32, u64) = (first.parse().ok()?, number.parse().ok()?);
        match said.code().code() {
            FENCED => Some(Error::Fenced { shard: first, term: number }),
            GAP => Some(Error::Gap { shard: first, after: number }),
            OUTDATED => Some(Error::Newer { path: PathBuf::from(&self.0), found: first, known: number.try_into().ok()? }),
            _ => None,
        }
    }

    /// A newer program has brought the schema to that version, with which this one cannot go on.
    pub(crate) fn newer(&self, found: u32) -> Error {
        Error::Newer { path: PathBuf::from(&self.0), found, known: migrate::known().cast_unsigned() }
    }

    /// Something is stored that cannot be.
    pub(crate) fn corrupt(&self, why: impl Into<String>) -> Error {
        Error::Corrupt { path: PathBuf::from(&self.0), why: why.into() }
    }
}

/// What a person can do about it.
fn hint(code: &SqlState) -> Option<&'static str> {
    Some(match code.code() {
        "53300" | "53400" => "the server has no connection left: raise its max_connections, or let this program have fewer",
        "28P01" | "28000" => "check the user, the password and pg_hba.conf",
        "3D000" => "create the database first",
        "42501" => "the user needs the right to create a schema in this database, or to use the one that is there",
        "3F000" | "42P01" | "42883" | "42703" => "the schema steadfast was changed or removed by somebody else",
        "57P03" => "it is starting or stopping",
        "55P03" => "somebody else has locked what it needs",
        "57014" => "it took longer than the statement timeout",
        _ => return None,
    })
}

/// What went wrong, for people. What the server adds to it may have values of rows in it, and is left out.
pub(crate) fn said(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", said.message(), said.code().code());
    }
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let mut texts: Vec<_> = chain.map(ToString::to_string).collect();
    texts.dedup_by(|next, text| text.ends_with(next.as_str()));
    texts.join(": ")
}

/// Whether the connection has to be given up, and what was sent over it last may have been done or not.
pub(crate) fn is_broken(error: &tokio_postgres::Error) -> bool {
    // Classes: connection, and operator intervention but for a cancelled statement.
    let breaks = |code: &SqlState| code.code().starts_with("08") || code.code().starts_with("57P");
    error.code().map_or_else(|| !is_unsent(error), breaks)
}

/// Whether a value could not be sent at all: the driver has no other word for it.
fn is_unsent(error: &tokio_postgres::Error) -> bool {
    let text = error.to_string();
    !error.is_closed()
        && ["error serializing parameter", "error encoding message"]
            .iter()
            .any(|begin| text.starts_with(begin))
}

/// Whether a single batch can be the reason: its fences, its values, its rows or its size. Anything else is likely to go wrong with every other one.
pub(crate) fn is_of_one_batch(error: &tokio_postgres::Error) -> bool {
    let is_ours = |code: &str| [FENCED, GAP, OTHER_WRITER].contains(&code);
    // Classes: data, and limits of a row or of an index.
    let of_values = |code: &str| code.starts_with("22") || code.starts_with("54") || code == SqlState::UNIQUE_VIOLATION.code();
    error.code().map_or_else(|| is_unsent(error), |code| is_ours(code.code()) || of_values(code.code()))
}

pub(crate) fn is_read_only(error: &tokio_postgres::Error) -> bool {
    has_code(error, SqlState::READ_ONLY_SQL_TRANSACTION.code())
}

pub(crate) fn has_code(error: &tokio_postgres::Error, code: &str) -> bool {
    error.code().is_some_and(|found| found.code() == code)
}

/// Whether a statement was prepared for a table that has other columns by now.
pub(crate) fn is_outdated(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| *code == SqlState::FEATURE_NOT_SUPPORTED)
}

/// The same once more, for another one who waits.
pub(crate) fn again(error: &Error) -> Error {
    let said = |source: &dyn std::error::Error| {
        let chain = std::iter::successors(Some(source), |error| error.source());
        chain.map(ToString::to_string).collect::<Vec<_>>().join(": ").into()
    };
    match error {
        Error::Full { what, source } => Error::Full { what: what.clone(), source: said(&**source) },
        Error::ReadOnly { what, source } => Error::ReadOnly { what: what.clone(), source: said(&**source) },
        Error::Unavailable { what, source } => {
            Error::Unavailable { what: what.clone(), source: source.as_ref().map(|source| said(&**source)) }
        }
        Error::Fenced { shard, term } => Error::Fenced { shard: *shard, term: *term },
        Error::Gap { shard, after } => Error::Gap { shard: *shard, after: *after },
        Error::Corrupt { path, why } => Error::Corrupt { path: path.clone(), why: why.clone() },
        Error::Newer { path, found, known } => Error::Newer { path: path.clone(), found: *found, known: *known },
        Error::Locked { .. } | Error::Foreign { .. } => Error::Unavailable { what: error.to_string(), source: None },
    }
}

/// The task that writes is gone, or the store is closing.
pub(crate) fn stopped() -> Error {
    Error::Unavailable { what: "the writer has stopped".into(), source: None }
}
