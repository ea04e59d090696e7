//! Reads the times of tests from nextest's report and prints the slowest.

use crate::root;
use anyhow::{Context, Result};

const SHOWN: usize = 10;

/// The slowest tests of all steps so far.
#[derive(Debug, Default)]
pub(crate) struct Slowest {
    tests: Vec<TimedTest>,
}

#[derive(Clone, Debug, PartialEq)]
struct TimedTest {
    seconds: f64,
    name: String,
}

impl Slowest {
    /// Adds the tests of the newest report.
    pub(crate) fn read_report(&mut self) -> Result<()> {
        // The folder is `store.dir` of nextest's settings.
        let path = root().join("target/nextest/default/junit.xml");
        let text = std::fs::read_to_string(&path).with_context(|| format!("nextest left no report in {}", path.display()))?;
        self.tests.extend(timed_tests(&text));
        self.tests.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        self.tests.truncate(SHOWN);
        Ok(())
    }

    pub(crate) fn print(&self) {
        if !self.tests.is_empty() {
            println!("\n   time  slowest tests");
        }
        for test in &self.tests {
            println!("{:>5.1} s  {}", test.seconds, test.name);
        }
    }
}

/// The `testcase` elements of a JUnit report.
fn timed_tests(report: &str) -> impl Iterator<Item = TimedTest> {
    report.split("<testcase ").skip(1).filter_map(|element| {
        let element = element.split('>').next()?;
        let name = format!("{} {}", attribute(element, "classname")?, attribute(element, "name")?);
        Some(TimedTest { seconds: attribute(element, "time")?.parse().ok()?, name })
    })
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let start = element
        .find(&format!("{name}=\""))
        .filter(|start| *start == 0 || element.as_bytes()[start - 1] == b' ');
    let start = start.or_else(|| element.find(&format!(" {name}=\"")).map(|start| start + 1))? + name.len() + 2;
    element[start..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_yields_names_and_times() {
        let report = r#"<testsuite name="a"><testcase name="x::y" classname="steadfast-kernel::it" timestamp="z" time="0.5"></testcase>
            <testcase name="slow" classname="steadfast" time="12.25"/></testsuite>"#;
        let tests: Vec<_> = timed_tests(report).collect();
        assert_eq!(tests[0], TimedTest { seconds: 0.5, name: "steadfast-kernel::it x::y".into() });
        assert_eq!(tests[1], TimedTest { seconds: 12.25, name: "steadfast slow".into() });
    }
}
