//! `retry`: what follows a failed attempt, as a definition says it.

use crate::document::{At, Fields, Node};
use crate::duration;
use crate::problem::Report;
use crate::suggest;
use std::time::Duration;
use steadfast_kernel::{Code, Jitter, Policy, Timestamp};

const BACKOFFS: [&str; 3] = ["exponential", "linear", "constant"];
const JITTERS: [(&str, Jitter); 5] = [
    ("none", Jitter::None),
    ("additive", Jitter::Additive),
    ("proportional", Jitter::Proportional(200)),
    ("full", Jitter::Full),
    ("equal", Jitter::Equal),
];

/// The longest delay unless the definition says otherwise.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// More attempts than this are not added up: their delays are all the same by then.
const ADDED_MAX: u32 = 10_000;

/// A `retry` and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    pub(crate) at: At,
    pub(crate) policy: Policy,
}

impl Retry {
    pub(crate) fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let mut fields = Fields::of(node, "retry", report)?;
        let policy = policy(&mut fields, report);
        let deadline = fields.time_limit("deadline", report);
        let on = fields.take("on");
        fields.end(report);
        let mut policy = policy?;
        if let Some(deadline) = deadline {
            policy = policy.deadline(deadline);
        }
        for (key, node) in on.and_then(|on| on.map("on", report)).unwrap_or_default() {
            let Some(code) = Code::parse(&key.name) else {
                let help = suggest::help(&key.name, Code::ALL.iter().map(|code| code.as_str()));
                report.add(key.at, format!("there is no failure code `{}`", key.name), help);
                continue;
            };
            let Some(mut fields) = Fields::of(node, format!("on {code}"), report) else { continue };
            let special = self::policy(&mut fields, report);
            fields.end(report);
            if let Some(special) = special {
                policy = policy.on(code, special);
            }
        }
        let retry = Retry { at: node.at, policy };
        if let Some(deadline) = deadline {
            retry.check_fits(deadline, "its deadline", report);
        }
        Some(retry)
    }

    /// Whether the last attempt can begin before the deadline, if everything goes as fast as it can.
    pub(crate) fn check_fits(&self, deadline: Duration, whose: &str, report: &mut Report) {
        let attempts = self.policy.attempts_max();
        let shortest = shortest(&self.policy, deadline);
        if attempts > 1 && shortest >= deadline {
            let (needed, deadline) = (duration::show(shortest), duration::show(deadline));
            report.wrong_with_help(
                self.at,
                format!("{attempts} attempts cannot fit: at least {needed} of waiting between them, but {whose} is {deadline}"),
                "allow fewer attempts, wait less between them, or give more time",
            );
        }
    }

    /// The deadline over all attempts, if it has one.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.policy.deadline_at(Timestamp::EPOCH).map(|at| at.saturating_since(Timestamp::EPOCH))
    }
}

/// How long all delays before the last attempt are at the least; counted until they are over the limit.
fn shortest(policy: &Policy, limit: Duration) -> Duration {
    let mut sum = Duration::ZERO;
    for attempt in 1..policy.attempts_max().min(ADDED_MAX) {
        sum = sum.saturating_add(policy.delay(attempt, 0));
        if sum >= limit && sum >= Duration::from_secs(3600) {
            break;
        }
    }
    sum
}

/// The fields that overrides for single codes have, too.
fn policy(fields: &mut Fields<'_>, report: &mut Report) -> Option<Policy> {
    let at = fields.at;
    let max_attempts = fields.whole("max_attempts", report);
    if max_attempts == Some(0) {
        let help = "it counts all attempts: 1 means one call and no retry";
        report.wrong_with_help(fields.at("max_attempts"), "`max_attempts` is 0, so nothing would ever be tried", help);
    }
    let backoff = fields.text("backoff", report).map(str::to_string);
    let schedule = fields.take("schedule").map(|node| read_schedule(node, report));
    let base = fields.duration("base", report);
    let factor = fields.take("factor");
    let max_delay = fields.duration("max_delay", report);
    let jitter = fields.take("jitter").and_then(|node| read_jitter(node, report));
    if let Some(backoff) = backoff.as_deref().filter(|backoff| !BACKOFFS.contains(backoff)) {
        report.add(fields.at("backoff"), format!("there is no backoff `{backoff}`"), suggest::help(backoff, BACKOFFS));
        return None;
    }
    if schedule.is_some() && (backoff.is_some() || base.is_some()) {
        report.wrong(fields.at("schedule"), "`schedule` says all delays itself; leave out `backoff` and `base`");
        return None;
    }
    let step = base.unwrap_or(Duration::from_secs(1));
    let mut policy = match (schedule, backoff.as_deref()) {
        (Some(delays), _) => Policy::schedule(delays?),
        (None, Some("linear")) => Policy::linear(step),
        (None, Some("constant")) => Policy::constant(step),
        (None, _) => Policy::exponential(step),
    };
    if let Some(node) = factor {
        match node.json().as_f64().filter(|factor| (1.0..=1000.0).contains(factor)) {
            Some(_) if !matches!(backoff.as_deref(), None | Some("exponential")) => {
                report.wrong(fields.at("factor"), "`factor` is for exponential backoff only");
            }
            Some(factor) => policy = policy.factor(factor),
            None => report.wrong(node.at, "`factor` has to be a number from 1 to 1000"),
        }
    }
    let grows = !matches!(backoff.as_deref(), Some("constant"));
    if let Some(base) = base.filter(|base| grows && *base > max_delay.unwrap_or(MAX_DELAY)) {
        let (base, cap) = (duration::show(base), duration::show(max_delay.unwrap_or(MAX_DELAY)));
        report.wrong_with_help(at, format!("`base` is {base}, but no delay is longer than `max_delay`, {cap}"), "set a longer `max_delay`");
    }
    if let Some(max_delay) = max_delay {
        policy = policy.max_delay(max_delay);
    }
    if let Some(jitter) = jitter {
        policy = policy.jitter(jitter);
    }
    Some(match max_attempts {
        Some(max @ 1..) => policy.max_attempts(max),
        _ => policy,
    })
}

