use crate::served::{Served, define};
use crate::steadfast::{steadfast, until};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;

const TOKEN: &str = "q8Zt0m3n5Yw1vK7xPfR2sLhJdC4bGaUeT6iOoNyQwEk=";

#[test]
fn a_server_says_what_runs_where_and_stops_in_order() {
    let mut served = Served::new();
    let log = served.log();
    for part in ["is ready", "address      http://127.0.0.1:", "data         data", "definitions (5 in use)", "Ctrl-C"] {
        until(part, || served.log().contains(part).then_some(()));
    }
    assert!(!log.contains("ERROR"), "{log}");
    served.call(&["run", "start", "ask", "--id", "q"]).ends_with(0);
    served.tell(Signal::TERM);
    assert_eq!(served.ended().code(), Some(0));
    until("it says so", || served.log().contains("everything is kept").then_some(()));
    let again = Served::start(&served.dir, &["--listen", "127.0.0.1:0"]);
    again.until_status("q", "WAITING");
}

#[test]
fn a_second_signal_stops_at_once() {
    let dir = tempfile::tempdir().unwrap();
    define(dir.path());
    let long = "workflow: long\nsteps:\n  - { name: sleep, run: { command: [sh, -c, \"touch begun; exec sleep 600\"] } }\n";
    std::fs::write(dir.path().join("definitions/long.yaml"), long).unwrap();
    let mut served = Served::start(dir.path(), &["--listen", "127.0.0.1:0", "--set", "engine.shutdown_grace=10m"]);
    served.call(&["run", "start", "long", "--id", "l"]).ends_with(0);
    until("the attempt is in flight", || dir.path().join("definitions/begun").exists().then_some(()));
    served.tell(Signal::INT);
    until("it is stopping", || served.log().contains("stopping").then_some(()));
    served.tell(Signal::INT);
    assert_eq!(served.ended().code(), Some(130));
}

#[test]
fn a_data_folder_belongs_to_one_process() {
    let served = Served::new();
    steadfast(&served.dir, &["serve", "--listen", "127.0.0.1:0"])
        .ends_with(1)
        .says(&["in use", "SF0302", "docs/errors/SF0302.md"]);
    let listen = served.url.strip_prefix("http://").unwrap().to_owned();
    steadfast(&served.dir, &["serve", "--listen", &listen, "--data", "other"])
        .ends_with(1)
        .says(&["cannot listen on"]);
}

#[test]
fn others_are_let_in_with_a_token_only() {
    let dir = tempfile::tempdir().unwrap();
    define(dir.path());
    steadfast(dir.path(), &["serve", "--listen", "0.0.0.0:0"]).ends_with(1).says(&["--token-file"]);
    let file = dir.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let served = Served::start(dir.path(), &["--listen", "127.0.0.1:0", "--token-file", "token"]);
    served.call(&["run", "list"]).ends_with(1).says(&["STEADFAST_TOKEN", "--token-file"]);
    served.call(&["run", "list", "--token-file", "token"]).ends_with(0);
    let by_env = served.client(&["run", "list"]).env("STEADFAST_TOKEN", TOKEN).output().unwrap();
    assert_eq!(by_env.status.code(), Some(0));
    let wrong = served.client(&["run", "list"]).env("STEADFAST_TOKEN", "wrong").output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    let flag_wins = served
        .client(&["run", "list", "--token-file", "token"])
        .env("STEADFAST_TOKEN", "wrong")
        .output()
        .unwrap();
    assert_eq!(flag_wins.status.code(), Some(0));
    assert!(!served.log().contains(TOKEN));
}

#[test]
fn a_changed_definition_is_a_new_version_and_a_broken_one_is_told() {
    let served = Served::new();
    let file = served.dir.join("definitions/greet.yaml");
    let greet = || served.call(&["run", "start", "greet", "--input", r#"{"name":"Ada"}"#, "--wait"]).out;
    assert!(greet().contains("Hello, Ada"));
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap().replace("Hello", "Good day")).unwrap();
    served.tell(Signal::HUP);
    until("it greets anew", || greet().contains("Good day, Ada").then_some(()));
    std::fs::write(&file, "workflow: greet\nsteps:\n  - name: say\n    sett: 1\n").unwrap();
    until("it tells the place", || served.log().contains("greet.yaml:4:5").then_some(())); // nobody has told it to look
    assert!(greet().contains("Good day, Ada"), "what was in use stays in use");
    std::fs::write(served.dir.join("definitions/new.yaml"), "workflow: new\nsteps:\n  - { name: one, set: 1 }\noutput: 1\n").unwrap();
    until("there is a new one", || (served.call(&["run", "start", "new", "--wait"]).out == "1\n").then_some(()));
}

#[test]
fn logs_can_be_json_without_a_line_that_is_not() {
    let dir = tempfile::tempdir().unwrap();
    define(dir.path());
    let args = ["--listen", "127.0.0.1:0", "--log-format", "json", "--log", "debug", "--var", "api_key=hunter2hunter2"];
    let mut served = Served::start(dir.path(), &args);
    served
        .call(&["run", "start", "greet", "--input", r#"{"name":"a-secret-payload"}"#, "--wait"])
        .ends_with(0);
    served.tell(Signal::TERM);
    assert_eq!(served.ended().code(), Some(0));
    until("all is logged", || served.log().contains("everything is kept").then_some(()));
    for line in served.log().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["level"].is_string(), "{line}");
    }
    assert!(!served.log().contains("a-secret-payload") && !served.log().contains("hunter2"), "{}", served.log());
}

#[test]
fn variables_reach_templates() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("definitions")).unwrap();
    let text = "workflow: where\nsteps:\n  - { name: say, set: \"{{ vars.place }}\" }\noutput: \"{{ steps.say.output }}\"\n";
    std::fs::write(dir.path().join("definitions/where.yaml"), text).unwrap();
    let served = Served::start(dir.path(), &["--listen", "127.0.0.1:0", "--var", "place=here"]);
    assert_eq!(served.call(&["run", "start", "where", "--wait"]).ends_with(0).out, "\"here\"\n");
}
