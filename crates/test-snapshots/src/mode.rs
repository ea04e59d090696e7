//! Reads from the environment whether a mismatch is accepted.

use std::ffi::OsString;

/// Set to `accept` by `cargo xtask snapshots --accept`.
const VARIABLE: &str = "TEST_SNAPSHOTS";

/// The treatment of a mismatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Fail.
    Compare,
    /// Write the new text.
    Accept,
    /// Fail, because continuous integration must not accept.
    Refuse,
}

impl Mode {
    pub(crate) fn of_environment() -> Mode {
        Mode::of(|name| std::env::var_os(name))
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Mode {
        let accepts = variable(VARIABLE).is_some_and(|value| value == "accept");
        let integrates = variable("CI").is_some_and(|value| !value.is_empty());
        match (accepts, integrates) {
            (false, _) => Mode::Compare,
            (true, false) => Mode::Accept,
            (true, true) => Mode::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(variables: &[(&str, &str)]) -> Mode {
        Mode::of(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn empty_environment_compares() {
        assert_eq!(mode(&[]), Mode::Compare);
        assert_eq!(mode(&[("CI", "1")]), Mode::Compare);
    }

    #[test]
    fn only_accept_accepts() {
        assert_eq!(mode(&[(VARIABLE, "accept")]), Mode::Accept);
        assert_eq!(mode(&[(VARIABLE, "accept"), ("CI", "")]), Mode::Accept);
        assert_eq!(mode(&[(VARIABLE, "1")]), Mode::Compare);
    }

    #[test]
    fn integration_refuses_acceptance() {
        assert_eq!(mode(&[(VARIABLE, "accept"), ("CI", "true")]), Mode::Refuse);
    }
}
