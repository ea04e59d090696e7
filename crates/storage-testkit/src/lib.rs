//! Tests stores: a contract suite by topic, and random operations compared with the reference store.
//!
//! [`contract`] has a case for every promise of [`Store`](steadfast_store::Store) and [`Leases`](steadfast_store::Leases).
//! [`differential`] covers combinations that no case has.
//! Only tests depend on this crate, so the product does not compile it.

pub mod contract;
pub mod differential;
