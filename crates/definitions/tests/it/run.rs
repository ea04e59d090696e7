//! The kind `run` with real processes.

use crate::support::{Shelf, ended, vars};
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::time::Duration;
use steadfast::{Class, Code, Engine, Failure};
use steadfast_definitions::Settings;

fn shelf(run: &str, step: &str, settings: Settings) -> Shelf {
    let text = format!("workflow: go\nsteps:\n  - name: it\n    run: {run}\n{step}output: \"{{{{ steps.it.output }}}}\"\n");
    Shelf::with(&[&text], settings, vars())
}

async fn go(run: &str, step: &str, input: Json) -> (Shelf, Result<Json, Failure>) {
    let shelf = shelf(run, step, Settings::default());
    let engine = shelf.engine().await;
    let run = engine.start("go", &input).id("r").await.unwrap();
    let result = ended(&run).await;
    (shelf, result)
}

const ONCE: &str = "    retry: { max_attempts: 1 }\n";

#[tokio::test]
async fn words_are_given_as_they_are_and_no_shell_reads_them() {
    let (_, result) = go("{ command: [printf, \"%s|\", \"{{ input }}\", \"$HOME\", a b] }", "", json!("x; rm -rf y")).await;
    let output = result.unwrap();
    assert_eq!(output, json!({"exitCode": 0, "stdout": "x; rm -rf y|$HOME|a b|", "stderr": "", "json": null}));
}

#[tokio::test]
async fn a_shell_reads_the_command_if_it_is_asked_for() {
    let (_, result) = go(
        "{ shell: true, command: \"echo \\\"{\\\\\\\"n\\\\\\\": $N}\\\"; echo oops >&2\", env: { N: \"{{ input.n }}\" } }",
        "",
        json!({"n": 7}),
    )
    .await;
    let output = result.unwrap();
    assert_eq!((&output["json"], &output["stderr"]), (&json!({"n": 7}), &json!("oops\n")));
}

