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
    if setting.secret && !text.is_empty() { MASK.into() } else { without_user(text) }
}

/// A text in which no address tells the name and the password that stand in it.
pub(crate) fn without_user(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("://") {
        shown += &format!("{before}://");
        let address = &after[..after.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(after.len())];
        rest = match user_end(address) {
            Some(end) => {
                shown += MASK;
                &after[end..]
            }
            None => after,
        };
    }
    shown + rest
}

/// Where the user of an address ends. A password may have a `/` in it that should not be there: what stands before it is no port then.
fn user_end(address: &str) -> Option<usize> {
    let host = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
    let is_cut = || host.rsplit_once(':').is_some_and(|(_, port)| !port.chars().all(|c| c.is_ascii_digit()));
    host.rfind('@').or_else(|| address.rfind('@').filter(|_| is_cut()))
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
        Json::String(text) => without_user(text).into(),
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
    fn addresses_are_shown_without_their_users() {
        for (text, expected) in [
            ("https://u:hunter2@x.example/a?b=c@d", "https://••••••@x.example/a?b=c@d"),
            ("postgres://u:hunt/er#2@db:5432/x", "postgres://••••••@db:5432/x"),
            ("https://hunter2@x", "https://••••••@x"),
            ("a https://u:p@x, https://y and http://u:p@@z", "a https://••••••@x, https://y and http://••••••@z"),
            ("http://x.example:80/@me", "http://x.example:80/@me"),
            ("http://[::1]:7373/", "http://[::1]:7373/"),
            ("ada@x.example", "ada@x.example"),
            ("://", "://"),
        ] {
            assert_eq!(without_user(text), expected);
        }
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
