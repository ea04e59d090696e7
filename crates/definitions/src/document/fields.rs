//! How the fields of a map are read: whoever is not asked for is unknown, and that is a mistake.

use super::node::{At, Key, Node, Value};
use crate::duration;
use crate::problem::Report;
use crate::suggest;
use std::time::Duration;

/// The fields of a map, on their way to be read.
pub(crate) struct Fields<'a> {
    /// What has these fields, for messages: `the workflow`, `step "charge"`, `http`.
    pub(crate) what: String,
    pub(crate) at: At,
    entries: &'a [(Key, Node)],
    known: Vec<&'static str>,
    refused: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// The fields of that node, if it is a map.
    pub(crate) fn of(node: &'a Node, what: impl Into<String>, report: &mut Report) -> Option<Self> {
        let what = what.into();
        match &node.value {
            Value::Map(entries) => Some(Fields { what, at: node.at, entries, known: Vec::new(), refused: Vec::new() }),
            _ => {
                report.wrong(node.at, format!("{what} has to be a map of fields, but this is {}", node.what()));
                None
            }
        }
    }

    /// The field of that name, also if nothing is written there.
    pub(crate) fn take_any(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// The field of that name, if something is written there.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<&'a Node> {
        self.take_any(name).filter(|node| !node.is_null())
    }

    /// The field of that name, which has to be there.
    pub(crate) fn need(&mut self, name: &'static str, report: &mut Report) -> Option<&'a Node> {
        let found = self.take(name);
        if found.is_none() {
            report.wrong(self.at, format!("{} needs the field `{name}`", self.what));
        }
        found
    }

    /// Where the name of that field stands.
    pub(crate) fn at(&self, name: &str) -> At {
        self.entries.iter().find(|(key, _)| key.name == name).map_or(self.at, |(key, _)| key.at)
    }

    pub(crate) fn text(&mut self, name: &'static str, report: &mut Report) -> Option<&'a str> {
        self.take(name)?.text(name, report)
    }

    pub(crate) fn truth(&mut self, name: &'static str, report: &mut Report) -> Option<bool> {
        let node = self.take(name)?;
        match &node.value {
            Value::Bool(truth) => Some(*truth),
            _ => {
                report.wrong(node.at, format!("`{name}` has to be true or false, but this is {}", node.what()));
                None
            }
        }
    }

    pub(crate) fn whole(&mut self, name: &'static str, report: &mut Report) -> Option<u32> {
        let node = self.take(name)?;
        let number = if let Value::Number(number) = &node.value { number.as_u64().and_then(|n| u32::try_from(n).ok()) } else { None };
        if number.is_none() {
            report.wrong(node.at, format!("`{name}` has to be a whole number"));
        }
        number
    }

    pub(crate) fn duration(&mut self, name: &'static str, report: &mut Report) -> Option<Duration> {
        self.take(name)?.duration(name, report)
    }

    /// A duration within which something has to be done, so that there has to be some.
    pub(crate) fn time_limit(&mut self, name: &'static str, report: &mut Report) -> Option<Duration> {
        let limit = self.duration(name, report)?;
        if limit.is_zero() {
            let at = self.take(name).map_or(self.at, |node| node.at);
            report.wrong(at, format!("`{name}` has to be longer than nothing"));
        }
        Some(limit).filter(|limit| !limit.is_zero())
    }

    /// A field that others have and that has no meaning here.
    pub(crate) fn refuse(&mut self, name: &'static str, help: &str, report: &mut Report) {
        if let Some((key, _)) = self.entries.iter().find(|(key, _)| key.name == name) {
            report.wrong_with_help(key.at, format!("{} has no field `{name}`", self.what), help);
            self.refused.push(name);
        }
    }

    /// What is left was not asked for.
    pub(crate) fn end(self, report: &mut Report) {
        for (key, _) in self.entries {
            if !self.known.contains(&key.name.as_str()) && !self.refused.contains(&key.name.as_str()) {
                let help = suggest::help(&key.name, self.known.iter().copied());
                report.add(key.at, format!("{} has no field `{}`", self.what, key.name), help);
            }
        }
    }
}

impl Node {
    pub(crate) fn text(&self, name: &str, report: &mut Report) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => {
                report.wrong(self.at, format!("`{name}` has to be a text, but this is {}", self.what()));
                None
            }
        }
    }

    pub(crate) fn list(&self, name: &str, report: &mut Report) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => {
                report.wrong(self.at, format!("`{name}` has to be a list, but this is {}", self.what()));
                None
            }
        }
    }

    pub(crate) fn map(&self, name: &str, report: &mut Report) -> Option<&[(Key, Node)]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => {
                report.wrong(self.at, format!("`{name}` has to be a map, but this is {}", self.what()));
                None
            }
        }
    }

    pub(crate) fn duration(&self, name: &str, report: &mut Report) -> Option<Duration> {
        let read = if let Value::Text(text) = &self.value { duration::parse(text) } else { None };
        if read.is_none() {
            report.wrong_with_help(self.at, format!("`{name}` is not a duration: {}", self.json()), duration::HOW);
        }
        read
    }
}
