//! Tenants: their latest task, looked at and operated.

pub(super) mod look;
pub(super) mod operate;
