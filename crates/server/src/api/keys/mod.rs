//! Keys: put, looked at, renewed, deleted, listed; and their ends that are still to be told.

pub(super) mod callbacks;
pub(super) mod change;
pub(super) mod look;
