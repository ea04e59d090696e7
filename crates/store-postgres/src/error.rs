//! What PostgreSQL says, in the words of the store.

use std::path::PathBuf;
use steadfast_store::Error;
use tokio_postgres::error::SqlState;

/// Somebody else has the shard, the batch does not follow on, or another connection of ours writes by now; see `fence` in the migrations.
pub(crate) const FENCED: &str = "SF001";
pub(crate) const GAP: &str = "SF002";
pub(crate) const OTHER_WRITER: &str = "SF003";

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
            Some(code) if *code == SqlState::DISK_FULL => Error::Full { what, source: error.into() },
            Some(code) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly { what, source: error.into() },
            Some(code) if code.code() == FENCED || code.code() == GAP => refused(&error).unwrap_or_else(|| Error::unavailable(what, error)),
            code => {
                let hint = code.and_then(hint).map(|hint| format!(" ({hint})")).unwrap_or_default();
                Error::unavailable(format!("cannot {what}{hint}"), error)
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
        "57014" => "it took longer than the statement timeout",
        _ => return None,
    })
}

/// A refusal of `fence`, which says in its detail what it is about.
fn refused(error: &tokio_postgres::Error) -> Option<Error> {
    let said = error.as_db_error()?;
    let (shard, number) = said.detail()?.split_once(' ')?;
    let (shard, number) = (shard.parse().ok()?, number.parse().ok()?);
    match said.code().code() {
        FENCED => Some(Error::Fenced { shard, term: number }),
        GAP => Some(Error::Gap { shard, after: number }),
        _ => None,
    }
}

/// Whether the connection has to be given up, and what was sent over it last may have been done or not.
pub(crate) fn is_broken(error: &tokio_postgres::Error) -> bool {
    // Classes: connection, and operator intervention but for a cancelled statement.
    error.code().is_none_or(|code| code.code().starts_with("08") || code.code().starts_with("57P"))
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
