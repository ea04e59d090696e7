//! Ids in paths. They may have slashes, written as they are or as `%2F`.
//!
//! A path is brought into one form before it is routed: everything after `/v1/runs/` is the id, unless its last part is the name of a verb, which then is
//! the verb, whatever the method, and `…/signals/NAME` is a signal, whatever its name; and so for plans, tenants, keys and letters. A run whose id ends like that (`orders/retry`) is reached with its slashes written as `%2F`.

use crate::problem::Problem;
use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;
use steadfast_kernel::{KeyName, LetterId, PlanId, RunId, TenantId};

const RUNS: &str = "/v1/runs/";

/// What ids come after, and the verbs that come after those.
const KINDS: [(&str, &[&str]); 7] = [
    (RUNS, &["events", "result", "pause", "resume", "cancel", "retry", "replay"]),
    ("/v1/plans/", &["events", "start", "pause", "resume", "cancel", "rollback"]),
    ("/v1/tenants/", &["task", "checkpoint", "retry", "pause", "resume", "cancel", "rollback", "hand-over"]),
    ("/v1/locks/", &[]),
    ("/v1/keys/", &["renew"]),
    ("/v1/letters/", &["redrive"]),
    ("/v1/cluster/instances/", &["drain", "undrain"]),
];

/// The path in its one form, where it is not yet.
pub(crate) fn canonical(path: &str) -> Option<String> {
    let (prefix, rest, verbs) = KINDS.iter().find_map(|(prefix, verbs)| Some((*prefix, path.strip_prefix(prefix)?, *verbs)))?;
    joined(prefix, rest, verbs)
}

fn joined(prefix: &str, rest: &str, verbs: &[&str]) -> Option<String> {
    if !rest.contains('/') {
        return None;
    }
    let parts: Vec<&str> = rest.split('/').collect();
    let signals = parts
        .iter()
        .rposition(|part| *part == "signals")
        .filter(|at| prefix == RUNS && (1..parts.len() - 1).contains(at));
    let (id, verb) = match (parts.last(), signals) {
        (_, Some(at)) if at == parts.len() - 2 => (&parts[..at], format!("/signals/{}", parts[at + 1])), // a signal may be called like a verb
        (Some(last), _) if verbs.contains(last) => (&parts[..parts.len() - 1], format!("/{last}")),
        (_, Some(at)) => (&parts[..at], format!("/signals/{}", parts[at + 1..].join("%2F"))),
        _ => (&parts[..], String::new()),
    };
    Some(format!("{prefix}{}{verb}", id.join("%2F")))
}

async fn part(parts: &mut Parts, name: &str) -> Result<String, Problem> {
    let params = RawPathParams::from_request_parts(parts, &()).await;
    let params = params.map_err(|_| Problem::bad_request("the path has %XX parts that are not UTF-8"))?;
    let found = params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
    found.ok_or_else(|| Problem::bad_request(format!("the path has no {name}")))
}

/// The run that a path names.
pub(crate) struct RunPath(pub(crate) RunId);

impl<S: Sync> FromRequestParts<S> for RunPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(RunPath(RunId::new(part(parts, "id").await?)?))
    }
}

/// The run and the signal that a path names.
pub(crate) struct SignalPath(pub(crate) RunId, pub(crate) String);

impl<S: Sync> FromRequestParts<S> for SignalPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (run, name) = (RunId::new(part(parts, "id").await?)?, part(parts, "name").await?);
        steadfast_kernel::check_signal(&name)?;
        Ok(SignalPath(run, name))
    }
}

/// The plan that a path names.
pub(crate) struct PlanPath(pub(crate) PlanId);

impl<S: Sync> FromRequestParts<S> for PlanPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(PlanPath(PlanId::new(part(parts, "id").await?)?))
    }
}

/// The tenant that a path names.
pub(crate) struct TenantPath(pub(crate) TenantId);

impl<S: Sync> FromRequestParts<S> for TenantPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(TenantPath(TenantId::new(part(parts, "tenant").await?)?))
    }
}

/// The key that a path names.
pub(crate) struct KeyPath(pub(crate) KeyName);

