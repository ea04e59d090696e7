//! Workflows and plans in YAML: parse, check, and carry out their steps.
//!
//! A definition is one YAML document in a file; `docs/guide/definitions.md` describes every field. [`check`] reads one and explains every mistake in
//! it. A [`Library`] reads a folder of them, keeps the versions that runs began with, and gives the engine the code of each workflow.
//!
//! - `document/` is the YAML tree that knows where everything stands;
//! - `check/` makes a definition of it, or a list of problems;
//! - `template/` is what stands between `{{` and `}}`;
//! - `kinds/` is what steps do, a file per kind;
//! - `interpret/` carries a definition out as the code of its runs;
//! - `library/` is the folder and its versions.
//!
//! ```
//! let text = "workflow: greet\nsteps:\n  - name: say\n    set: \"Hello, {{ inptu.name }}\"\n";
//! let problems = steadfast_definitions::check("greet.yaml", text).unwrap_err();
//! assert_eq!(problems[0].to_string(), "greet.yaml:4:10: `inptu` is not known\n  help: did you mean `input`?");
//! ```

pub mod answered;
mod check;
mod definition;
mod document;
pub mod duration;
mod interpret;
mod kinds;
mod library;
mod problem;
mod retry;
mod schema;
mod suggest;
mod template;

pub use check::{STAGES_MAX, STEPS_MAX, TEXT_BYTES_MAX, check};
pub use definition::{Definition, DescribedStep, Description};
pub use kinds::Settings;
pub use library::{Broken, Changes, Defined, Library, Look};
pub use problem::Problem;
