//! Kills a real process again and again and looks at what survived.
//!
//! The binary of this package is the victim: it opens a data folder, starts runs of many [`shapes`], asks of each what its shape calls
//! for, as an [`operator`] would, and says on its standard output what was acknowledged to it. Its steps write to a [`log`] before they do anything,
//! so that the test can see what was executed when. Asked to, it starts runs instead that are [`removed`] right after their end,
//! puts [`keys`] that expire soon, carries [`plans`] out, answers [`messages`], or is a server or one of its [`workers`]. The test in `tests/it`
//! kills it at random moments and checks the facts.

pub mod keys;
pub mod log;
pub mod messages;
pub mod operator;
pub mod plans;
pub mod removed;
pub mod shapes;
pub mod workers;
