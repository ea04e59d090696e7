//! Plans: created, listed, looked at and operated.

pub(super) mod create;
pub(super) mod list;
pub(super) mod operate;
pub(super) mod show;
