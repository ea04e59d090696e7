//! Workflows in YAML: parse, check, and carry out their steps.

mod check;
mod definition;
mod document;
pub mod duration;
mod kinds;
mod problem;
mod retry;
mod schema;
mod suggest;
mod template;

pub use check::{STEPS_MAX, TEXT_BYTES_MAX, check};
pub use definition::{DescribedStep, Definition, Description};
pub use kinds::{Call, Settings};
pub use problem::Problem;
