//! Checks wrong definitions. `snapshots.rs` compares the explanation of each `wrong/NAME.yaml` with `NAME.txt`.

use steadfast_definitions::{STAGES_MAX, STEPS_MAX, TEXT_BYTES_MAX, check};

/// Everything that is wrong with a text, as it is printed.
pub(crate) fn said(file: &str, text: &str) -> String {
    let problems = check(file, text).expect_err(file);
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn texts_and_steps_have_a_bound() {
    let long = format!("workflow: a\nsteps: []\n#{}\n", "x".repeat(TEXT_BYTES_MAX));
    assert!(said("long.yaml", &long).contains("at most 1048576 are allowed"));
    let steps = |count: usize| (0..count).map(|step| format!("  - {{ name: s{step}, set: {step} }}\n")).collect::<String>();
    assert!(check("most.yaml", &format!("workflow: a\nsteps:\n{}", steps(STEPS_MAX))).is_ok());
    assert!(
        said("many.yaml", &format!("workflow: a\nsteps:\n{}", steps(STEPS_MAX + 1))).contains("has 1001 steps, at most 1000 are allowed")
    );
    assert!(check("most.yaml", &format!("plan: a\nstages:\n{}", steps(STAGES_MAX))).is_ok());
    assert_eq!(
        said("many.yaml", &format!("plan: a\nstages:\n{}", steps(STAGES_MAX + 1))),
        "many.yaml:3:3: the plan has 101 stages, at most 100 are allowed\n"
    );
}

#[test]
fn no_text_makes_the_check_panic() {
    let workflow = "workflow: a\ninput: { type: object }\nretry: { base: 1s, on: { NOT_FOUND: { base: 2s } } }\nsteps:\n  - name: a\n    when: \"{{ input.x }}\"\n    http: { url: \"https://x.example/{{ attempt }}\", body: [1, { a: \"{{ input['b'] }}\" }] }\n    undo: { run: { command: [a, \"{{ output.body }}\"], exit: { transient: [1] } } }\n  - { name: b, wait: { until: \"{{ steps.a.output.t }}\" } }\noutput: \"{{ steps['a'].output }}\"\n";
    let plan = "plan: a\ncanary: 1\nstop_when: { failed_percent: 20 }\nlease: 10m\nstages:\n  - name: a\n    run: { command: [a, \"{{ tenant }}\", \"{{ plan.id }}\"] }\n    checkpoint: { x: \"{{ output.json['y'] }}\" }\n  - { name: b, when: \"{{ checkpoint.x }}\", approve: {} }\n";
    for good in [workflow, plan] {
        assert!(check("good.yaml", good).is_ok());
        for cut in 0..good.len() {
            let _may_be_right = check("cut.yaml", &good[..cut]);
            let _may_be_right = check("gap.yaml", &format!("{}{}", &good[..cut], &good[(cut + 7).min(good.len())..]));
        }
    }
    let deep = format!("workflow: a\nsteps:\n  - name: a\n    set: {}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(!said("deep.yaml", &deep).is_empty());
    let bomb = (0..30).fold("a: &a0 [x, x]\n".to_string(), |text, n| format!("{text}b{n}: &a{} [*a{n}, *a{n}]\n", n + 1));
    assert!(!said("bomb.yaml", &bomb).is_empty());
}

#[test]
fn problems_can_be_given_to_programs() {
    let problems = check("a.yaml", "workflow: a\nsteps:\n  - { name: b, sett: 1 }\n").unwrap_err();
    let json = serde_json::to_value(&problems).unwrap();
    assert_eq!(json[0]["line"], 3);
    assert_eq!((&json[1]["message"], &json[1]["help"]), (&"step `b` has no field `sett`".into(), &"did you mean `set`?".into()));
}
