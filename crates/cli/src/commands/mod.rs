//! What each command does.

pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod key;
pub(crate) mod letter;
pub(crate) mod lock;
pub(crate) mod message;
pub(crate) mod node;
pub(crate) mod pages;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod tenant;
pub(crate) mod worker;
