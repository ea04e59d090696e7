//! The configuration for people: a table, JSON, a commented file, and the reference of the manual.

use super::settings::{self, Setting};
use super::{Config, Kind, Set};
use crate::output::table::{Column, Table};
use serde_json::{Value as Json, json};

/// What is shown instead of a secret.
const MASK: &str = "••••••";

/// A variable is masked if its name says that it is a secret.
const SECRET_WORDS: [&str; 6] = ["secret", "password", "passwd", "token", "key", "credential"];

/// Everything with its value, its origin and its meaning.
pub(crate) fn as_table(config: &Config) -> Table {
    let mut table = Table::new(vec![Column::whole("KEY"), Column::wrap("VALUE"), Column::wrap("FROM"), Column::wrap("MEANING")]);
    for setting in settings::ALL {
        let set = config.get(setting);
        let value = shown(setting, &setting.kind.show(&set.value));
        table.row(vec![setting.key.into(), value.into(), set.origin.to_string().into(), setting.help.into()]);
    }
    for (name, set) in &config.vars {
        table.row(vec![
            format!("vars.{name}").into(),
            var(name, set).into(),
            set.origin.to_string().into(),
            format!("what templates see as vars.{name}").into(),
        ]);
    }
    table
}

/// The same for programs.
pub(crate) fn as_json(config: &Config) -> Json {
    let mut items: Vec<Json> = settings::ALL
        .iter()
        .map(|setting| {
            let set = config.get(setting);
            let text = setting.kind.show(&set.value);
            let value = if text.is_empty() { Json::Null } else { shown(setting, &text).into() };
            json!({"key": setting.key, "value": value, "from": set.origin.to_string(), "env": setting.env, "help": setting.help})
        })
        .collect();
    items.extend(
        config
            .vars
            .iter()
            .map(|(name, set)| json!({"key": format!("vars.{name}"), "value": masked(name, &set.value), "from": set.origin.to_string()})),
    );
    json!({"file": config.file, "items": items})
}

fn shown(setting: &Setting, text: &str) -> String {
    if setting.secret && !text.is_empty() { MASK.into() } else { text.into() }
}

fn var(name: &str, set: &Set<Json>) -> String {
    match masked(name, &set.value) {
        Json::String(text) => text,
        other => other.to_string(),
    }
}

/// A variable as it may be shown, and everything inside it.
fn masked(name: &str, value: &Json) -> Json {
    let name = name.to_lowercase();
    match value {
        _ if SECRET_WORDS.iter().any(|word| name.contains(word)) => MASK.into(),
        Json::Object(inner) => inner
            .iter()
            .map(|(name, value)| (name.clone(), masked(name, value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Json::Array(parts) => parts.iter().map(|part| masked("", part)).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// A configuration file with every setting, commented out at its default.
pub(crate) fn template() -> String {
    let mut text = String::from(
        "# Every setting of Steadfast at its default. The environment (STEADFAST_…) wins over this file, flags win over both.\n\
         # `steadfast config` shows what is in effect and where it came from.\n",
    );
    let mut section = "";
    for setting in settings::ALL {
        let (of, name) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
        if of != section {
            text += &format!("\n[{of}]\n");
            section = of;
        }
        text += &format!("\n# {}\n# {name} = {}\n", capitalised(setting.help), toml_value(setting));
    }
    text + "\n# What templates see as `vars`.\n[vars]\n# payments = \"http://127.0.0.1:9000\"\n"
}

fn toml_value(setting: &Setting) -> String {
    match setting.kind {
        Kind::Count => setting.default.into(),
        Kind::List => "[]".into(),
        _ => format!("{:?}", setting.default),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of settings as it stands in the manual.
    fn reference() -> String {
        let mut text = String::from("| key | environment | flag | default | meaning |\n| --- | --- | --- | --- | --- |\n");
        for setting in settings::ALL {
            let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
            let flag = code(setting.flag.unwrap_or_default());
            text += &format!("| `{}` | `{}` | {flag} | {} | {} |\n", setting.key, setting.env, code(setting.default), setting.help);
        }
        text + "| `vars.NAME` | `STEADFAST_VARS_NAME` | `--var` |  | what templates see as `vars.NAME`; a name from the environment is in lower case |\n"
    }

    #[test]
    fn the_manual_has_every_setting() {
        let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/command-line.md");
        let text = std::fs::read_to_string(manual).unwrap();
        assert!(text.contains(&reference()), "docs/guide/command-line.md lacks this table, or has another one:\n\n{}", reference());
    }

    #[test]
    fn secrets_inside_of_variables_are_masked() {
        let value = serde_json::json!({"host": "db", "users": [{"Password": "hunter2"}]});
        assert_eq!(masked("db", &value), serde_json::json!({"host": "db", "users": [{"Password": MASK}]}));
        assert_eq!(masked("API_KEY", &"x".into()), MASK);
    }

    #[test]
    fn the_template_is_a_file_that_can_be_used() {
        let uncommented: String = template()
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| rest.contains(" = ")).unwrap_or(line))
            .map(|line| format!("{line}\n"))
            .collect();
        for text in [template(), uncommented] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("steadfast.toml");
            std::fs::write(&file, &text).unwrap();
            Config::load(&crate::config::Given { file: Some(file), ..Default::default() }).unwrap();
        }
    }
}
