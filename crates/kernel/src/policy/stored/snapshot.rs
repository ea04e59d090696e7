//! Compares the bytes of policies with their snapshot.

use super::*;
use steadfast_test_snapshots::bytes::{Page, Schema};
use steadfast_test_snapshots::{assert_snapshot, labels};

labels!(Strategies of Strategy {
    Strategy::Exponential { .. } => "exponential",
    Strategy::Linear { .. } => "linear",
    Strategy::Constant { .. } => "constant",
    Strategy::Schedule(_) => "schedule",
});

labels!(Jitters of Jitter {
    Jitter::None => "without jitter",
    Jitter::Additive => "additive jitter",
    Jitter::Proportional(_) => "proportional jitter",
    Jitter::Full => "full jitter",
    Jitter::Equal => "equal jitter",
});

labels!(Conditions of When { When::Class(_) => "on a class", When::Code(_) => "on a code" });

const BASE: Duration = Duration::new(3, 7);

/// Every strategy and every jitter at least once; the first has all fields.
fn policies() -> Vec<Policy> {
    let full = Policy::exponential(BASE)
        .factor(1.5)
        .max_attempts(9)
        .max_delay(BASE * 100)
        .jitter(Jitter::Proportional(200))
        .attempt_timeout(BASE * 2)
        .deadline(BASE * 1_000)
        .on(Class::Permanent, Policy::once())
        .on(Code::NotFound, Policy::constant(BASE));
    vec![
        full,
        Policy::linear(BASE).jitter(Jitter::Additive),
        Policy::constant(BASE).jitter(Jitter::None),
        Policy::schedule(vec![BASE, BASE * 2]).jitter(Jitter::Full),
        Policy::constant(Duration::ZERO).jitter(Jitter::Equal),
    ]
}

fn write(policy: &Policy, schema: &mut Schema, page: &mut Page) {
    let (strategy, jitter) = (Strategies::of(&policy.strategy), Jitters::of(&policy.jitter));
    page.cover(strategy);
    page.cover(jitter);
    policy.overrides.iter().for_each(|(when, _)| page.cover(Conditions::of(when)));
    page.form(&format!("{strategy}, {jitter}"));
    page.protobuf(&policy.encode(), schema);
}

#[test]
fn policies_match_snapshot() {
    let mut schema = Schema::of(|bytes| Body::decode(bytes).is_ok());
    let mut page = Page::default();
    policies().iter().for_each(|policy| write(policy, &mut schema, &mut page));
    for labels in [Strategies::ALL, Jitters::ALL, Conditions::ALL] {
        page.assert_covers(labels);
    }
    schema.assert_shown();
    assert_snapshot("bytes/policies.txt", page.text());
}