fn read_schedule(node: &Node, report: &mut Report) -> Option<Vec<Duration>> {
    let items = node.list("schedule", report)?;
    if items.is_empty() {
        report.wrong(node.at, "`schedule` needs at least one delay");
        return None;
    }
    let delays: Vec<_> = items.iter().map(|item| item.duration("schedule", report)).collect();
    delays.into_iter().collect()
}

fn read_jitter(node: &Node, report: &mut Report) -> Option<Jitter> {
    let name = node.text("jitter", report)?;
    let found = JITTERS.iter().find(|(known, _)| *known == name).map(|(_, jitter)| *jitter);
    if found.is_none() {
        report.add(node.at, format!("there is no jitter `{name}`"), suggest::help(name, JITTERS.map(|(known, _)| known)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;

    const SECOND: Duration = Duration::from_secs(1);

    fn read(text: &str) -> Result<Policy, Vec<String>> {
        let mut report = Report::new("f");
        let node = parse(text, &mut report).expect("yaml");
        let retry = Retry::read(&node, &mut report);
        let problems: Vec<_> = report.into_problems().into_iter().map(|problem| problem.message).collect();
        if problems.is_empty() { Ok(retry.expect("a policy").policy) } else { Err(problems) }
    }

    #[test]
    fn an_empty_retry_is_the_default_policy() {
        assert_eq!(read("{}"), Ok(Policy::default()));
    }

    #[test]
    fn every_field_finds_its_place_in_the_policy() {
        let text = "{max_attempts: 7, backoff: exponential, base: 2s, factor: 3, max_delay: 40s, jitter: full, deadline: 10m, on: {RESOURCE_EXHAUSTED: {backoff: constant, base: 20s, max_attempts: 9}, NOT_FOUND: {schedule: [1s, 5s]}}}";
        let expected = Policy::exponential(2 * SECOND)
            .max_attempts(7)
            .factor(3.0)
            .max_delay(40 * SECOND)
            .jitter(Jitter::Full)
            .deadline(600 * SECOND)
            .on(Code::ResourceExhausted, Policy::constant(20 * SECOND).max_attempts(9))
            .on(Code::NotFound, Policy::schedule([SECOND, 5 * SECOND]));
        assert_eq!(read(text), Ok(expected));
        assert_eq!(
            read("{backoff: linear, base: 500ms, jitter: proportional}"),
            Ok(Policy::linear(SECOND / 2).jitter(Jitter::Proportional(200)))
        );
        assert_eq!(read("{backoff: constant, base: 2m}"), Ok(Policy::constant(120 * SECOND)));
    }

    #[test]
    fn attempts_that_just_fit_are_taken_and_one_delay_more_is_not() {
        assert!(read("{max_attempts: 5, base: 1s, deadline: 15001ms}").is_ok(), "1 + 2 + 4 + 8 seconds");
        let problems = read("{max_attempts: 5, base: 1s, deadline: 15s}").unwrap_err();
        assert_eq!(problems, ["5 attempts cannot fit: at least 15s of waiting between them, but its deadline is 15s"]);
        assert!(read("{max_attempts: 5, base: 10s, jitter: full, deadline: 1s}").is_ok(), "full jitter may draw no delay at all");
        assert!(read("{max_attempts: 4000000000, base: 1s, deadline: 300d}").is_ok(), "and takes no time to check");
    }
}
