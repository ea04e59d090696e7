//! Names of things: runs, workflows, and the records inside a run.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The longest id or name, in characters.
const LENGTH_MAX: usize = 128;

/// An id or name that is not allowed, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?} is not allowed: {why}")]
pub struct InvalidId {
    /// What was to be named: "run id", "workflow name", "step name".
    pub what: &'static str,
    /// The value, shortened if it is very long.
    pub value: String,
    /// What is wrong with it and what is allowed.
    pub why: &'static str,
}

const ALLOWED: &str = "use 1 to 128 characters of A-Z a-z 0-9 . _ - /, without empty or dot-only parts between slashes";
const ALLOWED_NAME: &str = "use 1 to 128 characters of A-Z a-z 0-9 . _ -";
const ALLOWED_KEY: &str = "use 1 to 128 characters of A-Z a-z 0-9 . _ - / :, without empty or dot-only parts between slashes";

pub(crate) fn check(what: &'static str, value: &str, slash: bool) -> Result<(), InvalidId> {
    match slash {
        true => fits(what, value, "._-/", ALLOWED),
        false => fits(what, value, "._-", ALLOWED_NAME),
    }
}

fn fits(what: &'static str, value: &str, marks: &str, why: &'static str) -> Result<(), InvalidId> {
    let fits = (1..=LENGTH_MAX).contains(&value.len())
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || marks.as_bytes().contains(&b))
        && value.split('/').all(|part| !part.bytes().all(|b| b == b'.'));
    if fits { Ok(()) } else { Err(InvalidId { what, value: value.chars().take(LENGTH_MAX + 8).collect(), why }) }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $marks:literal, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes an id.
            ///
            /// # Errors
            /// [`InvalidId`] if it is empty, too long, or has characters that are not allowed.
            pub fn new(value: impl AsRef<str>) -> Result<Self, InvalidId> {
                fits($what, value.as_ref(), $marks, $allowed)?;
                Ok(Self(value.as_ref().into()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

id!(
    /// The id of a run, given by the caller or made by the engine.
    RunId,
    "run id",
    "._-/",
    ALLOWED
);
/// Checks the name of a signal, given from outside. Those with a colon are the engine's own questions to people.
///
/// # Errors
/// [`InvalidId`] if it is empty, too long, or has other characters than `A-Z a-z 0-9 . _ - / # :`.
pub fn check_signal(name: &str) -> Result<(), InvalidId> {
    let fits = (1..=4 * LENGTH_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/#:".contains(&b));
    if fits {
        Ok(())
    } else {
        Err(InvalidId { what: "signal name", value: name.chars().take(LENGTH_MAX + 8).collect(), why: ALLOWED_NAME })
    }
}

/// Checks the name of a tenant.
///
/// # Errors
/// [`InvalidId`] if it is empty, too long, or has other characters than `A-Z a-z 0-9 . _ - /`.
pub fn check_tenant(name: &str) -> Result<(), InvalidId> {
    check("tenant", name, true)
}

id!(
    /// The id of a plan, given by the caller or made by the engine.
    PlanId,
    "plan id",
    "._-/",
    ALLOWED
);
id!(
    /// Whose work something is: a customer, a region, a cell.
    TenantId,
    "tenant",
    "._-/",
    ALLOWED
);
id!(
    /// An instance of the engine: it lives in the folder of its data, and outlives the process.
    InstanceId,
    "instance id",
    "._-",
    ALLOWED_NAME
);
id!(
    /// The name under which a workflow is registered.
    WorkflowName,
    "workflow name",
    "._-/",
    ALLOWED
);
id!(
    /// The name under which messages are taken: what they are for.
    RouteName,
    "route",
    "._-/",
    ALLOWED
);
id!(
    /// The name of a key. Slashes make it a path: a directory has the keys below it.
    KeyName,
    "key",
    "._-/:",
    ALLOWED_KEY
);

impl KeyName {
    /// The names above it, from the top: of `a/b/c` these are `a` and `a/b`.
    pub fn above(&self) -> impl Iterator<Item = KeyName> + '_ {
        self.0.match_indices('/').map(|(slash, _)| KeyName(self.0[..slash].into()))
    }

    /// What the names of all keys below it begin with.
    pub fn below(&self) -> String {
        format!("{self}/")
    }
}

/// The longest that a peer may be called in a letter, in bytes: its name and what it has proved, or on whose behalf something was sent and where to.
pub const PEER_MAX: usize = 4096;

/// Checks what a request of somebody else is called.
///
/// # Errors
/// [`InvalidId`] if it is empty, longer than 256 bytes, or has anything but visible ASCII characters.
pub fn check_request(request: &str) -> Result<(), InvalidId> {
    check_foreign("request id", request, 2 * LENGTH_MAX, "use 1 to 256 visible ASCII characters, without spaces")
}

/// Checks what somebody else is called.
///
/// # Errors
/// [`InvalidId`] if it is empty, longer than [`PEER_MAX`], or has anything but visible ASCII characters.
pub fn check_peer(peer: &str) -> Result<(), InvalidId> {
    check_foreign("peer", peer, PEER_MAX, "use 1 to 4096 visible ASCII characters, without spaces")
}

fn check_foreign(what: &'static str, value: &str, max: usize, why: &'static str) -> Result<(), InvalidId> {
    let fits = (1..=max).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_graphic());
    if fits { Ok(()) } else { Err(InvalidId { what, value: value.chars().take(LENGTH_MAX + 8).collect(), why }) }
}

/// Checks what the names of keys are to begin with; nothing stands for all of them.
///
/// # Errors
/// [`InvalidId`] if no key begins so.
pub fn check_prefix(prefix: &str) -> Result<(), InvalidId> {
    let fits = prefix.len() <= LENGTH_MAX && prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/:".contains(&b));
    if fits { Ok(()) } else { Err(InvalidId { what: "prefix", value: prefix.chars().take(LENGTH_MAX + 8).collect(), why: ALLOWED_KEY }) }
}

/// The identity of a record inside a run: branch path, name, and which one of that name in the branch.
///
/// Shown and stored as `BRANCH/NAME#OCCURRENCE`; the root branch is empty, so plain sequential code has `charge#1`, `charge#2`, ….
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(Arc<str>);

impl StepId {
    /// Names a record.
    ///
    /// # Errors
    /// [`InvalidId`] if the name is empty, too long, or has other characters than `A-Z a-z 0-9 . _ -`.
    pub fn new(branch: &str, name: &str, occurrence: u32) -> Result<Self, InvalidId> {
        check("step name", name, false)?;
        Ok(Self::inner(branch, name, occurrence))
    }

    /// Names a sleep; sleeps are counted apart from steps.
    pub fn sleep(branch: &str, occurrence: u32) -> Self {
        Self::inner(branch, "sleep", occurrence)
    }

    /// Names a wait for a signal.
    ///
    /// # Errors
    /// [`InvalidId`] if the signal's name is not allowed.
    pub fn signal(branch: &str, name: &str, occurrence: u32) -> Result<Self, InvalidId> {
        check("signal name", name, false)?;
        Ok(Self::inner(branch, &format!("signal:{name}"), occurrence))
    }

    /// Names the record of a version.
    ///
    /// # Errors
    /// [`InvalidId`] if the change's name is not allowed.
    pub fn version(branch: &str, name: &str, occurrence: u32) -> Result<Self, InvalidId> {
        check("version name", name, false)?;
        Ok(Self::inner(branch, &format!("version:{name}"), occurrence))
    }

    /// Names a branch below another one.
    ///
    /// # Errors
    /// [`InvalidId`] if the name is not allowed.
    pub fn branch(parent: &str, name: &str, occurrence: u32) -> Result<Self, InvalidId> {
        check("branch name", name, false)?;
        Ok(Self::inner(parent, name, occurrence))
    }

    /// The undo of this step.
    #[must_use]
    pub fn undo(&self) -> Self {
        StepId(format!("{self}/undo").into())
    }

    /// The step that this is the undo of.
    pub fn undone(&self) -> Option<Self> {
        self.0.strip_suffix("/undo").map(|step| StepId(step.into()))
    }

    /// The question to a person about this step, whose undo has failed; `round` counts such questions.
    #[must_use]
    pub fn undo_failed(&self, round: u32) -> Self {
        StepId(format!("{self}/undo-failed#{round}").into())
    }

    /// The question to a person about this step, which is in doubt; `round` counts such questions.
    #[must_use]
    pub fn in_doubt(&self, round: u32) -> Self {
        StepId(format!("{self}/in-doubt#{round}").into())
    }

    /// The step that this is the question of doubt about.
    pub fn doubted(&self) -> Option<Self> {
        let (step, round) = self.0.rsplit_once("/in-doubt#")?;
        round.bytes().all(|b| b.is_ascii_digit()).then(|| StepId(step.into())) // else something in a branch of that name
    }

    /// True for the question to a person about an undo that has failed.
    pub fn is_about_undo(&self) -> bool {
        let round = self.0.rsplit_once("/undo-failed#").map(|(_, round)| round);
        round.is_some_and(|round| !round.is_empty() && round.bytes().all(|b| b.is_ascii_digit()))
    }

    /// Names a child.
    ///
    /// # Errors
    /// [`InvalidId`] if the workflow's name cannot be part of it.
    pub fn child(branch: &str, workflow: &str, occurrence: u32) -> Result<Self, InvalidId> {
        check("workflow name", workflow, true)?;
        Ok(Self::inner(branch, &format!("child:{workflow}"), occurrence))
    }

    /// Names what is said of a stage of a task.
    pub fn stage(name: &str) -> Self {
        Self::inner("", &format!("stage:{name}"), 1)
    }

    /// Names a progress note.
    pub fn note(branch: &str, occurrence: u32) -> Self {
        Self::inner(branch, "note:", occurrence)
    }

    /// Whether that one belongs to another branch of the same `join` or `all`: what is told there cannot depend on this one before the branches meet.
    pub fn is_beside(&self, other: &StepId) -> bool {
        let mut parts = self.0.split('/').zip(other.0.split('/'));
        parts
            .find(|(mine, others)| mine != others)
            .is_some_and(|(mine, others)| match (fork(mine), fork(others)) {
                (Some(mine), Some(others)) => mine == others,
                _ => false,
            })
    }

    /// True if it is in a branch of a `join` or `all`.
    pub fn is_in_a_fork(&self) -> bool {
        self.0.split('/').any(|part| fork(part).is_some())
    }

    /// True for the record of a version, which is no step of the user's.
    pub fn is_version(&self) -> bool {
        self.0.rsplit('/').next().is_some_and(|name| name.starts_with("version:"))
    }

    fn inner(branch: &str, name: &str, occurrence: u32) -> Self {
        let slash = if branch.is_empty() { "" } else { "/" };
        StepId(format!("{branch}{slash}{name}#{occurrence}").into())
    }

    /// Takes an identity as it was stored.
    pub fn from_stored(text: &str) -> Self {
        StepId(text.into())
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The `join` or `all` of which that part of a path is a branch: `all#1` of `all#1.3`.
fn fork(part: &str) -> Option<&str> {
    let (fork, index) = part.rsplit_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (name, occurrence) = fork.split_once('#')?;
    (["join", "all"].contains(&name) && digits(occurrence) && digits(index)).then_some(fork)
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_the_public_form_are_taken() {
        for good in ["a", "order-17", "team/eu.west/order_1", "0", &"x".repeat(128)] {
            assert_eq!(RunId::new(good).expect(good).as_str(), good);
        }
    }

    #[test]
    fn other_ids_are_refused_with_a_reason() {
        for bad in ["", " ", "a b", "a:b", "ü", "a//b", "/a", "a/", ".", "a/../b", "a\n", &"x".repeat(129)] {
            let error = RunId::new(bad).expect_err(bad);
            assert!(error.to_string().starts_with("run id "), "{error}");
            assert!(error.to_string().contains("A-Z a-z 0-9"), "{error}");
        }
    }

    #[test]
    fn step_identity_reads_as_path_name_and_occurrence() {
        assert_eq!(StepId::new("", "charge", 1).unwrap().to_string(), "charge#1");
        assert_eq!(StepId::new("left/inner", "charge", 3).unwrap().to_string(), "left/inner/charge#3");
        assert!(StepId::new("", "a/b", 1).is_err(), "a slash would look like a branch");
        assert!(StepId::new("", "a#2", 1).is_err(), "a hash would look like an occurrence");
    }

    #[test]
    fn undos_and_questions_name_the_step_they_are_about() {
        let step = StepId::new("left", "charge", 2).unwrap();
        assert_eq!(step.undo().to_string(), "left/charge#2/undo");
        assert_eq!((step.undo().undone(), step.undone()), (Some(step.clone()), None));
        assert_eq!(step.undo_failed(1).to_string(), "left/charge#2/undo-failed#1");
        assert_eq!(step.undo_failed(1).undone(), None);
        assert_eq!(step.in_doubt(12).to_string(), "left/charge#2/in-doubt#12");
        assert_eq!((step.in_doubt(12).doubted(), step.doubted()), (Some(step), None));
        let branch = StepId::branch("left/charge#2", "in-doubt", 1).unwrap();
        assert_eq!(StepId::signal(branch.as_str(), "approve", 1).unwrap().doubted(), None, "a wait in a branch of that name");
    }

    #[test]
    fn branches_of_one_join_are_beside_each_other() {
        let beside = |a: &str, b: &str| StepId::from_stored(a).is_beside(&StepId::from_stored(b));
        assert!(beside("all#1.3/charge#1", "all#1.12/charge#1") && beside("x#1/join#2.0/a#1", "x#1/join#2.1/all#1.0/b#1"));
        for (a, b) in [
            ("all#1.3/charge#1", "all#1.3/ship#1"),
            ("all#1.3/charge#1", "charge#1"),
            ("all#1.3/charge#1", "all#2.4/charge#1"),
            ("race#1.0/a#1", "race#1.1/b#1"),
            ("graph#1/a#1", "graph#1/b#1"),
            ("all.1#1", "all.2#1"),
            ("a#1", "a#1"),
        ] {
            assert!(!beside(a, b) && !beside(b, a), "{a} {b}");
        }
        assert!(StepId::from_stored("x#1/all#1.3/charge#1").is_in_a_fork() && !StepId::from_stored("race#1.3/all#1").is_in_a_fork());
    }

    #[test]
    fn signals_and_versions_have_their_own_names() {
        assert_eq!(StepId::signal("left", "approve", 1).unwrap().to_string(), "left/signal:approve#1");
        assert_eq!(StepId::version("", "insure", 1).unwrap().to_string(), "version:insure#1");
        for bad in ["", "a b", "a:b", "a/b", "a#1"] {
            assert!(
                StepId::signal("", bad, 1).is_err() && StepId::version("", bad, 1).is_err() && StepId::branch("", bad, 1).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn signals_from_outside_may_answer_the_engines_questions() {
        for good in ["approve", "undo:left/charge#2", "in-doubt:charge#1", &"x".repeat(512)] {
            assert_eq!(check_signal(good), Ok(()), "{good}");
        }
        for bad in ["", "a b", "ü", &"x".repeat(513)] {
            assert_eq!(check_signal(bad).unwrap_err().what, "signal name", "{bad}");
        }
    }
}
