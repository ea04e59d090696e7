//! The name of a timer as the keeper holds it: one allocation, since there may be millions.

use steadfast_kernel::{EntityId, Timer, TimerName};

/// Whose timer, and which of them, as `ENTITY NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name(Box<str>);

impl Name {
    pub(super) fn new(entity: &EntityId, name: &TimerName) -> Self {
        Name(format!("{entity} {name}").into())
    }

    pub(super) fn of(timer: &Timer) -> Self {
        Name::new(&timer.entity, &timer.name)
    }

    /// What it was made of.
    pub(super) fn parts(&self) -> Option<(EntityId, TimerName)> {
        let (entity, name) = self.0.split_once(' ')?; // no id has one
        Some((EntityId::from_stored(entity)?, TimerName::from_stored(name)?))
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
            let run = EntityId::from_stored("orders/17").unwrap();
            assert_eq!(Name::new(&run, &name).parts(), Some((run, name)));
        }
    }
}
