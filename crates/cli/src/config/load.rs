//! From the layers to the effective configuration. All that is wrong is told at once.

use super::file::{self, Found};
use super::settings::{self, Setting};
use super::{Config, Kind, Origin, Set, Value};
use crate::error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Read if nobody names another file.
const DEFAULT_FILE: &str = "steadfast.toml";

/// What was said on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// The configuration file.
    pub(crate) file: Option<PathBuf>,
    /// Settings by flags of their own.
    pub(crate) flags: Vec<(&'static Setting, Option<String>)>,
    /// `--set KEY=VALUE`.
    pub(crate) set: Vec<String>,
    /// `--var NAME=VALUE`.
    pub(crate) vars: Vec<String>,
}

impl Config {
    /// The effective configuration of this process.
    ///
    /// # Errors
    /// Everything that is wrong with it, a line each, with where it stands.
    pub(crate) fn load(given: &Given) -> Result<Config, Error> {
        let env = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
        Config::from_layers(given, env.collect())
    }

    fn from_layers(given: &Given, env: BTreeMap<String, String>) -> Result<Config, Error> {
        let mut loading = Loading::new();
        loading.read_file(given, &env)?;
        loading.read_env(&env);
        loading.read_flags(given);
        loading.finish()
    }
}

struct Loading {
    config: Config,
    wrong: Vec<String>,
}

impl Loading {
    fn new() -> Self {
        let defaults = settings::ALL.iter().map(|setting| {
            let value = setting.kind.parse(setting.default).unwrap_or(Value::Unset);
            (setting.key, Set { value, origin: Origin::Default })
        });
        Loading { config: Config { file: None, values: defaults.collect(), vars: BTreeMap::new() }, wrong: Vec::new() }
    }

    fn read_file(&mut self, given: &Given, env: &BTreeMap<String, String>) -> Result<(), Error> {
        let named = given
            .file
            .clone()
            .or_else(|| env.get(settings::CONFIG_ENV).filter(|path| !path.is_empty()).map(PathBuf::from));
        let path = match named {
            Some(path) => path,
            None if Path::new(DEFAULT_FILE).is_file() => DEFAULT_FILE.into(),
            None => return Ok(()),
        };
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Error::Usage(format!("cannot read the configuration file {}: {error}", path.display())))?;
        match file::parse(&path, &text) {
            Ok(found) => found.into_iter().for_each(|found| self.take_from_file(&path, found)),
            Err(why) => self.wrong.push(why),
        }
        self.config.file = Some(path);
        Ok(())
    }

    fn take_from_file(&mut self, path: &Path, found: Found) {
        let origin = Origin::File(path.into(), found.line);
        if let Some(name) = found.key.strip_prefix("vars.") {
            self.config.vars.insert(name.into(), Set { value: found.value, origin });
            return;
        }
        let Some(setting) = settings::of_key(&found.key) else {
            let meant = meant(&found.key, settings::ALL.iter().map(|setting| setting.key));
            self.wrong.push(format!("{origin}: there is no setting {:?}{meant}", found.key));
            return;
        };
        match from_toml(setting, found.value) {
            Ok(value) => self.put(setting, beside(path, setting, value), origin),
            Err(why) => self.wrong.push(format!("{origin}: {}: {why}", setting.key)),
        }
    }

    fn read_env(&mut self, env: &BTreeMap<String, String>) {
        for (name, text) in env.iter().filter(|(name, _)| name.starts_with("STEADFAST_")) {
            let origin = Origin::Env(name.clone());
            if let Some(setting) = settings::of_env(name) {
                self.take_text(setting, text, origin);
            } else if let Some(var) = name.strip_prefix(settings::VARS_ENV).filter(|var| !var.is_empty()) {
                self.config.vars.insert(var.to_lowercase(), Set { value: text.as_str().into(), origin });
            } else if name != settings::CONFIG_ENV && !of_another(name) {
                let meant = meant(name, settings::ALL.iter().map(|setting| setting.env));
                self.wrong.push(format!("environment: there is no setting {name}{meant}"));
            }
        }
    }

    fn read_flags(&mut self, given: &Given) {
        for (setting, text) in &given.flags {
            if let (Some(text), Some(flag)) = (text, setting.flag) {
                self.take_text(setting, text, Origin::Flag(flag));
            }
        }
        for text in &given.set {
            self.take_set(text);
        }
        for text in &given.vars {
            match text.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    self.config.vars.insert(name.into(), Set { value: value.into(), origin: Origin::Flag("--var") });
                }
                _ => self.wrong.push(format!("--var {text}: write it as NAME=VALUE")),
            }
        }
    }

    fn take_set(&mut self, text: &str) {
        let Some((key, value)) = text.split_once('=') else {
            self.wrong.push(format!("--set {text}: write it as KEY=VALUE, like limits.in_flight_max=100"));
            return;
        };
        match settings::of_key(key) {
            Some(setting) => self.take_text(setting, value, Origin::Flag("--set")),
            None => {
                let meant = meant(key, settings::ALL.iter().map(|setting| setting.key));
                self.wrong.push(format!("--set: there is no setting {key:?}{meant}"));
            }
        }
    }

    fn take_text(&mut self, setting: &'static Setting, text: &str, origin: Origin) {
        match setting.kind.parse(text) {
            Ok(value) => self.put(setting, value, origin),
            Err(why) => self.wrong.push(format!("{origin}: {why}")),
        }
    }

    fn put(&mut self, setting: &'static Setting, value: Value, origin: Origin) {
        self.config.values.insert(setting.key, Set { value, origin });
    }

    fn finish(mut self) -> Result<Config, Error> {
        self.wrong.extend(super::redis::wrong(&self.config));
        self.wrong.extend(super::postgres::wrong(&self.config));
        if self.wrong.is_empty() {
            return Ok(self.config);
        }
        let lines: Vec<String> = self.wrong.iter().map(|why| format!("\n  {why}")).collect();
        let all = "`steadfast config --template` shows every setting";
        Err(Error::Usage(format!("the configuration cannot be used:{}\n{all}", lines.concat())))
    }
}

