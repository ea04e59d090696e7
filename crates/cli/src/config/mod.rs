//! The configuration: defaults, a file, the environment, flags; later ones win, and every value knows where it came from.

mod file;
mod kind;
mod load;
mod origin;
mod postgres;
mod redis;
pub(crate) mod settings;
mod show;
#[cfg(test)]
mod snapshot;

pub(crate) use kind::{Kind, Value};
pub(crate) use load::Given;
pub(crate) use origin::Origin;
pub(crate) use postgres::{lease as of_lease, of_postgres};
pub(crate) use redis::{instance_in, of_redis};
pub(crate) use show::{as_json, as_table, template, without_user};

use settings::Setting;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A value, and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Set<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// The effective configuration.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The file that was read, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// Of every setting, by its key.
    values: BTreeMap<&'static str, Set<Value>>,
    /// What templates see as `vars`.
    pub(crate) vars: BTreeMap<String, Set<serde_json::Value>>,
}

impl Config {
    /// The value of a setting with its origin.
    pub(crate) fn get(&self, setting: &Setting) -> &Set<Value> {
        &self.values[setting.key]
    }

    pub(crate) fn origin(&self, setting: &Setting) -> &Origin {
        &self.get(setting).origin
    }

    /// A text, path, address or name; nothing if it is not set.
    pub(crate) fn text(&self, setting: &Setting) -> Option<&str> {
        match &self.get(setting).value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn path(&self, setting: &Setting) -> Option<PathBuf> {
        self.text(setting).map(PathBuf::from)
    }

    /// A count or a number of bytes.
    pub(crate) fn number(&self, setting: &Setting) -> usize {
        match self.get(setting).value {
            Value::Number(number) => usize::try_from(number).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// A duration; nothing if it is for ever.
    pub(crate) fn time(&self, setting: &Setting) -> Option<Duration> {
        match self.get(setting).value {
            Value::Time(time) => Some(time),
            _ => None,
        }
    }

    /// Sets a text that nobody has set.
    pub(crate) fn set_if_unset(&mut self, setting: &Setting, text: String, origin: Origin) {
        if *self.origin(setting) == Origin::Default {
            self.values.insert(setting.key, Set { value: Value::Text(text), origin });
        }
    }

    /// Sets a variable of templates.
    pub(crate) fn set_var(&mut self, name: &str, value: serde_json::Value, origin: Origin) {
        self.vars.insert(name.into(), Set { value, origin });
    }

    pub(crate) fn list(&self, setting: &Setting) -> Vec<String> {
        match &self.get(setting).value {
            Value::List(parts) => parts.clone(),
            _ => Vec::new(),
        }
    }
}
