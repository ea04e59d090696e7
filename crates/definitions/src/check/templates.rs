//! What templates name is there, and is there in time.

use super::graph::Graph;
use super::step::Draft;
use crate::document::At;
use crate::problem::Report;
use crate::suggest;
use crate::template::{OfSteps, Place, Use, Whose};
use std::collections::BTreeSet;

/// Checks every template that was read, and tells for each step whose outputs it uses.
pub(super) fn check(drafts: &[Draft], graph: &Graph, report: &mut Report) -> Vec<BTreeSet<usize>> {
    let mut sees = vec![BTreeSet::new(); drafts.len()];
    for Use { at, place, names } in std::mem::take(&mut report.uses) {
        let looked_up = LookUp { drafts, graph, at, place }.steps(&names.steps, report);
        if let (Some(seen), Whose::Step(step)) = (&looked_up, place.whose) {
            sees[step].extend(seen);
        }
        if looked_up.is_some() {
            check_roots(at, place, &names.roots, report);
        }
        let only_id = |asked: &[Option<String>]| asked.iter().all(|part| part.as_deref() == Some("id"));
        if !only_id(&names.run) {
            report.wrong(at, "of `run` there is only `run.id`");
        }
        if place.plan && !only_id(&names.plan) {
            report.wrong(at, "of `plan` there is only `plan.id`");
        }
    }
    sees
}

fn check_roots(at: At, place: Place, roots: &BTreeSet<String>, report: &mut Report) {
    let here = place.roots();
    for root in roots.iter().filter(|root| !here.contains(&root.as_str())) {
        let (message, help) = match root.as_str() {
            "output" if place.plan => {
                ("`output` is only known in `undo` and `checkpoint`".into(), Some("another stage's output is steps.NAME.output".into()))
            }
            "output" => ("`output` is only known in `undo`".into(), Some("another step's output is steps.NAME.output".into())),
            "vars" => (
                "`vars` is not known in `checkpoint`: what is kept there must not change with the server's settings".into(),
                Some("what the plan was given is `input`".into()),
            ),
            "tenant" | "plan" | "checkpoint" => (format!("`{root}` is only known in plans"), None),
            "item" | "index" if place.plan => (format!("`{root}` is not known: stages have no `foreach`"), None),
            "attempt" => ("`attempt` is only known where attempts are made: in `http`, `run`, `set`, `fail` and `undo`".into(), None),
            "item" | "index" => (format!("`{root}` is only known in what a step with `foreach` does"), None),
            "steps" | "run" => (format!("`{root}` is not known yet: this is worked out before the run begins"), None),
            _ => (format!("`{root}` is not known"), suggest::help(root, here.iter().copied())),
        };
        report.add(at, message, help);
    }
}

struct LookUp<'a> {
    drafts: &'a [Draft],
    graph: &'a Graph,
    at: At,
    place: Place,
}

impl LookUp<'_> {
    /// The steps whose outputs are used; nothing if one was probably split at its hyphen, and the rest makes no sense either.
    fn steps(&self, asked: &[OfSteps], report: &mut Report) -> Option<Vec<usize>> {
        if self.place.whose == Whose::Start {
            return Some(Vec::new());
        }
        let mut seen = Vec::new();
        for asked in asked {
            match asked {
                OfSteps::Output(name) => seen.extend(self.step(name, report)?),
                OfSteps::Other(name, part) => {
                    self.step(name, report)?;
                    let help = part
                        .as_ref()
                        .map_or_else(|| "write steps.NAME.output".to_string(), |part| format!("write steps.{name}.output.{part}"));
                    let what = if self.place.plan { "stage" } else { "step" };
                    report.wrong_with_help(self.at, format!("of a {what} only its output can be used: steps.{name}.output"), help);
                }
                OfSteps::Unknown if self.place.plan => report.wrong(self.at, "name the stage: steps.NAME.output"),
                OfSteps::Unknown => report.wrong(self.at, "name the step: steps.NAME.output"),
            }
        }
        Some(seen)
    }

    fn step(&self, name: &str, report: &mut Report) -> Option<Option<usize>> {
        let found = self.drafts.iter().find(|draft| draft.name.as_deref() == Some(name));
        let Some(found) = found else { return self.unknown(name, report) };
        match self.place.whose {
            Whose::Step(own) if own == found.index => {
                let message = format!("{} cannot use its own output here", found.shown());
                let help =
                    if self.place.plan { "in `undo` and `checkpoint` it is called `output`" } else { "in `undo` it is called `output`" };
                report.wrong_with_help(self.at, message, help);
            }
            Whose::Step(own) if !self.graph.is_before(found.index, own) => {
                let message = format!("{} does not come after `{name}`, so it cannot use its output", self.drafts[own].shown());
                let help = if self.place.plan { format!("move `{name}` before it") } else { format!("add `{name}` to its `after`") };
                report.wrong_with_help(self.at, message, help);
            }
            _ => return Some(Some(found.index)),
        }
        Some(None)
    }

    fn unknown(&self, name: &str, report: &mut Report) -> Option<Option<usize>> {
        let names: Vec<&str> = self.drafts.iter().filter_map(|draft| draft.name.as_deref()).collect();
        let split = names.iter().find(|known| known.strip_prefix(name).is_some_and(|rest| rest.starts_with(['-', '.'])));
        let help = match split {
            Some(split) => Some(format!("write steps['{split}'].output: in a template `-` is minus")),
            None => suggest::help(name, names.iter().copied()),
        };
        let what = if self.place.plan { "stage" } else { "step" };
        report.add(self.at, format!("there is no {what} `{name}`"), help);
        if split.is_some() { None } else { Some(None) }
    }
}