/// A value of the file. Numbers and texts are read like those of the environment, so that both mean the same.
fn from_toml(setting: &Setting, value: serde_json::Value) -> Result<Value, String> {
    use serde_json::Value as Json;
    match (setting.kind, value) {
        (Kind::List, Json::Array(parts)) => parts
            .into_iter()
            .map(|part| part.as_str().map(Into::into).ok_or_else(|| setting.kind.expects()))
            .collect::<Result<_, _>>()
            .map(Value::List),
        (Kind::List, Json::String(text)) => Ok(Value::List(vec![text])),
        (Kind::Count | Kind::Bytes, Json::Number(number)) => setting.kind.parse(&number.to_string()),
        (_, Json::String(text)) => setting.kind.parse(&text),
        (_, other) => Err(format!("{other} will not do; {}", setting.kind.expects())),
    }
}

/// A path in a file is meant from that file's folder.
fn beside(file: &Path, setting: &Setting, value: Value) -> Value {
    match (setting.kind, value) {
        (Kind::Path, Value::Text(path)) => Value::Text(file.with_file_name(path).display().to_string()),
        (_, value) => value,
    }
}

/// Kubernetes gives every container such variables if a service is called `steadfast` or `steadfast-redis`.
fn of_another(name: &str) -> bool {
    let rest = name.strip_prefix("STEADFAST_REDIS_").or_else(|| name.strip_prefix("STEADFAST_")).unwrap_or(name);
    rest == "PORT" || ["PORT_", "SERVICE_"].iter().any(|prefix| rest.starts_with(prefix))
}

fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    settings::nearest(name, known).map(|known| format!("; did you mean {known}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn in_file(text: &str) -> (tempfile::TempDir, Given) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.toml");
        std::fs::write(&file, text).unwrap();
        (dir, Given { file: Some(file), ..Given::default() })
    }

    #[test]
    fn later_layers_win_and_are_named() {
        let (dir, mut given) = in_file("listen = \"127.0.0.1:1\"\ndata = \"d\"\n[limits]\nin_flight_max = 5\nwait_max = \"9s\"\n");
        given.flags.push((settings::LISTEN, Some("127.0.0.1:3".into())));
        given.set.push("limits.wait_max=7s".into());
        let vars = env(&[("STEADFAST_LISTEN", "127.0.0.1:2"), ("STEADFAST_LIMITS_IN_FLIGHT_MAX", "6"), ("STEADFAST_LOG", "debug")]);
        let config = Config::from_layers(&given, vars).unwrap();
        let file = dir.path().join("s.toml");
        let is = |setting| (config.origin(setting).clone(), setting.kind.show(&config.get(setting).value));
        assert_eq!(is(settings::LISTEN), (Origin::Flag("--listen"), "127.0.0.1:3".into()));
        assert_eq!(is(settings::IN_FLIGHT_MAX), (Origin::Env("STEADFAST_LIMITS_IN_FLIGHT_MAX".into()), "6".into()));
        assert_eq!(is(settings::WAIT_MAX), (Origin::Flag("--set"), "7s".into()));
        assert_eq!(is(settings::LOG_LEVEL), (Origin::Env("STEADFAST_LOG".into()), "debug".into()));
        assert_eq!(
            is(settings::DATA),
            (Origin::File(file, 2), dir.path().join("d").display().to_string()),
            "a path is meant from the file"
        );
        assert_eq!(is(settings::SERVER), (Origin::Default, "http://127.0.0.1:7373".into()));
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let (_dir, mut given) = in_file("lisen = \"127.0.0.1:1\"\n\n[limits]\nin_flight_max = \"many\"\n");
        given.set.push("dta=x".into());
        let error = Config::from_layers(&given, env(&[("STEADFAST_DATTA", "x"), ("STEADFAST_LISTEN", "here")])).unwrap_err();
        let text = error.to_string();
        for part in [
            "s.toml:1: there is no setting \"lisen\"; did you mean listen?",
            "s.toml:4: limits.in_flight_max: \"many\" will not do",
            "environment: there is no setting STEADFAST_DATTA; did you mean STEADFAST_DATA?",
            "STEADFAST_LISTEN: \"here\" will not do",
            "--set: there is no setting \"dta\"; did you mean data?",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn a_file_that_is_no_toml_is_told_with_its_line() {
        let (_dir, given) = in_file("listen = \"127.0.0.1:1\"\ndata = \n");
        let text = Config::from_layers(&given, env(&[])).unwrap_err().to_string();
        assert!(text.contains("s.toml:2: "), "{text}");
    }

    #[test]
    fn variables_for_templates_keep_their_type_and_origin() {
        let (dir, mut given) = in_file("[vars]\npayments = \"http://a\"\nlimit = 3\n[vars.deep]\nx = [1, true]\n");
        given.vars.push("payments=http://c".into());
        let config = Config::from_layers(&given, env(&[("STEADFAST_VARS_REGION", "eu")])).unwrap();
        assert_eq!(config.vars["payments"].value, "http://c");
        assert_eq!(config.vars["limit"].value, 3);
        assert_eq!(config.vars["deep"].value, serde_json::json!({"x": [1, true]}));
        assert_eq!(config.vars["region"].origin, Origin::Env("STEADFAST_VARS_REGION".into()));
        assert_eq!(config.vars["limit"].origin, Origin::File(dir.path().join("s.toml"), 3));
    }

    #[test]
    fn what_kubernetes_adds_is_left_alone() {
        let added = env(&[("STEADFAST_PORT", "tcp://1"), ("STEADFAST_PORT_7373_TCP_ADDR", "1"), ("STEADFAST_SERVICE_HOST", "1")]);
        assert!(Config::from_layers(&Given::default(), added).is_ok());
        let added = env(&[("STEADFAST_REDIS_PORT", "tcp://1"), ("STEADFAST_REDIS_SERVICE_HOST", "1")]);
        assert!(Config::from_layers(&Given::default(), added).is_ok());
    }

    #[test]
    fn settings_of_redis_that_do_not_fit_together_are_told_with_their_place() {
        let (_dir, given) = in_file("[redis]\nurl = \"redis://:hunter2@h\"\npassword_file = \"p\"\n");
        let text = Config::from_layers(&given, env(&[])).unwrap_err().to_string();
        assert!(text.contains("s.toml:3: redis.password_file: it is given more than once"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        let (_dir, given) = in_file("[redis]\nurl = \"redis://h\"\nheartbeat_ttl = \"10ms\"\n");
        let text = Config::from_layers(&given, env(&[])).unwrap_err().to_string();
        assert!(text.contains("s.toml:3: redis.heartbeat_ttl: use 1 second to 1 day"), "{text}");
    }

    #[test]
    fn a_lease_that_is_too_short_is_told_and_not_made_longer() {
        let (_dir, given) = in_file("[postgres]\nurl = \"postgresql://h/d\"\n[cluster]\nlease = \"1s\"\n");
        let text = Config::from_layers(&given, env(&[])).unwrap_err().to_string();
        assert!(text.contains("s.toml:4: cluster.lease: use 2s or more"), "{text}");
        let (_dir, given) = in_file("[postgres]\nurl = \"postgresql://h/d\"\n[cluster]\nlease = \"2s\"\n");
        assert!(Config::from_layers(&given, env(&[])).is_ok());
    }
}
