//! The name of a timer as the keeper holds it: one allocation, since there may be millions.

use steadfast_kernel::{RunId, Timer, TimerName};

/// Whose timer, and which of them, as `RUN NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name(Box<str>);

impl Name {
    pub(super) fn new(run: &RunId, name: &TimerName) -> Self {
        Name(format!("{run} {name}").into())
    }

    pub(super) fn of(timer: &Timer) -> Self {
        Name::new(&timer.run, &timer.name)
    }

    /// What it was made of.
    pub(super) fn parts(&self) -> Option<(RunId, TimerName)> {
        let (run, name) = self.0.split_once(' ')?; // the id of a run has none
        Some((RunId::new(run).ok()?, TimerName::from_stored(name)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_kernel::StepId;

    #[test]
    fn a_name_is_made_of_its_parts() {
        let step = StepId::new("left/2", "charge", 2).unwrap();
        for name in [TimerName::Retry(step.clone()), TimerName::Sleep(step), TimerName::Deadline] {
            let run = RunId::new("orders/17").unwrap();
            assert_eq!(Name::new(&run, &name).parts(), Some((run, name)));
        }
    }
}
