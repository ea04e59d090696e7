//! Plans for tests: stages that write down what they did, and one that waits for a word.

use crate::served::Served;
use crate::steadfast::until;
use std::path::Path;

/// Ten stages; the fifth is under way until there is a file `go`, or the folder is gone.
pub(crate) fn ten() -> String {
    let mut text = String::from("plan: ten\nretry: { max_attempts: 1 }\nstages:\n");
    for stage in 1..=10 {
        let wait = if stage == 5 { "; until [ -f go ] || [ ! -d definitions ]; do sleep 0.02; done" } else { "" };
        let kept = if stage == 3 { ", checkpoint: { third: \"{{ tenant }}\" }" } else { "" };
        text += &format!(
            "  - {{ name: s{stage}, run: {{ cwd: .., command: [sh, -c, \"echo s{stage} >> {{{{ tenant }}}}.log{wait}\"] }}{kept} }}\n"
        );
    }
    text
}

/// Two stages with undo: the first is under way until there is a file `TENANT.go`, the second fails where there is a file `TENANT.bad`.
pub(crate) const PAIR: &str = r#"
plan: pair
max_concurrency: 2
retry: { max_attempts: 1 }
stages:
  - name: open
    run: { cwd: .., command: [sh, -c, "until [ -f {{ tenant }}.go ] || [ ! -d definitions ]; do sleep 0.02; done; echo open {{ vars.to }} >> {{ tenant }}.log"] }
    undo: { run: { cwd: .., command: [sh, -c, "echo close >> {{ tenant }}.log"] } }
  - name: fill
    run: { cwd: .., command: [sh, -c, "[ ! -f {{ tenant }}.bad ] && echo fill >> {{ tenant }}.log"] }
    undo: { run: { cwd: .., command: [sh, -c, "echo empty >> {{ tenant }}.log"] } }
"#;

/// Puts a definition into a folder.
pub(crate) fn define(dir: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(dir.join("definitions")).unwrap();
    std::fs::write(dir.join(format!("definitions/{name}.yaml")), text).unwrap();
}

/// A server in that folder.
pub(crate) fn serve(dir: &Path) -> Served {
    Served::start(dir, &["--listen", "127.0.0.1:0"])
}

/// Lets something go on that waits for that file.
pub(crate) fn touch(dir: &Path, file: &str) {
    std::fs::write(dir.join(file), "").unwrap();
}

/// What the stages of a tenant have written down.
pub(crate) fn log(dir: &Path, tenant: &str) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join(format!("{tenant}.log"))).unwrap_or_default();
    text.lines().map(Into::into).collect()
}

impl Served {
    /// A plan, as JSON.
    #[track_caller]
    pub(crate) fn plan(&self, id: &str) -> serde_json::Value {
        self.call(&["plan", "show", id, "--json"]).ends_with(0).json()
    }

    /// A tenant's task, as JSON.
    #[track_caller]
    pub(crate) fn task(&self, tenant: &str) -> serde_json::Value {
        self.call(&["tenant", "show", tenant, "--json"]).ends_with(0).json()
    }

    /// Waits until a plan has that status.
    #[track_caller]
    pub(crate) fn until_plan(&self, id: &str, status: &str) {
        until(&format!("{id} is {status}"), || (self.plan(id)["status"] == status).then_some(()));
    }

    /// Waits until a tenant's task has that status.
    #[track_caller]
    pub(crate) fn until_task(&self, tenant: &str, status: &str) {
        until(&format!("{tenant} is {status}"), || (self.task(tenant)["status"] == status).then_some(()));
    }
}
