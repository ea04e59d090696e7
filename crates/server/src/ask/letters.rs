//! Which dead letters are meant.

use super::query::nearest;
use crate::problem::Problem;
use crate::shapes::Time;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use steadfast_kernel::{Class, Code, KeyName, LetterHome, RouteName, WorkflowName, check_prefix, check_tenant};
use steadfast_store::{LetterFilter, LetterKind};

/// What dead letters can be narrowed by; all that is given has to apply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NarrowLetters {
    pub(crate) workflow: Option<String>,
    pub(crate) route: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) key_prefix: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) class: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) added_after: Option<Time>,
    pub(crate) added_before: Option<Time>,
}

impl NarrowLetters {
    /// The filter for the store, if all of it can be understood.
    pub(crate) fn filter(self) -> Result<LetterFilter, Problem> {
        let homes = [
            self.workflow.map(WorkflowName::new).transpose()?.map(LetterHome::Workflow),
            self.route.map(RouteName::new).transpose()?.map(LetterHome::Route),
            self.key.map(KeyName::new).transpose()?.map(LetterHome::Key),
        ];
        let mut homes = homes.into_iter().flatten();
        let (home, another) = (homes.next(), homes.next());
        if another.is_some() {
            return Err(Problem::bad_request("a letter has one home: give only one of workflow, route and key"));
        }
        self.key_prefix.as_deref().map(check_prefix).transpose()?;
        self.tenant.as_deref().map(check_tenant).transpose()?;
        let classes = [Class::Transient, Class::Permanent, Class::Poison].map(Class::as_str);
        let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        Ok(LetterFilter {
            home,
            key_prefix: self.key_prefix,
            kind: one_of("kind", self.kind.as_deref(), &LetterKind::ALL.map(LetterKind::as_str), LetterKind::parse)?,
            tenant: self.tenant,
            class: one_of("class", self.class.as_deref(), &classes, Class::parse)?,
            code: one_of("code", self.code.as_deref(), &codes, Code::parse)?,
            since: self.added_after.map(|time| time.0),
            until: self.added_before.map(|time| time.0),
        })
    }
}

/// A time that was given as text.
pub(crate) fn time(name: &str, text: &str) -> Result<Time, Problem> {
    let read: Result<Time, serde::de::value::Error> = Time::deserialize(text.into_deserializer());
    read.map_err(|error| Problem::bad_request(format!("{name} has to be a time such as 2026-11-15T08:00:00Z: {error}")))
}

fn one_of<T>(what: &str, given: Option<&str>, known: &[&str], read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Problem> {
    let Some(given) = given else { return Ok(None) };
    read(given).map(Some).ok_or_else(|| {
        let meant = nearest(given, known).map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
        Problem::bad_request(format!("there is no such {what}; {meant}it has to be one of {}", known.join(", ")))
    })
}
