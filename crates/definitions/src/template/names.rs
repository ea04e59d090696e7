//! The names that a template uses, found without rendering it.

use super::engine::{ENGINE, why};
use super::scan::{self, Path, Scanned};
use crate::suggest;
use minijinja::ErrorKind;
use std::collections::BTreeSet;

/// Filters that are worth a guess when somebody mistypes one.
const FILTERS: [&str; 24] = [
    "abs", "default", "dictsort", "first", "float", "groupby", "int", "items", "join", "last", "length", "list", "lower", "map", "max",
    "min", "replace", "round", "sort", "string", "tojson", "trim", "unique", "upper",
];

/// The names that a template uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Names {
    /// Those that it expects to be there: `input`, `steps`, ….
    pub(crate) roots: BTreeSet<String>,
    /// What it asks of steps.
    pub(crate) steps: Vec<OfSteps>,
    /// What it asks of `run`.
    pub(crate) run: Vec<Option<String>>,
    /// What it asks of `plan`.
    pub(crate) plan: Vec<Option<String>>,
}

/// What is asked of `steps`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OfSteps {
    /// Its `output`.
    Output(String),
    /// Something else, or the step as a whole.
    Other(String, Option<String>),
    /// A step that is only known at run time, or all of them.
    Unknown,
}

impl Names {
    pub(super) fn of_expression(source: &str) -> Result<Self, String> {
        let expression = ENGINE.compile_expression(source).map_err(|error| why(&error))?;
        Names::of(expression.undeclared_variables(false).into_iter().collect(), &scan::expression(source))
    }

    pub(super) fn of_text(source: &str) -> Result<Self, String> {
        let template = ENGINE.template_from_str(source).map_err(|error| why(&error))?;
        Names::of(template.undeclared_variables(false).into_iter().collect(), &scan::text(source))
    }

    fn of(mut roots: BTreeSet<String>, scanned: &Scanned) -> Result<Self, String> {
        roots.retain(|root| !ENGINE.globals().any(|(global, _)| global == root));
        check_filters(scanned)?;
        let of = |root: &'static str| scanned.paths.iter().filter(move |path| path.parts[0] == root);
        let part = |path: &Path| path.parts.get(1).cloned();
        Ok(Names {
            roots,
            steps: of("steps").map(OfSteps::from).collect(),
            run: of("run").map(part).collect(),
            plan: of("plan").map(part).collect(),
        })
    }
}

impl From<&Path> for OfSteps {
    fn from(path: &Path) -> Self {
        match (path.parts.get(1), path.parts.get(2)) {
            (None, _) => OfSteps::Unknown,
            (Some(step), Some(part)) if part == "output" => OfSteps::Output(step.clone()),
            (Some(step), part) => OfSteps::Other(step.clone(), part.cloned()),
        }
    }
}

/// Whether the engine has them all.
fn check_filters(scanned: &Scanned) -> Result<(), String> {
    let mut state = ENGINE.empty_state();
    for filter in &scanned.filters {
        if state.apply_filter(filter, &[]).is_err_and(|error| error.kind() == ErrorKind::UnknownFilter) {
            let meant = suggest::nearest(filter, FILTERS).map(|name| format!("; did you mean `{name}`?"));
            return Err(format!("there is no filter `{filter}`{}", meant.unwrap_or_default()));
        }
    }
    for test in &scanned.tests {
        if state.perform_test(test, &[]).is_err_and(|error| error.kind() == ErrorKind::UnknownTest) {
            return Err(format!("there is no test `{test}`"));
        }
    }
    Ok(())
}
