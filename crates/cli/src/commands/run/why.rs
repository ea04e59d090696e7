//! `steadfast run why`: in one sentence what a run waits for or how it ended, and what helps.

use super::Context;
use crate::duration;
use crate::error::Error;
use crate::output::{self, time};
use steadfast_kernel::Timestamp;
use steadfast_server::shapes::{Failure, Run, Status, Time, Wait};

pub(super) async fn run(context: &Context, run: &str) -> Result<(), Error> {
    let (answer, run) = context.look(run).await?;
    if context.json {
        output::data(answer.text);
    } else {
        output::data(sentence(&run, time::now()));
    }
    Ok(())
}

/// Why a run does not move, or how it ended.
pub(crate) fn sentence(run: &Run, now: Timestamp) -> String {
    let ended = run.ended_at.map(|at| format!(" {}", time::relative(at.0, now))).unwrap_or_default();
    match (run.status, run.waits.first()) {
        (Status::Completed, _) => {
            let took = run
                .ended_at
                .map(|at| format!(", after {}", duration::rough(at.0.saturating_since(run.started_at.0))));
            format!("it completed{ended}{}", took.unwrap_or_default())
        }
        (Status::Failed, _) => {
            let failure = run.failure.as_ref().map(|failure| format!(": {}", told(failure))).unwrap_or_default();
            format!("it failed{ended}{failure}; when the cause is mended: steadfast run retry {}", run.id)
        }
        (Status::Cancelled, _) => format!("it was cancelled{ended}"),
        (Status::Interrupted, None) => format!("its process died while it was under way; go on with: steadfast run retry {}", run.id),
        (_, Some(wait)) => {
            let more = match run.waits.len() {
                1 => String::new(),
                count => format!(" (and for {} more, see: steadfast run show {})", count - 1, run.id),
            };
            waiting(&run.id, wait, now) + &more
        }
        (Status::Compensating, None) => "what it did is being undone".into(),
        _ => "it is under way".into(),
    }
}

/// What a run waits for.
pub(crate) fn waiting(run: &str, wait: &Wait, now: Timestamp) -> String {
    let when = |at: &Time| time::relative(at.0, now);
    let latest = |until: &Option<Time>| until.map(|at| format!(", until {} at the latest ({})", clock(at), when(&at))).unwrap_or_default();
    match wait {
        Wait::Backoff { path, attempt, of, due_at, failure, .. } => {
            format!("step {} is tried again {}, attempt {attempt} of {of}, because {}", bare(path), when(due_at), told(failure))
        }
        Wait::Timer { due_at } => format!("it sleeps until {} ({})", clock(*due_at), when(due_at)),
        Wait::Signal { name, .. } if name.starts_with("undo:") => {
            let step = bare(name.trim_start_matches("undo:"));
            let say = |word: &str| format!("steadfast run signal {run} '{name}' --payload '\"{word}\"'");
            format!(
                "step {step} could not be undone; have it tried again with: {}, or see to it yourself and: {}",
                say("retry"),
                say("skip")
            )
        }
        Wait::Signal { name, until } => {
            format!("it waits for the signal {name}{}: steadfast run signal {run} {name} --payload JSON", latest(until))
        }
        Wait::Approval { name, roles, until } => {
            let who = if roles.is_empty() { "somebody".into() } else { roles.join(" or ") };
            let how = format!("steadfast run signal {run} {name} --payload '{{\"approved\":true}}'");
            format!("it waits for {who} to approve {name}{}: {how}", latest(until))
        }
        Wait::InDoubt { path, attempt, .. } => {
            let step = bare(path);
            let (did, did_not) = (format!("--output '{step}=JSON'"), format!("--from {step}"));
            format!(
                "nobody knows whether attempt {attempt} of step {step} happened; steadfast run retry {run} with {did} if it did, with {did_not} if not"
            )
        }
        Wait::Paused { by, why, since } => {
            let by = by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            let why = why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("it was paused{by} {}{why}; go on with: steadfast run resume {run}", when(since))
        }
        Wait::Slot { key, position } => {
            let place = position.map(|place| format!("number {place} ")).unwrap_or_default();
            format!("it is {place}in line for a slot of the limit {key}")
        }
        Wait::Lock { tenant_id, holder } => {
            let by = holder.as_deref().map(|holder| format!(", which {} has", holder_of(holder))).unwrap_or_default();
            format!("it waits for the lock of {tenant_id}{by}: steadfast lock list")
        }
        Wait::Plan { plan_id } => format!("its plan {plan_id} has not let it begin yet: steadfast plan show {plan_id}"),
        Wait::Child { run: child } => format!("it waits for the run {child} that it has started: steadfast run why {child}"),
        Wait::NoWorker { workflow, version: None } => format!(
            "nobody who has room for it has the code of {workflow}: start a worker that has it (steadfast worker list shows who is there), or put a definition of it into the definitions folder; then it goes on"
        ),
        Wait::NoWorker { workflow, version: Some(version) } => format!(
            "nobody here has the version {version} of {workflow} that it began with: bring that back, or start a worker that has it; then it goes on"
        ),
        Wait::Mismatch { at, expected, found } => format!(
            "the definition does not fit the journal: event {at} is {expected}, but {found}; bring a definition that fits, or: steadfast run retry {run}"
        ),
    }
}

