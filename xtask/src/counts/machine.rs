//! Names the tools and the processor that a count depends on.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::process::Command;

/// The flags that valgrind passes on to the program: the C library and some crates choose their
/// code by them.
const FLAGS: [&str; 11] = ["pni", "ssse3", "cx16", "abm", "avx", "rdtscp", "bmi1", "avx2", "rdrand", "f16c", "rdseed"];

/// Counts of equal machines can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    pub(super) rustc: String,
    pub(super) libc: String,
    pub(super) valgrind: String,
    /// The architecture, and the flags of the processor that matter.
    pub(super) cpu: String,
}

impl Machine {
    /// This one.
    pub(super) fn this() -> Result<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let cpu = std::fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo is missing; counting needs Linux")?;
        Ok(Machine {
            rustc: first_line(Command::new(rustc).arg("--version").current_dir(crate::root()))?,
            libc: first_line(Command::new("getconf").arg("GNU_LIBC_VERSION"))?,
            valgrind: first_line(Command::new("valgrind").arg("--version"))?,
            cpu: format!("{} {}", std::env::consts::ARCH, flags(&cpu)),
        })
    }

    /// A line for each part that differs.
    pub(super) fn differences(&self, other: &Machine) -> Vec<String> {
        let parts = [
            ("rustc", &self.rustc, &other.rustc),
            ("libc", &self.libc, &other.libc),
            ("valgrind", &self.valgrind, &other.valgrind),
            ("cpu", &self.cpu, &other.cpu),
        ];
        let differing = parts.into_iter().filter(|(_, baseline, here)| baseline != here);
        differing
            .map(|(part, baseline, here)| format!("{part}: {baseline} in the baseline, {here} here"))
            .collect()
    }
}

fn first_line(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{program} did not start"))?;
    ensure!(output.status.success(), "{program} failed");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn flags(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &&str| line.split_whitespace().any(|found| found == *flag);
    FLAGS.into_iter().filter(has).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine { rustc: "rustc 1.95.0".into(), libc: "glibc 2.36".into(), valgrind: "valgrind-3.19.0".into(), cpu: "x86_64 avx".into() }
    }

    #[test]
    fn equal_machines_have_no_differences() {
        assert_eq!(machine().differences(&machine()), Vec::<String>::new());
    }

    #[test]
    fn differences_name_both_sides() {
        let other = Machine { libc: "glibc 2.41".into(), ..machine() };
        assert_eq!(machine().differences(&other), ["libc: glibc 2.36 in the baseline, glibc 2.41 here"]);
    }

    #[test]
    fn unimportant_flags_are_left_out() {
        assert_eq!(flags("model name\t: X\nflags\t\t: fpu avx2 mmx pni avx\n"), "pni avx avx2");
    }
}
