//! Names the tests that need a server, a browser or a process to kill.

use crate::needs::{self, Need};
use crate::root;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Tests with the same needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Postgres,
    Redis,
    Browser,
    Crash,
    /// The programs below `examples/`, which are run, not tested.
    Examples,
}

/// Tests of one crate: those in the named modules of `tests/it`, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) package: &'static str,
    /// Prefixes of test names.
    pub(crate) modules: &'static [&'static str],
}

const fn all_of(package: &'static str) -> Scope {
    Scope { package, modules: &[] }
}

impl Group {
    pub(crate) const WITH_TESTS: [Group; 4] = [Group::Redis, Group::Postgres, Group::Browser, Group::Crash];
    const ALL: [Group; 5] = [Group::Postgres, Group::Redis, Group::Browser, Group::Crash, Group::Examples];

    pub(crate) fn named(name: &str) -> Result<Self> {
        let names: Vec<&str> = Self::ALL.iter().map(|group| group.name()).collect();
        let found = Self::ALL.into_iter().find(|group| group.name() == name);
        found.with_context(|| format!("unknown group: {name}; the groups are {}", names.join(", ")))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Group::Postgres => "postgres",
            Group::Redis => "redis",
            Group::Browser => "browser",
            Group::Crash => "crash",
            Group::Examples => "examples",
        }
    }

    pub(crate) fn scopes(self) -> &'static [Scope] {
        const POSTGRES: &[Scope] = &[
            all_of("steadfast-store-postgres"),
            Scope { package: "steadfast-cli", modules: &["cluster::", "clusters::", "postgres::"] },
            Scope { package: "steadfast-test-servers", modules: &["postgres::"] },
        ];
        const REDIS: &[Scope] = &[
            all_of("steadfast-store-redis"),
            Scope { package: "steadfast", modules: &["instances::"] },
            Scope { package: "steadfast-cli", modules: &["instances::"] },
            Scope { package: "steadfast-server", modules: &["instances::", "openapi::", "snapshots::"] },
        ];
        const BROWSER: &[Scope] =
            &[Scope { package: "steadfast-server", modules: &["pages::"] }, Scope { package: "steadfast-cli", modules: &["console::"] }];
        const CRASH: &[Scope] = &[all_of("steadfast-crash-test"), Scope { package: "steadfast-cli", modules: &["restarts::"] }];
        match self {
            Group::Postgres => POSTGRES,
            Group::Redis => REDIS,
            Group::Browser => BROWSER,
            Group::Crash => CRASH,
            Group::Examples => &[],
        }
    }

    /// The programs that the tests start.
    pub(crate) fn needs(self) -> &'static [Need] {
        match self {
            Group::Postgres => &[needs::POSTGRES, needs::REDIS, needs::OPENSSL],
            Group::Redis => &[needs::REDIS, needs::OPENSSL],
            Group::Browser => &[needs::CHROMIUM],
            Group::Crash | Group::Examples => &[],
        }
    }

    pub(crate) fn has_tests_of(self, package: &str) -> bool {
        self.scopes().iter().any(|scope| scope.package == package)
    }
}

/// The folder of a crate of the workspace.
pub(crate) fn folder_of(package: &str) -> Option<PathBuf> {
    let folders = std::fs::read_dir(root().join("crates")).into_iter().flatten().flatten();
    let mut folders = folders.map(|folder| folder.path()).chain([root().join("xtask")]);
    folders.find(|folder| {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.starts_with(&format!("[package]\nname = \"{package}\"\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Text in a test's source that shows a need, and the groups that meet it.
    const SIGNS: [(&str, &[Group]); 3] = [
        ("PostgresServer::", &[Group::Postgres]),
        ("RedisServer::", &[Group::Redis, Group::Postgres]),
        ("browser::Page", &[Group::Browser]),
    ];

    #[test]
    fn test_with_needs_is_in_its_group() {
        let mut missing = BTreeSet::new();
        for package in packages() {
            let tests = folder_of(&package).unwrap().join("tests/it");
            for (module, text) in modules(&tests) {
                for (sign, groups) in SIGNS {
                    if text.contains(sign) && !groups.iter().any(|group| holds(*group, &package, &module)) {
                        missing.insert(format!("{package}: {module} uses {sign} and is not in {groups:?}"));
                    }
                }
            }
        }
        assert!(missing.is_empty(), "add these to a group: {missing:#?}");
    }

    fn holds(group: Group, package: &str, module: &str) -> bool {
        let mut scopes = group.scopes().iter().filter(|scope| scope.package == package);
        scopes.any(|scope| scope.modules.is_empty() || scope.modules.iter().any(|prefix| format!("{module}::").starts_with(prefix)))
    }

    fn packages() -> Vec<String> {
        let manifests = std::fs::read_dir(root().join("crates"))
            .unwrap()
            .map(|folder| folder.unwrap().path().join("Cargo.toml"));
        let names = manifests.map(|manifest| {
            let text = std::fs::read_to_string(manifest).unwrap();
            text.lines()
                .find_map(|line| line.strip_prefix("name = \""))
                .unwrap()
                .trim_end_matches('"')
                .to_owned()
        });
        names.collect()
    }

    /// The top modules of a test binary with all their text.
    fn modules(folder: &Path) -> Vec<(String, String)> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_none_or(|name| name != "main.rs"));
        paths
            .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), text_below(&path)))
            .collect()
    }

    fn text_below(path: &Path) -> String {
        if path.is_file() {
            return std::fs::read_to_string(path).unwrap_or_default();
        }
        let entries = std::fs::read_dir(path).unwrap().flatten();
        entries.map(|entry| text_below(&entry.path())).collect()
    }

    #[test]
    fn scope_names_existing_modules() {
        for scope in Group::ALL.iter().flat_map(|group| group.scopes()) {
            let tests = folder_of(scope.package).unwrap().join("tests/it");
            for module in scope.modules {
                let name = module.trim_end_matches("::");
                assert!(
                    tests.join(name).is_dir() || tests.join(format!("{name}.rs")).is_file(),
                    "{} has no tests in {name}",
                    scope.package
                );
            }
        }
    }
}
