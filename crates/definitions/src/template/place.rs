//! Where a template stands, which decides what it sees.

use super::names::Names;
use crate::document::At;

/// Where a template stands. Everywhere it sees `input`, and `vars` unless what it gives is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) whose: Whose,
    /// It is rendered for each attempt, and sees its number.
    pub(crate) attempt: bool,
    /// It undoes a step, and sees what that returned.
    pub(crate) undo: bool,
    /// It is rendered for each item of a list.
    pub(crate) item: bool,
    /// It belongs to a plan, and sees whose task it is and what the stages before it have left.
    pub(crate) plan: bool,
    /// It says what a stage leaves for those after it. It sees what the stage returned, and nothing that is not on record.
    pub(crate) kept: bool,
}

/// Whose template it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// It is rendered before there is a run.
    Start,
    /// It belongs to the step of that number, and sees those before it.
    Step(usize),
    /// It is rendered at the end, and sees all steps.
    End,
}

/// A template, where it stands, and the names that it uses.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) at: At,
    pub(crate) place: Place,
    pub(crate) names: Names,
}

impl Place {
    pub(crate) const START: Place = Place { whose: Whose::Start, attempt: false, undo: false, item: false, plan: false, kept: false };
    pub(crate) const END: Place = Place { whose: Whose::End, ..Place::START };

    pub(crate) fn step(index: usize) -> Self {
        Place { whose: Whose::Step(index), ..Place::START }
    }

    pub(crate) fn stage(index: usize) -> Self {
        Place { plan: true, ..Place::step(index) }
    }

    pub(crate) fn kept(self) -> Self {
        Place { kept: true, ..self }
    }

    pub(crate) fn each_attempt(self) -> Self {
        Place { attempt: true, ..self }
    }

    pub(crate) fn undo(self) -> Self {
        Place { attempt: true, undo: true, ..self }
    }

    pub(crate) fn each_item(self, item: bool) -> Self {
        Place { item, ..self }
    }

    /// The names that can be used here.
    pub(crate) fn roots(self) -> Vec<&'static str> {
        let (started, steps) = (self.whose != Whose::Start, self.whose != Whose::Start);
        let all = [
            ("input", true),
            ("vars", !self.kept),
            ("steps", steps),
            ("run", started),
            ("tenant", self.plan),
            ("plan", self.plan),
            ("checkpoint", self.plan),
            ("attempt", self.attempt),
            ("output", self.undo || self.kept),
            ("item", self.item),
            ("index", self.item),
        ];
        all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }
}
