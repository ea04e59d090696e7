//! A process with plans under way, killed again and again: tasks are interrupted where they were, go on from there, and do nothing twice but the stage that was under way.
//!
//! Subject: `crates/kernel/src/run/task.rs`.

use crate::victim::{Life, Victim};
use crate::{Repeat, kills, machine, setting};
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_crash_test::plans::{self, Noted, PLANS, STAGES, TENANTS, What};
use steadfast_kernel::random::Stream;

/// So many kills leave everything behind that there is.
const KILLS_ENOUGH: u64 = 15;

#[test]
fn a_task_goes_on_from_its_checkpoint_and_repeats_no_more_than_the_stage_under_way() {
    let _machine = machine();
    let seed = setting("CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let wanted = setting("CRASH_KILLS").unwrap_or(KILLS_ENOUGH).min(KILLS_ENOUGH);
    let repeat = Repeat(format!("CRASH_SEED={seed} CRASH_KILLS={wanted}"));
    println!("{}", repeat.0);
    let (mut chance, mut seen, mut done) = (kills(seed), BTreeMap::new(), 0);
    while done < wanted {
        done += round(&mut chance, wanted - done, &mut seen);
    }
    while wanted >= KILLS_ENOUGH && !missed(&seen).is_empty() && done < 4 * wanted {
        done += round(&mut chance, 5, &mut seen); // a slow machine takes longer to come to it, and more kills
    }
    println!("{done} kills were followed by: {seen:?}");
    assert!(wanted < KILLS_ENOUGH || missed(&seen).is_empty(), "no kill has left behind any of {:?}", missed(&seen));
}

/// What kills have to leave behind, and have not.
fn missed(seen: &BTreeMap<String, usize>) -> Vec<&'static str> {
    let wanted = ["INTERRUPTED", "PENDING", "COMPLETED", "repeated"];
    wanted.into_iter().filter(|what| !seen.contains_key(*what)).collect()
}

/// Plans on a fresh data folder, whose process is killed until they are done or there were kills enough, and then left alone until they are done.
fn round(chance: &mut Stream, kills_max: u64, seen: &mut BTreeMap<String, usize>) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let mut kills = 0;
    for process in 1.. {
        let mercy = kills >= kills_max;
        let end = Victim::start(folder.path(), process, "plans").live(if mercy { Life::Whole } else { draw(chance) });
        for (status, tasks) in end.acknowledged.iter().filter_map(|line| line.strip_prefix("found ")?.split_once(' ')) {
            *seen.entry(status.into()).or_default() += tasks.parse::<usize>().unwrap();
        }
        if end.done {
            break;
        }
        assert!(!mercy, "left alone, the process does not come to an end\n{}", end.errors);
        kills += 1;
    }
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let repeated = stages_are_in_order(&plans::read(&log));
    if repeated > 0 {
        *seen.entry("repeated".into()).or_default() += repeated;
    }
    kills
}

/// While it opens the store or looks at what is left, or some time into its work.
fn draw(chance: &mut Stream) -> Life {
    let mut below = |bound: u64| chance.next_u64() % bound;
    match below(4) {
        0 => Life::FromBirth(Duration::from_micros(below(150_000))),
        _ => Life::FromBirth(Duration::from_micros(150_000 + below(600_000))),
    }
}

/// Every task has done all its stages in order; a stage again only in another process than the last time, and only before the next one. How many were done again.
fn stages_are_in_order(log: &[Noted]) -> usize {
    let mut repeated = 0;
    for task in (0..PLANS).flat_map(|plan| (0..TENANTS).map(move |tenant| plans::task_id(plan, tenant))) {
        let (mut next, mut last) = (0, 0);
        for line in log.iter().filter(|line| line.task == task) {
            let What::Stage(stage) = line.what else { continue };
            let is_again = stage + 1 == next && line.process > last;
            assert!(stage == next || is_again, "stage {stage} of {task} came when {next} was next: {line:?}");
            repeated += usize::from(is_again);
            (next, last) = (stage + 1, line.process);
        }
        assert_eq!(next, STAGES, "{task} has not done all of its stages");
    }
    repeated
}
