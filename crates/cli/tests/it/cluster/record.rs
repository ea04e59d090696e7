//! What has to be on record in the end, whatever has happened.

use super::database::Database;
use super::load::Acknowledged;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A step that has begun, as it has written down itself.
pub(super) struct Line {
    pub(super) run: String,
    pub(super) step: String,
    /// The server that began it.
    pub(super) by: String,
    /// In microseconds.
    pub(super) at: u64,
}

/// What steps have written down.
pub(super) fn lines(dir: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(dir.join("steps.log")).unwrap_or_default();
    let line = |line: &str| {
        let [run, step, by, at] = line.split(' ').collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{line:?}"));
        Line { run: run.into(), step: step.into(), by: by.into(), at: at.parse::<u64>().unwrap() / 1000 }
    };
    text.lines().map(line).collect()
}

/// Nothing of what was answered with success is lost, and all runs have completed.
pub(super) fn nothing_is_lost(database: &Database, acknowledged: &Acknowledged) {
    let set = |sql: &str| database.rows(sql).into_iter().map(|row| row[0].clone()).collect::<BTreeSet<_>>();
    let missing = |what: &str, asked: &BTreeSet<String>, there: &BTreeSet<String>| {
        let missing: Vec<_> = asked.difference(there).collect();
        assert!(missing.is_empty(), "{what} were acknowledged and are not there: {missing:?}");
    };
    let completed = set("SELECT workflow_id FROM steadfast.workflow_state WHERE status = 'COMPLETED'");
    missing("runs", &acknowledged.runs, &completed);
    let open = set("SELECT workflow_id || ' ' || status FROM steadfast.workflow_state WHERE status <> 'COMPLETED'");
    assert_eq!(open, BTreeSet::new(), "nothing is left");
    let signals =
        database.rows("SELECT workflow_id, count(*) FROM steadfast.workflow_events WHERE event_type = 'SIGNAL_RECEIVED' GROUP BY 1");
    assert!(signals.iter().all(|row| row[1] == "1"), "a signal with an id is there once: {signals:?}");
    missing("signals", &acknowledged.signals, &signals.into_iter().map(|row| row[0].clone()).collect());
    missing("keys", &acknowledged.keys, &set("SELECT key FROM steadfast.keys WHERE ended_at IS NULL AND value ->> 'by' = key"));
}

/// Journals and the orders of writing have no gap.
pub(super) fn nothing_is_missing_in_between(database: &Database) {
    let gaps = database.rows(
        "SELECT workflow_id, min(sequence), max(sequence), count(*) FROM steadfast.workflow_events GROUP BY 1
        HAVING min(sequence) <> 1 OR max(sequence) <> count(*)",
    );
    assert!(gaps.is_empty(), "journals with gaps: {gaps:?}");
    let gaps = database.rows(
        "SELECT s.id, s.place, min(e.place), max(e.place), count(*) FROM steadfast.shards s JOIN steadfast.workflow_events e ON e.shard = s.id
        GROUP BY s.id HAVING min(e.place) <> 1 OR max(e.place) <> count(*) OR count(DISTINCT e.place) <> count(*) OR max(e.place) <> s.place",
    );
    assert!(gaps.is_empty(), "shards with gaps: {gaps:?}");
}

/// When steps were recorded as done, in microseconds; each once.
pub(super) fn recorded(database: &Database) -> BTreeMap<(String, String), u64> {
    let rows = database.rows(
        "SELECT workflow_id, split_part(subject, '#', 1), (extract(epoch FROM occurred_at) * 1000000)::bigint
        FROM steadfast.workflow_events WHERE event_type = 'STEP_COMPLETED'",
    );
    let mut recorded = BTreeMap::new();
    for row in rows {
        let [run, step, at] = row.try_into().unwrap();
        let before = recorded.insert((run.clone(), step.clone()), at.parse().unwrap());
        assert_eq!(before, None, "{step} of {run} is recorded twice");
    }
    recorded
}

/// Steps that have begun after they were recorded as done, in words, with all their beginnings in microseconds from that record on.
pub(super) fn begun_after_the_end(lines: &[Line], recorded: &BTreeMap<(String, String), u64>) -> Vec<String> {
    let late = lines.iter().filter_map(|Line { run, step, by, at }| {
        let done = recorded.get(&(run.clone(), step.clone())).filter(|done| at > *done)?;
        let same = lines.iter().filter(|line| (&line.run, &line.step) == (run, step));
        let begun: Vec<_> = same.map(|line| format!("{} {:+}", line.by, line.at.cast_signed() - done.cast_signed())).collect();
        Some(format!("{step} of {run} by {by} ({})", begun.join(", ")))
    });
    late.collect()
}
