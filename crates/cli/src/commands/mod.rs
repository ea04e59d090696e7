//! What each command does.

pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod key;
pub(crate) mod letter;
pub(crate) mod pages;
pub(crate) mod run;
