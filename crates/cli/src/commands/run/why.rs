//! `steadfast run why`: in one sentence what a run waits for or how it ended, and what helps.

use super::Context;
use crate::client::shapes::{Failure, Run, Wait};
use crate::duration;
use crate::error::Error;
use crate::output::{self, time};
use steadfast_kernel::Timestamp;

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
    let ended = run.ended_at.as_deref().map(|at| format!(" {}", time::relative(at, now))).unwrap_or_default();
    match (run.status.as_str(), run.waits.first()) {
        ("COMPLETED", _) => {
            let took = time::took(run.started_at.as_deref(), run.ended_at.as_deref(), now)
                .map(|took| format!(", after {}", duration::rough(took)));
            format!("it completed{ended}{}", took.unwrap_or_default())
        }
        ("FAILED", _) => {
            let failure = run.failure.as_ref().map(|failure| format!(": {}", told(failure))).unwrap_or_default();
            format!("it failed{ended}{failure}; when the cause is mended: steadfast run retry {}", run.id)
        }
        ("CANCELLED", _) => format!("it was cancelled{ended}"),
        ("INTERRUPTED", None) => format!("its process died while it was under way; go on with: steadfast run retry {}", run.id),
        (_, Some(wait)) => {
            let more = match run.waits.len() {
                1 => String::new(),
                count => format!(" (and for {} more, see: steadfast run show {})", count - 1, run.id),
            };
            waiting(&run.id, wait, now) + &more
        }
        ("COMPENSATING", None) => "what it did is being undone".into(),
        _ => "it is under way".into(),
    }
}

/// What a run waits for.
pub(crate) fn waiting(run: &str, wait: &Wait, now: Timestamp) -> String {
    let step = wait.step.as_deref().map(bare).unwrap_or_default();
    let when = |at: &Option<String>| at.as_deref().map(|at| time::relative(at, now)).unwrap_or_default();
    let until = wait
        .until
        .as_deref()
        .map(|at| format!(", until {} at the latest ({})", clock(at), time::relative(at, now)))
        .unwrap_or_default();
    match wait.reason.as_str() {
        "BACKOFF" => {
            let failure = wait.failure.as_ref().map(|failure| format!(", because {}", told(failure))).unwrap_or_default();
            let (attempt, of) = (wait.attempt.unwrap_or_default(), wait.of.unwrap_or_default());
            format!("step {step} is tried again {}, attempt {attempt} of {of}{failure}", when(&wait.due_at))
        }
        "TIMER" => format!("it sleeps until {} ({})", wait.due_at.as_deref().map(clock).unwrap_or_default(), when(&wait.due_at)),
        "SIGNAL" => {
            let name = wait.name.as_deref().unwrap_or_default();
            format!("it waits for the signal {name}{until}: steadfast run signal {run} {name} --payload JSON")
        }
        "APPROVAL" => {
            let step = wait.name.as_deref().unwrap_or_default();
            let who = if wait.roles.is_empty() { "somebody".into() } else { wait.roles.join(" or ") };
            format!("it waits for {who} to approve {step}{until}: steadfast run signal {run} {step} --payload '{{\"approved\":true}}'")
        }
        "IN_DOUBT" => format!(
            "nobody knows whether attempt {} of step {step} happened; if it did: steadfast run retry {run} --output '{step}=JSON', if not: steadfast run retry {run} --from {step}",
            wait.attempt.unwrap_or_default()
        ),
        "PAUSED" => {
            let by = wait.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            let why = wait.why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("it was paused{by} {}{why}; go on with: steadfast run resume {run}", when(&wait.since))
        }
        "SLOT" => {
            let place = wait.position.map(|place| format!("number {place} ")).unwrap_or_default();
            format!("it is {place}in line for a slot of the limit {}", wait.key.as_deref().unwrap_or_default())
        }
        "CHILD" => {
            let child = wait.run.as_deref().unwrap_or_default();
            format!("it waits for the run {child} that it has started: steadfast run why {child}")
        }
        "NO_WORKER" => {
            let workflow = wait.workflow.as_deref().unwrap_or_default();
            format!("there is no definition of {workflow} here; put it into the definitions folder, and it goes on")
        }
        "MISMATCH" => format!(
            "the definition does not fit the journal: event {} is {}, but {}; bring a definition that fits, or: steadfast run retry {run}",
            wait.at.unwrap_or_default(),
            wait.expected.as_deref().unwrap_or_default(),
            wait.found.as_deref().unwrap_or_default()
        ),
        other => format!("it waits ({other})"),
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
    format!("{message}{cause} [{}]{attempts}", failure.code)
}

/// The first occurrence of a step is known by its name alone.
pub(crate) fn bare(path: &str) -> &str {
    path.strip_suffix("#1").unwrap_or(path)
}

/// A time without the fractions of a second.
fn clock(at: &str) -> String {
    match at.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => at.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(run: serde_json::Value) -> String {
        let mut whole = serde_json::json!({"id": "r", "workflow": "w", "status": "WAITING", "startedAt": "2026-01-01T11:00:00Z"});
        whole.as_object_mut().unwrap().extend(run.as_object().unwrap().clone());
        sentence(&serde_json::from_value(whole).unwrap(), time::parse("2026-01-01T12:00:00Z").unwrap())
    }

    #[test]
    fn a_backoff_says_which_attempt_when_and_why() {
        let wait = serde_json::json!({"reason": "BACKOFF", "step": "charge#1", "attempt": 2, "of": 5, "dueAt": "2026-01-01T12:00:30Z",
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
