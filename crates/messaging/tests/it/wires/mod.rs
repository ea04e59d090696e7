//! Wires: one contract for all of them, and what each has of its own.

mod contract;
mod memory;
