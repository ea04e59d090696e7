//! `run`: a command of the machine, and what its exit code means.

mod process;

use super::{Attempt, Tools};
use crate::document::{At, Fields, Node, Value};
use crate::duration;
use crate::problem::Report;
use crate::template::{Place, Scope, Template, invalid};
use process::{Captured, Ended, carry_out};
use serde_json::{Value as Json, json};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use steadfast_kernel::{Class, Code, Failure};
use tokio::process::Command;

/// What a command sees of the server's own environment. Anything else has to be named in `inherit`.
const INHERITED: [&str; 9] = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "TMPDIR", "TZ", "USER"];

/// How much of the last words of a command stand in its failure, in characters.
const LAST_WORDS_MAX: usize = 500;

#[derive(Clone, Debug)]
pub(crate) struct Run {
    command: Words,
    env: Vec<(String, Template)>,
    inherit: Vec<String>,
    cwd: Option<Template>,
    stdin: Option<Template>,
    exit: Vec<(i32, Class)>,
}

#[derive(Clone, Debug)]
enum Words {
    /// A program and what it is given.
    Plain(Vec<Template>),
    /// What the shell reads, as it is.
    Shell(String),
}

impl Run {
    pub(super) fn read(node: &Node, place: Place, report: &mut Report) -> Option<Self> {
        let mut fields = Fields::of(node, "run", report)?;
        let shell = fields.truth("shell", report).unwrap_or(false);
        let command = fields.need("command", report).and_then(|node| read_command(node, shell, place, report));
        let env = fields.take("env").and_then(|node| node.map("env", report)).unwrap_or_default();
        let inherit = fields.take("inherit").and_then(|node| node.list("inherit", report)).unwrap_or_default();
        let cwd = fields.take("cwd").map(|node| Template::read_one(node, "cwd", place, report));
        let stdin = fields.take("stdin").map(|node| Template::read_one(node, "stdin", place, report));
        let exit = fields.take("exit").map(|node| read_exit(node, report));
        fields.end(report);
        for (key, _) in env {
            if key.name.is_empty() || key.name.contains(['=', '\0']) {
                report.wrong(key.at, format!("{:?} cannot be the name of an environment variable", key.name));
            }
        }
        let env = env
            .iter()
            .map(|(key, node)| (key.name.clone(), Template::read_one(node, &key.name, place, report)))
            .collect();
        let inherit = inherit.iter().filter_map(|node| node.text("inherit", report).map(str::to_string)).collect();
        Some(Run { command: command?, env, inherit, cwd, stdin, exit: exit.unwrap_or_default() })
    }

    pub(super) async fn attempt(&self, scope: &Scope, of: &Attempt, tools: &Tools) -> Result<Json, Failure> {
        let command = self.command(scope, of, tools)?;
        let stdin = self.stdin.as_ref().map(|stdin| stdin.text(scope, &of.step, "run.stdin")).transpose()?;
        let ended = carry_out(command, stdin.map(String::into_bytes), tools.settings.output_bytes_max, of.timeout).await;
        match ended.map_err(|error| not_started(&error))? {
            Ended::TimedOut { limit, stderr } => {
                let message = format!("the command took longer than {} and was ended", duration::show(limit));
                Err(Failure::new(Code::DeadlineExceeded, with_last_words(message, &stderr)))
            }
            Ended::Exited { status, stdout, stderr } if status.success() => Ok(output(status, &stdout, &stderr)),
            Ended::Exited { status, stderr, .. } => Err(self.failure(status, &stderr)),
        }
    }

    fn command(&self, scope: &Scope, of: &Attempt, tools: &Tools) -> Result<Command, Failure> {
        let step = &of.step;
        let cwd = self.cwd.as_ref().map(|cwd| cwd.text(scope, step, "run.cwd")).transpose()?;
        let cwd = tools.folder.join(cwd.unwrap_or_default());
        let mut command = match &self.command {
            Words::Shell(script) => {
                let mut shell = Command::new("/bin/sh");
                shell.arg("-c").arg(script);
                shell
            }
            Words::Plain(words) => {
                let words = words
                    .iter()
                    .enumerate()
                    .map(|(index, word)| word.text(scope, step, &format!("run.command[{index}]")));
                let words: Vec<String> = words.collect::<Result<_, _>>()?;
                let mut command = Command::new(program(&words[0], &cwd));
                command.args(&words[1..]);
                command
            }
        };
        command.current_dir(cwd).env_clear();
        let inherited = INHERITED.into_iter().chain(self.inherit.iter().map(String::as_str));
        command.envs(inherited.filter_map(|name| Some((name, std::env::var_os(name)?))));
        for (name, value) in &self.env {
            let field = format!("run.env.{name}");
            let value = value.text(scope, step, &field)?;
            if value.contains('\0') {
                return Err(invalid(step, &field, "it gave a zero byte, which the environment cannot have"));
            }
            command.env(name, value);
        }
        command.env("STEADFAST_IDEMPOTENCY_KEY", &of.idempotency_key);
        command.env("STEADFAST_RUN_ID", of.run.as_str());
        command.env("STEADFAST_ATTEMPT", of.attempt.to_string());
        Ok(command)
    }

