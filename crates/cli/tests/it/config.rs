use crate::steadfast::{Called, command, steadfast};

/// The entry of a key in `config --json`.
fn entry(called: &Called, key: &str) -> (String, String) {
    let json = called.json();
    let items = json["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["key"] == key).unwrap();
    (item["value"].as_str().unwrap_or_default().into(), item["from"].as_str().unwrap().into())
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("steadfast.toml"), "listen = \"127.0.0.1:1\"\ndata = \"d\"\n\n[limits]\nin_flight_max = 5\n").unwrap();
    let mut call = command(dir.path(), &["config", "--json", "--listen", "127.0.0.1:3", "--set", "limits.wait_max=7s"]);
    let called = Called::of(
        &call
            .env("STEADFAST_LISTEN", "127.0.0.1:2")
            .env("STEADFAST_LIMITS_IN_FLIGHT_MAX", "6")
            .output()
            .unwrap(),
    )
    .ends_with(0);
    let expected = [
        ("listen", "127.0.0.1:3", "--listen"),
        ("limits.in_flight_max", "6", "STEADFAST_LIMITS_IN_FLIGHT_MAX"),
        ("data", "d", "steadfast.toml:2"),
        ("limits.wait_max", "7s", "--set"),
        ("definitions", "definitions", "default"),
    ];
    for (key, value, from) in expected {
        assert_eq!(entry(&called, key), (value.into(), from.into()), "{key}");
    }
}

#[test]
fn a_file_is_found_by_flag_by_environment_or_in_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["steadfast", "env", "flag"] {
        std::fs::write(dir.path().join(format!("{name}.toml")), format!("[vars]\nfrom = \"{name}\"\n")).unwrap();
    }
    assert_eq!(entry(&steadfast(dir.path(), &["config", "--json"]), "vars.from").0, "steadfast");
    let mut by_env = command(dir.path(), &["config", "--json"]);
    assert_eq!(entry(&Called::of(&by_env.env("STEADFAST_CONFIG", "env.toml").output().unwrap()), "vars.from").0, "env");
    let mut by_flag = command(dir.path(), &["config", "--json", "--config", "flag.toml"]);
    assert_eq!(entry(&Called::of(&by_flag.env("STEADFAST_CONFIG", "env.toml").output().unwrap()), "vars.from").0, "flag");
    steadfast(dir.path(), &["config", "--config", "nowhere.toml"])
        .ends_with(2)
        .says(&["cannot read", "nowhere.toml"]);
}

#[test]
fn unknown_settings_are_errors_with_place_and_suggestion() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("steadfast.toml"), "\nlisten = \"127.0.0.1:1\"\n[limits]\nin_flight = 5\n").unwrap();
    let mut call = command(dir.path(), &["config"]);
    let called = Called::of(&call.env("STEADFAST_LISTN", "x").output().unwrap());
    called.ends_with(2).says(&[
        "steadfast.toml:4: there is no setting \"limits.in_flight\"; did you mean limits.in_flight_max?",
        "there is no setting STEADFAST_LISTN; did you mean STEADFAST_LISTEN?",
    ]);
}

#[test]
fn secrets_are_masked_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    for args in [vec!["config"], vec!["config", "--json"]] {
        let mut call = command(dir.path(), &args);
        call.env("STEADFAST_TOKEN", "hunter2hunter2")
            .env("STEADFAST_SERVER", "https://ada:hunter2@example.com")
            .env("STEADFAST_VARS_PAYMENTS", "https://ada:hunter2@payments.example")
            .env("STEADFAST_VARS_API_KEY", "hunter2hunter2")
            .env("STEADFAST_VARS_REGION", "eu");
        let called = Called::of(&call.output().unwrap()).ends_with(0).prints(&[
            "••••••",
            "STEADFAST_VARS_API_KEY",
            "eu",
            "@example.com",
            "@payments.example",
        ]);
        assert!(!called.out.contains("hunter2") && !called.err.contains("hunter2"), "{called:?}");
    }
}

#[test]
fn the_template_can_be_used_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let template = steadfast(dir.path(), &["config", "--template"]).ends_with(0).out;
    assert_eq!(template, steadfast(dir.path(), &["config", "--example"]).out);
    std::fs::write(dir.path().join("steadfast.toml"), &template).unwrap();
    steadfast(dir.path(), &["config"]).ends_with(0).prints(&["limits.body_bytes_max", "default"]);
}
