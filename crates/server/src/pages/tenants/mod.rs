//! `/tenants/{tenant}`: the latest task of a tenant, with its checkpoint and its lock, and the tasks before it.

mod act;
mod elsewhere;
mod facts;
mod history;
mod show;

pub(super) use show::{change, page as show};