impl<S: Sync> FromRequestParts<S> for KeyPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(KeyPath(KeyName::new(part(parts, "key").await?)?))
    }
}

/// The instance that a path names. Whether there is one, who shares the store knows.
pub(crate) struct InstancePath(pub(crate) String);

impl<S: Sync> FromRequestParts<S> for InstancePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        part(parts, "id").await.map(InstancePath)
    }
}

/// The dead letter that a path names.
pub(crate) struct LetterPath(pub(crate) LetterId);

impl<S: Sync> FromRequestParts<S> for LetterPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let id = part(parts, "id").await?;
        let wrong = || {
            Problem::bad_request(
                "the id of a dead letter is WORKFLOW.NUMBER, key:KEY.NUMBER or route:ROUTE.NUMBER, for example checkout.17",
            )
        };
        LetterId::parse(&id).map(LetterPath).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_may_have_slashes_and_the_last_part_may_be_a_verb() {
        for (path, one_form) in [
            ("/v1/runs/a", None),
            ("/v1/runs/a%2Fb", None),
            ("/v1/runs/a/b", Some("/v1/runs/a%2Fb")),
            ("/v1/runs/a/b/c/pause", Some("/v1/runs/a%2Fb%2Fc/pause")),
            ("/v1/runs/a/pause", Some("/v1/runs/a/pause")),
            ("/v1/runs/pause", None),
            ("/v1/runs/a%2Fpause", None),
            ("/v1/runs/a/signals/go", Some("/v1/runs/a/signals/go")),
            ("/v1/runs/a/b/signals/cancel", Some("/v1/runs/a%2Fb/signals/cancel")),
            ("/v1/runs/a/b/signals/left/go", Some("/v1/runs/a%2Fb/signals/left%2Fgo")),
            ("/v1/runs/signals/go", Some("/v1/runs/signals%2Fgo")),
            ("/v1/runs/a/signals", Some("/v1/runs/a%2Fsignals")),
            ("/v1/letters/a/b.1/redrive", Some("/v1/letters/a%2Fb.1/redrive")),
            ("/v1/letters/a/b.1", Some("/v1/letters/a%2Fb.1")),
            ("/v1/keys/session:42", None),
            ("/v1/keys/a:b/c/renew", Some("/v1/keys/a:b%2Fc/renew")),
            ("/v1/keys/a/renew", Some("/v1/keys/a/renew")),
            ("/v1/keys/a%2Frenew", None),
            ("/v1/keys/a/pause", Some("/v1/keys/a%2Fpause")),
            ("/v1/keys/a/signals/go", Some("/v1/keys/a%2Fsignals%2Fgo")),
            ("/v1/letters/key:a/b.1/redrive", Some("/v1/letters/key:a%2Fb.1/redrive")),
            ("/v1/plans/eu/switch/rollback", Some("/v1/plans/eu%2Fswitch/rollback")),
            ("/v1/plans/switch", None),
            ("/v1/plans/a/signals/go", Some("/v1/plans/a%2Fsignals%2Fgo")),
            ("/v1/plans/a/retry", Some("/v1/plans/a%2Fretry")),
            ("/v1/tenants/acme/task", Some("/v1/tenants/acme/task")),
            ("/v1/tenants/acme/eu/checkpoint", Some("/v1/tenants/acme%2Feu/checkpoint")),
            ("/v1/tenants/acme%2Ftask/task", Some("/v1/tenants/acme%2Ftask/task")),
            ("/v1/locks/acme/eu", Some("/v1/locks/acme%2Feu")),
            ("/v1/locks/acme/task", Some("/v1/locks/acme%2Ftask")),
            ("/v1/cluster/instances/a/drain", Some("/v1/cluster/instances/a/drain")),
            ("/v1/cluster/instances/a/b/undrain", Some("/v1/cluster/instances/a%2Fb/undrain")),
            ("/v1/cluster", None),
            ("/v1/runs", None),
            ("/v1/workflows/x/y", None),
        ] {
            assert_eq!(canonical(path).as_deref(), one_form, "{path}");
        }
    }
}
