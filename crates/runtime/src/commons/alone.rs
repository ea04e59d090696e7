//! Whether there are other instances, as far as is known.
//!
//! Tested by `crates/sdk/tests/it/instances/outages/alone.rs`.

use std::time::Duration;
use steadfast_kernel::{InstanceId, Timestamp};

/// What is to become of new locks while the commons are away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// They are taken from this instance's own table if no other instance was seen for long enough, and refused otherwise.
    #[default]
    Auto,
    /// They are taken from this instance's own table, whoever else there is: an operator knows that nobody else is.
    Local,
    /// They are refused.
    Refuse,
}

impl Fallback {
    /// What is written in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Fallback::Auto => "auto",
            Fallback::Local => "local",
            Fallback::Refuse => "refuse",
        }
    }

    /// The one of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Fallback::Auto, Fallback::Local, Fallback::Refuse]
            .into_iter()
            .find(|fallback| fallback.as_str() == name)
    }
}

/// What is known of other instances.
#[derive(Debug)]
pub(crate) struct Others {
    fallback: Fallback,
    /// For how long one that is not seen any more may still have locks.
    lease: Duration,
    /// Everybody was looked for at least once.
    known: bool,
    seen: Option<(InstanceId, Timestamp)>,
}

impl Others {
    pub(crate) fn new(fallback: Fallback, lease: Duration) -> Self {
        Others { fallback, lease, known: false, seen: None }
    }

    /// Another one lives.
    pub(crate) fn saw(&mut self, other: &InstanceId, now: Timestamp) {
        self.seen = Some((other.clone(), now));
    }

    /// All were looked for, and those who live were seen.
    pub(crate) fn looked(&mut self) {
        self.known = true;
    }

    /// Whether this instance may go on by itself while the commons are away; the reason if not.
    pub(crate) fn may_go_on_alone(&self, now: Timestamp) -> Result<(), String> {
        match (self.fallback, &self.seen) {
            (Fallback::Local, _) => Ok(()),
            (Fallback::Refuse, _) => Err("the setting `locks.fallback = refuse` lets nothing begin without it".into()),
            (Fallback::Auto, Some((other, at))) if at.saturating_add(self.lease) > now => {
                Err(format!("instance {other} was seen lately, and may have locks"))
            }
            (Fallback::Auto, _) if !self.known => Err("it is not known whether there are other instances".into()),
            (Fallback::Auto, _) => Ok(()),
        }
    }

    /// Who was seen last, and when.
    pub(crate) fn seen(&self) -> Option<&(InstanceId, Timestamp)> {
        self.seen.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::EPOCH.saturating_add(Duration::from_secs(seconds))
    }

    fn others(fallback: Fallback) -> Others {
        Others::new(fallback, Duration::from_secs(9_000))
    }

    #[test]
    fn nothing_is_known_before_everybody_was_looked_for() {
        let mut others = others(Fallback::Auto);
        assert!(others.may_go_on_alone(at(1)).is_err());
        others.looked();
        assert_eq!(others.may_go_on_alone(at(1)), Ok(()));
    }

    #[test]
    fn another_one_counts_for_a_lease() {
        let (mut others, b) = (others(Fallback::Auto), InstanceId::new("b").expect("an id"));
        others.looked();
        others.saw(&b, at(10));
        assert!(others.may_go_on_alone(at(9_009)).is_err_and(|why| why.contains('b')));
        assert_eq!(others.may_go_on_alone(at(9_010)), Ok(()));
    }

    #[test]
    fn a_setting_forces_either() {
        let (mut local, mut refuse, b) = (others(Fallback::Local), others(Fallback::Refuse), InstanceId::new("b").expect("an id"));
        local.saw(&b, at(1));
        refuse.looked();
        assert_eq!(local.may_go_on_alone(at(1)), Ok(()));
        assert!(refuse.may_go_on_alone(at(99_999)).is_err());
        for fallback in [Fallback::Auto, Fallback::Local, Fallback::Refuse] {
            assert_eq!(Fallback::parse(fallback.as_str()), Some(fallback));
        }
    }
}