#[tokio::test]
async fn a_command_sees_only_what_it_is_given_of_the_environment() {
    let (_, result) = go("{ command: [env], inherit: [CARGO_PKG_NAME], env: { A: \"{{ vars.shop }}\" } }", "", json!(null)).await;
    let output = result.unwrap();
    let names: Vec<_> = output["stdout"].as_str().unwrap().lines().filter_map(|line| line.split('=').next()).collect();
    for name in ["PATH", "A", "CARGO_PKG_NAME", "STEADFAST_RUN_ID", "STEADFAST_ATTEMPT", "STEADFAST_IDEMPOTENCY_KEY"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert!(!names.contains(&"CARGO_MANIFEST_DIR"), "{names:?}");
    assert!(output["stdout"].as_str().unwrap().contains("STEADFAST_IDEMPOTENCY_KEY=r/it#1/1\n"));
}

#[tokio::test]
async fn the_working_folder_is_that_of_the_definitions_unless_it_is_said() {
    let shelf = shelf("{ command: [./here/tool], cwd: . }", "", Settings::default());
    let folder = shelf.folder.path();
    fs::create_dir(folder.join("here")).unwrap();
    fs::write(folder.join("here/tool"), "#!/bin/sh\npwd; cat\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.join("here/tool"), mode).unwrap();
    let engine = shelf.engine().await;
    let output = ended(&engine.start("go", &()).await.unwrap()).await.unwrap();
    assert_eq!(Path::new(output["stdout"].as_str().unwrap().trim_end()).canonicalize().unwrap(), folder.canonicalize().unwrap());
}

#[tokio::test]
async fn stdin_is_what_the_step_says_or_nothing() {
    assert_eq!(go("{ command: [cat], stdin: \"n={{ input }}\" }", "", json!(7)).await.1.unwrap()["stdout"], json!("n=7"));
    assert_eq!(go("{ command: [cat] }", "", json!(7)).await.1.unwrap()["stdout"], json!(""));
}

#[tokio::test]
async fn exit_codes_have_the_classes_that_the_step_says() {
    let failure = async |code: i32, exit: &str| {
        let run = format!("{{ command: [sh, -c, \"echo to the log >&2; echo my words >&2; exit {code}\"]{exit} }}");
        go(&run, ONCE, json!(null)).await.1.unwrap_err()
    };
    let exit = ", exit: { permanent: [2], poison: [3], transient: [4] }";
    for (code, class) in [(2, Class::Permanent), (3, Class::Poison)] {
        assert_eq!(failure(code, exit).await.class, class, "exit code {code}");
    }
    for code in [1, 4, 75] {
        let failure = failure(code, exit).await;
        assert!(failure.exhausted().is_some(), "exit code {code} is transient: {failure:?}");
        assert!(failure.message.ends_with(&format!("the command ended with exit code {code}: to the log\nmy words")), "{failure:?}");
    }
}

#[tokio::test]
async fn a_command_that_is_not_there_is_not_tried_again() {
    let failure = go("{ command: [./no-such-tool] }", "", json!(null)).await.1.unwrap_err();
    assert_eq!((failure.class, failure.code, failure.attempts), (Class::Permanent, Code::NotFound, 1));
}

#[tokio::test]
async fn a_command_that_is_killed_may_be_tried_again() {
    let failure = go("{ command: [sh, -c, \"kill -9 $$\"] }", ONCE, json!(null)).await.1.unwrap_err();
    assert!(failure.exhausted().is_some() && failure.message.contains("signal 9"), "{failure:?}");
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_and_said_to_be() {
    let settings = Settings { output_bytes_max: 1000, ..Settings::default() };
    let shelf = shelf(
        "{ command: [sh, -c, \"head -c 5000000 /dev/zero | tr '\\\\0' x; head -c 3000 /dev/zero | tr '\\\\0' y >&2\"] }",
        "",
        settings,
    );
    let engine = shelf.engine().await;
    let output = ended(&engine.start("go", &()).await.unwrap()).await.unwrap();
    assert_eq!(output["stdout"].as_str().map(str::len), Some(1000));
    assert_eq!(output["dropped"], json!({"stdout": 4_999_000, "stderr": 2000}));
}

#[tokio::test]
async fn the_last_words_of_a_failure_are_bounded() {
    let failure = go("{ command: [sh, -c, \"head -c 9000 /dev/zero | tr '\\\\0' y >&2; echo the end >&2; exit 1\"] }", ONCE, json!(null))
        .await
        .1
        .unwrap_err();
    assert!(failure.message.ends_with("yyythe end") && failure.message.len() < 700, "{}", failure.message.len());
}

/// A command that starts a child of its own, writes both numbers down, and sleeps.
const FAMILY: &str = "{ command: [sh, -c, \"sleep 1000 & echo $! > child; echo $$ > parent.tmp; mv parent.tmp parent; wait\"] }";

/// Waits until the family is there, and gives the numbers of both.
async fn family(folder: &Path) -> [String; 2] {
    until(|| folder.join("parent").exists()).await;
    ["parent", "child"].map(|name| fs::read_to_string(folder.join(name)).unwrap().trim().to_string())
}

/// Whether a process is there and has not ended.
fn lives(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

async fn until(fact: impl Fn() -> bool) {
    for _ in 0..2000 {
        if fact() {
            return;
        }
        let _over = tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
    }
    panic!("it did not come to that");
}

#[tokio::test]
async fn a_timeout_ends_the_command_with_its_children() {
    let shelf = shelf(FAMILY, "    timeout: 300ms\n    retry: { max_attempts: 1 }\n", Settings::default());
    let engine = shelf.engine().await;
    let run = engine.start("go", &()).await.unwrap();
    let family = family(shelf.folder.path()).await;
    let failure = ended(&run).await.unwrap_err();
    assert!(failure.code == Code::DeadlineExceeded && failure.message.contains("took longer than 300ms"), "{failure:?}");
    assert!(!lives(&family[0]), "it is gone before the step has failed");
    until(|| !lives(&family[1])).await;
}

#[tokio::test]
async fn a_command_that_does_not_listen_is_ended_all_the_same() {
    let (_, result) = go(
        "{ command: [sh, -c, \"trap '' TERM; while :; do sleep 0.1; done\"] }",
        "    timeout: 100ms\n    retry: { max_attempts: 1 }\n",
        json!(null),
    )
    .await;
    assert_eq!(result.unwrap_err().code, Code::DeadlineExceeded);
}

#[tokio::test]
async fn cancelling_the_run_ends_the_command_with_its_children() {
    let shelf = shelf(FAMILY, "", Settings::default());
    let engine = shelf.engine().await;
    let run = engine.start("go", &()).await.unwrap();
    let family = family(shelf.folder.path()).await;
    run.cancel().await.unwrap();
    assert!(run.result::<Json>().await.is_err());
    until(|| !family.iter().any(|process| lives(process))).await;
}

#[tokio::test]
async fn what_a_command_leaves_running_does_not_hold_the_step_up() {
    let shelf = shelf("{ command: [sh, -c, \"sleep 1000 & echo $! > child; echo done\"] }", "", Settings::default());
    let engine = shelf.engine().await;
    let output = ended(&engine.start("go", &()).await.unwrap()).await.unwrap();
    assert_eq!(output["stdout"], json!("done\n"));
    let child = fs::read_to_string(shelf.folder.path().join("child")).unwrap().trim().to_string();
    until(|| !lives(&child)).await;
}

#[tokio::test]
async fn a_command_is_begun_again_by_the_next_process_under_the_same_key() {
    let shelf = shelf(
        "{ command: [sh, -c, \"echo $STEADFAST_IDEMPOTENCY_KEY $STEADFAST_ATTEMPT >> log; test -f go || sleep 1000\"] }",
        "",
        Settings::default(),
    );
    let store = steadfast::memory::Memory::new();
    let on = |store| {
        shelf
            .registered()
            .into_iter()
            .fold(Engine::on(store), |engine, (name, registered)| engine.register_code(&name, registered))
    };
    let first = on(store.clone()).start().await.unwrap();
    first.start("go", &()).id("r").await.unwrap();
    let log = shelf.folder.path().join("log");
    until(|| fs::read_to_string(&log).is_ok_and(|log| log.lines().count() == 1)).await;
    store.crash();
    drop(first);
    fs::write(shelf.folder.path().join("go"), "").unwrap();
    let second = on(store.reopen()).start().await.unwrap();
    assert!(second.run("r").unwrap().result::<Json>().await.is_ok());
    assert_eq!(fs::read_to_string(&log).unwrap(), "r/it#1/1 1\nr/it#1/1 1\n");
}

#[tokio::test]
async fn a_command_that_is_not_repeatable_is_in_doubt_after_its_timeout() {
    let shelf = shelf("{ command: [sleep, \"1000\"] }", "    timeout: 100ms\n    not_repeatable: true\n", Settings::default());
    let engine = shelf.engine().await;
    let run = engine.start("go", &()).id("r").await.unwrap();
    let in_doubt = async || run.view().await.unwrap().waits.iter().any(|wait| wait.reason() == "IN_DOUBT");
    for _ in 0..2000 {
        if in_doubt().await {
            return;
        }
        let _over = tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
    }
    panic!("{}", run.why().await.unwrap());
}
