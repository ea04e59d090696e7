//! Which step comes after which.

use super::step::{Draft, Of};
use crate::problem::Report;
use crate::suggest;
use std::collections::BTreeMap;

/// Which step comes after which, by number.
pub(super) struct Graph {
    /// Those that each step comes right after.
    pub(super) after: Vec<Vec<usize>>,
    /// All that have to be done before each step, if that can be said.
    before: Vec<Vec<bool>>,
}

impl Graph {
    pub(super) fn of(drafts: &[Draft], report: &mut Report) -> Self {
        let names = names(drafts, report);
        let after: Vec<_> = drafts.iter().map(|draft| after(draft, &names, report)).collect();
        let graph = Graph { before: before(&after), after };
        match graph.cycle() {
            Some(cycle) => report_cycle(&cycle, drafts, report),
            None => graph.report_unreachable(drafts, report),
        }
        graph
    }

    /// Whether the one is always done before the other begins.
    pub(super) fn is_before(&self, first: usize, second: usize) -> bool {
        self.before[second][first]
    }

    /// Steps that wait for each other, in the order in which they do, if there are any.
    fn cycle(&self) -> Option<Vec<usize>> {
        let first = (0..self.after.len()).find(|step| self.is_before(*step, *step))?;
        let mut cycle = vec![first];
        loop {
            let last = *cycle.last()?;
            let next = self.after[last]
                .iter()
                .copied()
                .find(|next| *next == first || (self.is_before(first, *next) && !cycle.contains(next)))?;
            if next == first {
                return Some(cycle);
            }
            cycle.push(next);
        }
    }

    /// A step that failed never releases those after it, so nothing comes after one that always fails.
    fn report_unreachable(&self, drafts: &[Draft], report: &mut Report) {
        for draft in drafts {
            let fails = self.after[draft.index].iter().map(|index| &drafts[*index]).find(|before| before.always_fails());
            if let Some(fails) = fails {
                let message = format!("{} is never reached: {}, which it comes after, always fails", draft.shown(), fails.shown());
                let help = match draft.of {
                    Of::Workflow => "give the failing step a `when`, or name other steps in `after`",
                    Of::Plan => "give the failing stage a `when`",
                };
                report.wrong_with_help(draft.at, message, help);
            }
        }
    }
}

/// The number of each name. One that is given twice is a mistake.
fn names<'d>(drafts: &'d [Draft], report: &mut Report) -> BTreeMap<&'d str, usize> {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for draft in drafts {
        let Some(name) = draft.name.as_deref() else { continue };
        if let Some(first) = names.get(name) {
            let line = drafts[*first].at.line;
            report.wrong_with_help(
                draft.at,
                format!("there are two {}s `{name}`", draft.of.word()),
                format!("the other one is in line {line}; rename one"),
            );
        } else {
            names.insert(name, draft.index);
        }
    }
    names
}

/// What the step comes right after: what it says, or else the step before it.
fn after(draft: &Draft, names: &BTreeMap<&str, usize>, report: &mut Report) -> Vec<usize> {
    let Some(said) = &draft.after else { return draft.index.checked_sub(1).into_iter().collect() };
    let mut after = Vec::new();
    for (at, name) in said {
        match names.get(name.as_str()) {
            Some(index) if *index == draft.index => report.wrong(*at, format!("{} cannot come after itself", draft.shown())),
            Some(index) if after.contains(index) => report.wrong(*at, format!("`{name}` stands in `after` twice")),
            Some(index) => after.push(*index),
            None => {
                let help = suggest::help(name, names.keys().copied());
                report.add(*at, format!("{} comes after `{name}`, but there is no such step", draft.shown()), help);
            }
        }
    }
    after
}

/// For each step all that come before it, however far.
fn before(after: &[Vec<usize>]) -> Vec<Vec<bool>> {
    after.iter().map(|direct| reached(direct, after)).collect()
}

fn reached(direct: &[usize], after: &[Vec<usize>]) -> Vec<bool> {
    let (mut reached, mut open) = (vec![false; after.len()], direct.to_vec());
    while let Some(step) = open.pop() {
        if !std::mem::replace(&mut reached[step], true) {
            open.extend(&after[step]);
        }
    }
    reached
}

fn report_cycle(cycle: &[usize], drafts: &[Draft], report: &mut Report) {
    let names: Vec<_> = cycle
        .iter()
        .chain(cycle.first())
        .map(|index| drafts[*index].name.clone().unwrap_or_default())
        .collect();
    let message = format!("these steps wait for each other: {}", names.join(" after "));
    let help = "a step without `after` comes after the one before it; `after: []` starts at once";
    report.wrong_with_help(drafts[cycle[0]].at, message, help);
}
