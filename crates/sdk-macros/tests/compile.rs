//! What `#[workflow]` refuses, and what it says then. A message that has changed on purpose is written anew by
//! `TRYBUILD=overwrite cargo test -p steadfast-macros --test compile`; read what has become of it.

#[test]
fn every_mistake_is_answered_with_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