    fn failure(&self, status: ExitStatus, stderr: &Captured) -> Failure {
        let Some(exit) = status.code() else {
            let message = format!("the command was ended by signal {}", status.signal().unwrap_or_default());
            return Failure::new(Code::Internal, with_last_words(message, stderr));
        };
        let message = with_last_words(format!("the command ended with exit code {exit}"), stderr);
        match self.exit.iter().find(|(code, _)| *code == exit).map(|(_, class)| *class) {
            Some(Class::Permanent) => Failure::permanent(message),
            Some(Class::Poison) => Failure::poison(message),
            Some(Class::Transient) | None => Failure::transient(message),
        }
    }
}

/// A program that is named by a path belongs to the working folder, others are searched for.
fn program(word: &str, cwd: &Path) -> PathBuf {
    if word.contains('/') { cwd.join(word) } else { word.into() }
}

fn output(status: ExitStatus, stdout: &Captured, stderr: &Captured) -> Json {
    let json: Json = if stdout.dropped == 0 { serde_json::from_slice(&stdout.bytes).unwrap_or_default() } else { Json::Null };
    let mut output = json!({ "exitCode": status.code(), "stdout": stdout.text(), "stderr": stderr.text(), "json": json });
    if stdout.dropped + stderr.dropped > 0 {
        output["dropped"] = json!({ "stdout": stdout.dropped, "stderr": stderr.dropped });
    }
    output
}

/// What the command said last is what its author wanted people to know.
fn with_last_words(message: String, stderr: &Captured) -> String {
    let text = stderr.text();
    let text = text.trim_end();
    let skipped = text.chars().count().saturating_sub(LAST_WORDS_MAX);
    let last: String = text.chars().skip(skipped).collect();
    match (last.is_empty(), skipped) {
        (true, _) => message,
        (false, 0) => format!("{message}: {last}"),
        (false, _) => format!("{message}: …{last}"),
    }
}

/// A command that is not there, or may not be executed, will not be there the next time.
fn not_started(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(Code::NotFound, "the command or its working folder is not there"),
        io::ErrorKind::PermissionDenied => Failure::new(Code::PermissionDenied, "the command may not be executed"),
        io::ErrorKind::ArgumentListTooLong => {
            Failure::new(Code::InvalidArgument, "the command or its environment is too long; pass large values by `stdin`")
        }
        io::ErrorKind::InvalidInput => Failure::new(Code::InvalidArgument, "the command holds a zero byte"),
        _ => Failure::new(Code::Unavailable, "the command cannot be started").cause(error),
    }
}

fn read_command(node: &Node, shell: bool, place: Place, report: &mut Report) -> Option<Words> {
    match &node.value {
        Value::Text(script) if shell => {
            if script.contains("{{") {
                let help = "pass the value by `env` and write \"$NAME\": what comes from outside must not become part of a command";
                report.wrong_with_help(node.at, "a command for the shell cannot hold templates", help);
            }
            Some(Words::Shell(script.clone()))
        }
        Value::List(words) if !shell && !words.is_empty() => {
            Some(Words::Plain(words.iter().map(|word| Template::read_one(word, "command", place, report)).collect()))
        }
        _ => {
            let (message, help) = if shell {
                ("`command` has to be a text for the shell", "leave out `shell: true` to give a list of words")
            } else {
                (
                    "`command` has to be a list of words",
                    "write [\"./ship\", \"--fast\"], or say `shell: true` to have the shell read a text",
                )
            };
            report.wrong_with_help(node.at, message, help);
            None
        }
    }
}

fn read_exit(node: &Node, report: &mut Report) -> Vec<(i32, Class)> {
    let Some(mut fields) = Fields::of(node, "exit", report) else { return Vec::new() };
    let mut found: Vec<(At, i32, Class)> = Vec::new();
    for (name, class) in [("transient", Class::Transient), ("permanent", Class::Permanent), ("poison", Class::Poison)] {
        let items = fields.take(name).and_then(|node| node.list(name, report)).unwrap_or_default();
        for item in items {
            match item.json().as_i64().and_then(|code| i32::try_from(code).ok()) {
                Some(code @ 1..=255) => found.push((item.at, code, class)),
                Some(0) => report.wrong(item.at, "exit code 0 is success; it cannot be a failure"),
                _ => report.wrong(item.at, "an exit code has to be a whole number from 1 to 255"),
            }
        }
    }
    fields.end(report);
    for (number, (at, code, _)) in found.iter().enumerate() {
        if found[..number].iter().any(|(_, before, _)| before == code) {
            report.wrong(*at, format!("exit code {code} stands in `exit` twice"));
        }
    }
    found.into_iter().map(|(_, code, class)| (code, class)).collect()
}
