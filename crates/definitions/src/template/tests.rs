//! What templates give, and what is said when they cannot.

use super::engine::value;
use super::*;
use serde_json::json;
use steadfast_kernel::Class;

fn scope() -> Scope {
    let input = json!({"n": 7, "text": "a", "list": [1, {"x": null}], "none": null, "truth": true, "big": u64::MAX, "secret": "hunter2"});
    Scope::default().with("input", value(&input))
}

fn render(text: &str) -> Result<Json, Failure> {
    Template::of(text).render(&scope(), "charge", "http.url")
}

#[test]
fn a_single_expression_keeps_its_type() {
    for (text, expected) in [
        ("{{ input.n }}", json!(7)),
        ("  {{- input.n -}}\n", json!(7)),
        ("{{ input.list }}", json!([1, {"x": null}])),
        ("{{ input.none }}", json!(null)),
        ("{{ input.truth and input.n == 7 }}", json!(true)),
        ("{{ input.big }}", json!(u64::MAX)),
        ("{{ input.missing | default('d') }}", json!("d")),
        ("{{ input.missing is defined }}", json!(false)),
        ("{{ '}} {{' }}", json!("}} {{")),
    ] {
        assert_eq!(render(text), Ok(expected), "{text}");
    }
}

#[test]
fn other_templates_give_text_with_values_as_json() {
    assert_eq!(render("n={{ input.n }} t={{ input.text }}"), Ok(json!("n=7 t=a")));
    assert_eq!(render("{{ input.list }}{{ input.none }}{{ input.truth }}"), Ok(json!("[1,{\"x\":null}]nulltrue")));
    assert_eq!(render("{% for i in [1, 2] %}{{ i }};{% endfor %}"), Ok(json!("1;2;")));
    assert_eq!(render("plain {text}"), Ok(json!("plain {text}")));
}

#[test]
fn maps_and_lists_are_rendered_item_by_item() {
    let of = |text: &str| Template::of(text);
    let template =
        Template::Map(vec![("a".into(), Template::List(vec![of("{{ input.n }}"), of("x")])), ("b".into(), Template::Literal(json!(1)))]);
    assert_eq!(template.render(&scope(), "s", "set"), Ok(json!({"a": [7, "x"], "b": 1})));
}

#[test]
fn what_is_not_there_is_a_permanent_failure_that_names_step_and_field() {
    for text in ["{{ input.missing }}", "x {{ input.missing }}", "{{ input.missing.deeper }}", "{% if input.missing %}x{% endif %}"] {
        let failure = render(text).unwrap_err();
        assert_eq!((failure.class, failure.code), (Class::Permanent, Code::InvalidArgument));
        assert_eq!(failure.message, "step charge, http.url: `input.missing` is undefined", "{text}");
    }
    let nested = Template::Map(vec![("a".into(), Template::List(vec![Template::of("{{ input.missing }}")]))]);
    assert_eq!(nested.render(&scope(), "s", "set").unwrap_err().message, "step s, set.a[0]: `input.missing` is undefined");
}

#[test]
fn failures_never_show_values() {
    for text in [
        "{{ input.secret | int }}",
        "{{ input.secret + 1 }}",
        "{{ input.secret.foo() }}",
        "{{ input[input.secret] }}!",
        "{{ input[input.secret].x }}",
        "{{ input.secret | round }}",
        "{{ {}[input.secret].x }}",
    ] {
        let failure = render(text).unwrap_err();
        assert!(!format!("{failure:?}").contains("hunter2"), "{text}: {failure:?}");
    }
}

#[test]
fn a_template_that_takes_too_long_is_stopped() {
    let failure = render("{% for i in range(90000) %}{% for j in range(90000) %}x{% endfor %}{% endfor %}").unwrap_err();
    assert_eq!(failure.message, "step charge, http.url: it takes more work than a template may");
}

#[test]
fn templates_reach_no_files_and_no_insides() {
    for text in ["{% include 'Cargo.toml' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{{ debug() }}"] {
        assert!(render(text).is_err(), "{text}");
    }
}

#[test]
fn text_is_what_text_fields_get() {
    let text = |source: &str| Template::of(source).text(&scope(), "s", "f");
    assert_eq!(
        (text("{{ input.n }}"), text("{{ input.truth }}"), text("{{ input.text }}")),
        (Ok("7".into()), Ok("true".into()), Ok("a".into()))
    );
    assert_eq!(text("{{ input.none }}").unwrap_err().message, "step s, f: it gave nothing where a text is needed");
    assert!(text("{{ input.list }}").unwrap_err().message.contains("tojson"));
}

#[test]
fn a_template_without_names_is_constant() {
    assert_eq!(Template::of("{{ 1 == 2 }}").constant(), Some(json!(false)));
    assert_eq!(Template::of("{{ input.n }}").constant(), None);
}

#[test]
fn names_that_a_template_makes_itself_are_not_asked_for() {
    for text in [
        "{% for i in input.list %}{{ loop.index }}{{ i }}{% endfor %}",
        "{% set x = input.n %}{{ x }}",
        "{% with y = 1 %}{{ y }}{% endwith %}{{ input.list | map(attribute='x') | list }}",
        "{{ range(input.n) | join(', ') }}",
        "{{ dict(a=input.n) }}",
    ] {
        let names = Template::of(text).names().unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(names.roots.into_iter().collect::<Vec<_>>(), ["input"], "{text}");
    }
}

/// What a run was given must not make the server allocate without end: it would be given the same again at every restart.
#[test]
fn a_text_does_not_grow_without_end() {
    let input = json!({"text": "$".repeat(400_000), "name": "x".repeat(1_900_000), "items": vec!["y"; 1000]});
    let scope = Scope::default().with("input", value(&input));
    for text in [
        "{{ input.text | replace('$', input.name) | length }}",
        "{{ input.items | join(input.name) | length }}",
        "{% for i in range(20000) %}{{ input.name }}{% endfor %}",
        "{{ 'a' | indent(1000000000, true) }}",
    ] {
        let failure = Template::of(text).render(&scope, "s", "set").unwrap_err();
        assert_eq!(failure.class, Class::Permanent, "{text}: {failure:?}");
        assert!(failure.message.contains("4 MiB") || failure.message.contains("indent"), "{text}: {failure:?}");
    }
    let fine = Template::of("{{ input.items | join('-') | replace('y', 'zz') | length }}").render(&scope, "s", "set");
    assert_eq!(fine, Ok(json!(2999)));
}
