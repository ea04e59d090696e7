//! `steadfast lock`: who has which tenant, and how a person takes a lock away.

use crate::planned::{PAIR, define, serve, touch};

#[test]
fn locks_are_listed_with_their_holders_and_broken_for_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    define(dir.path(), "pair", PAIR);
    let served = serve(dir.path());
    served.call(&["lock", "list"]).ends_with(0).says(&["no locks"]);
    let apply = |id: &str, more: &[&str]| {
        let args = [&["plan", "apply", "pair", "--id", id, "--tenant", "acme", "--var", "to=b"][..], more].concat();
        served.call(&args)
    };
    apply("one", &["--start"]).ends_with(0);
    served.until_task("acme", "RUNNING");
    served
        .call(&["lock", "list"])
        .ends_with(0)
        .prints(&["TENANT", "FENCE", "acme", "one  ", "one/acme", "in 2 h"]);
    let listed = served.call(&["lock", "list", "--json"]).ends_with(0).json();
    assert_eq!(listed["items"][0]["holder"], "one:one/acme");
    apply("two", &[]).ends_with(1).says(&["acme", "one"]);

    served.call(&["lock", "break", "acme"]).ends_with(2).says(&["--reason"]);
    served.call(&["lock", "break", "acme", "--reason", " "]).ends_with(2).says(&["say why"]);
    served
        .call(&["lock", "break", "acme", "--reason", "the machine is gone"])
        .ends_with(0)
        .says(&["the lock of acme is broken", "steadfast tenant show acme"]);
    served.until_task("acme", "INTERRUPTED");
    served.call(&["lock", "break", "acme", "--reason", "again"]).ends_with(1).says(&["SF0"]);
    touch(dir.path(), "acme.go");
    served.call(&["tenant", "retry", "acme"]).ends_with(0);
    served.until_task("acme", "COMPLETED");
}
