//! How requests are read: paths, parameters, bodies and headers. Whatever cannot be understood is a problem that says what was expected.

mod body;
mod form;
mod letters;
mod origin;
mod path;
mod query;
mod runs;

pub(crate) use body::{Body, Optional};
pub(crate) use form::Form;
pub(crate) use letters::{NarrowLetters, time};
pub(crate) use origin::Command;
pub(crate) use path::{InstancePath, KeyPath, LetterPath, PlanPath, RunPath, SignalPath, TenantPath, canonical};
pub(crate) use query::{Nothing, Query, nearest, within};
pub(crate) use runs::Narrow;