/// A failure in a few words.
pub(crate) fn told(failure: &Failure) -> String {
    let Failure { message, causes, attempts, .. } = failure;
    let attempts = if *attempts > 1 && !message.contains("attempts") { format!(" ({attempts} attempts)") } else { String::new() };
    let cause = causes
        .first()
        .filter(|cause| !message.contains(*cause))
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    output::plain(&format!("{message}{cause} [{}]{attempts}", failure.code))
}

/// The first occurrence of a step is known by its name alone.
pub(crate) fn bare(path: &str) -> &str {
    path.strip_suffix("#1").unwrap_or(path)
}

/// The task of a holder, which is written `PLAN:TASK`, or `PLAN:TASK:INSTANCE:FENCE` if another instance has it.
fn holder_of(holder: &str) -> String {
    let parts: Vec<&str> = holder.split(':').collect();
    match parts.as_slice() {
        [_, task] => (*task).into(),
        [_, task, instance, _] => format!("{task} of instance {instance}"),
        _ => holder.into(),
    }
}

/// A time without the fractions of a second.
fn clock(at: Time) -> String {
    let text = at.to_string();
    text.split_once('.').map_or_else(|| text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::sample;

    fn of(fields: serde_json::Value) -> String {
        sentence(&sample::run(fields), time::parse("2026-01-01T12:00:00Z").unwrap())
    }

    #[test]
    fn a_backoff_says_which_attempt_when_and_why() {
        let wait = serde_json::json!({"reason": "BACKOFF", "step": "charge", "path": "charge#1", "attempt": 2, "of": 5, "dueAt": "2026-01-01T12:00:30Z",
            "failure": {"class": "transient", "code": "UNAVAILABLE", "message": "connection refused", "causes": [], "attempts": 0}});
        assert_eq!(
            of(serde_json::json!({"waits": [wait]})),
            "step charge is tried again in 30 s, attempt 2 of 5, because connection refused [UNAVAILABLE]"
        );
    }

    #[test]
    fn an_approval_says_who_and_how() {
        let wait = serde_json::json!({"reason": "APPROVAL", "name": "ok", "roles": ["operator"], "until": "2026-01-01T14:00:00.123Z"});
        let text = of(serde_json::json!({"waits": [wait, {"reason": "TIMER", "dueAt": "2026-01-01T14:00:00Z"}]}));
        assert_eq!(
            text,
            "it waits for operator to approve ok, until 2026-01-01T14:00:00Z at the latest (in 2 h): steadfast run signal r ok --payload '{\"approved\":true}' \
             (and for 1 more, see: steadfast run show r)"
        );
    }

    #[test]
    fn a_lock_names_its_holder_wherever_that_is() {
        let of = |holder: &str| of(serde_json::json!({"waits": [{"reason": "LOCK", "tenantId": "acme", "holder": holder}]}));
        assert_eq!(of("p:p/acme"), "it waits for the lock of acme, which p/acme has: steadfast lock list");
        assert_eq!(of("p:p/acme:b:7"), "it waits for the lock of acme, which p/acme of instance b has: steadfast lock list");
    }

    #[test]
    fn ends_are_told_with_what_helps() {
        let failure = serde_json::json!({"class": "permanent", "code": "HTTP_404", "message": "not found", "causes": ["no such order"], "attempts": 3});
        assert_eq!(
            of(serde_json::json!({"status": "FAILED", "endedAt": "2026-01-01T11:58:00Z", "failure": failure})),
            "it failed 2 min ago: not found: no such order [HTTP_404] (3 attempts); when the cause is mended: steadfast run retry r"
        );
        assert_eq!(of(serde_json::json!({"status": "COMPLETED", "endedAt": "2026-01-01T11:00:03Z"})), "it completed 59 min ago, after 3 s");
        assert_eq!(of(serde_json::json!({"status": "RUNNING"})), "it is under way");
    }
}
