use crate::steadfast::steadfast;

/// Every command, found by reading the help.
pub(crate) fn commands(path: &[&str]) -> Vec<Vec<String>> {
    let mut args = path.to_vec();
    args.push("--help");
    let help = steadfast(std::env::temp_dir().as_path(), &args).ends_with(0).out;
    let names = help
        .split("Commands:\n")
        .nth(1)
        .map(|rest| rest.split("\n\n").next().unwrap_or_default())
        .unwrap_or_default();
    let names = names.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let mut all = vec![path.iter().map(ToString::to_string).collect()];
    for name in names {
        let below: Vec<&str> = path.iter().copied().chain([name]).collect();
        all.extend(commands(&below));
    }
    all
}

#[test]
fn every_command_has_help_with_an_example_of_itself() {
    let all = commands(&[]);
    let known: Vec<String> = all.iter().map(|path| path.join(" ")).collect();
    let promised = [
        "serve",
        "run start",
        "run list",
        "run show",
        "run events",
        "run why",
        "run pause",
        "run resume",
        "run cancel",
        "run retry",
        "run signal",
        "run replay",
        "plan apply",
        "plan list",
        "plan show",
        "plan start",
        "plan pause",
        "plan resume",
        "plan cancel",
        "plan rollback",
        "tenant show",
        "tenant retry",
        "tenant pause",
        "tenant resume",
        "tenant cancel",
        "tenant rollback",
        "lock list",
        "lock break",
        "key put",
        "key get",
        "key renew",
        "key delete",
        "key list",
        "key watch",
        "key callbacks",
        "letter list",
        "letter show",
        "letter redrive",
        "letter drop",
        "cluster show",
        "cluster drain",
        "check",
        "config",
        "doctor",
        "completions",
    ];
    for command in promised {
        assert!(known.iter().any(|name| name == command), "{command} is not in the help: {known:?}");
    }
    for path in &all {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let example = format!("  steadfast {}", path.join(" "));
        steadfast(std::env::temp_dir().as_path(), &args)
            .ends_with(0)
            .prints(&["Examples:\n", example.trim_end(), "--json"]);
    }
}

#[test]
fn help_fits_a_terminal() {
    for path in commands(&[]) {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = steadfast(std::env::temp_dir().as_path(), &args).out;
        for line in help.lines() {
            assert!(line.chars().count() <= 120, "{path:?}: {line}");
        }
    }
}

#[test]
fn wrong_use_is_told_and_ends_with_2() {
    let dir = tempfile::tempdir().unwrap();
    for (args, said) in [
        (vec!["rnu"], "rnu"),
        (vec!["run", "show"], "<RUN>"),
        (vec!["run", "show", "a b"], "is not allowed"),
        (vec!["run", "start", "x", "--deadline", "5 minutes"], "is no duration"),
        (vec!["run", "start", "x", "--wait=soon"], "is no duration"),
        (vec!["run", "start", "x", "--input", "{a:1}"], "is no JSON"),
        (vec!["run", "start", "x", "--input", "@nowhere.json"], "cannot read nowhere.json"),
        (vec!["run", "list", "--status", "DONE"], "DONE"),
        (vec!["run", "list", "--limit", "0"], "0"),
        (vec!["run", "retry", "x", "--output", "charge"], "STEP=JSON"),
        (vec!["plan", "show", "a b"], "is not allowed"),
        (vec!["plan", "list", "--status", "DONE"], "DONE"),
        (vec!["tenant", "retry"], "<TENANT>"),
        (vec!["lock", "break", "acme"], "--reason"),
        (vec!["cluster", "drain"], "<INSTANCE>"),
        (vec!["cluster", "drain", " "], "is empty"),
        (vec!["cluster", "drain", "a", "--wait", "--no-wait"], "--no-wait"),
        (vec!["cluster", "drain", "a", "--undo", "--timeout", "1s"], "--undo"),
        (vec!["cluster", "drain", "a", "--timeout", "soon"], "is no duration"),
        (vec!["serve", "--listen", "here"], "--listen"),
        (vec!["serve", "--log", "inf"], "did you mean info?"),
        (vec!["serve", "--definitions", "nowhere"], "there is no folder nowhere (--definitions)"),
    ] {
        steadfast(dir.path(), &args).ends_with(2).says(&[said]);
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        steadfast(std::env::temp_dir().as_path(), &["completions", shell])
            .ends_with(0)
            .prints(&["redrive", "token-file"]);
    }
}
