//! How lists are read: by an index and in order, whatever is asked for; and what a put writes.

use super::super::testing::{database, plan};
use super::*;
use rusqlite::params_from_iter;

fn filter(set: impl FnOnce(&mut RunFilter)) -> RunFilter {
    let mut filter = RunFilter::default();
    set(&mut filter);
    filter
}

/// How a list is read.
fn list_plan(filter: &RunFilter) -> String {
    let (db, sql) = (database(), list_sql(filter));
    let params = db.prepare(&sql).unwrap().parameter_count();
    plan(&db, &sql, params_from_iter(vec![""; params]))
}

/// The place in the order, which every list begins at and ends with.
const PLACE: &str = "started_at>? AND (started_at,run)<(?,?)";

#[test]
fn runs_to_recover_are_found_without_looking_at_others() {
    assert_eq!(plan(&database(), RECOVER, (0, 0, "", 10)), "SEARCH runs USING INDEX runs_recover ((started_at,run)>(?,?))");
}

#[test]
fn the_oldest_runs_are_a_piece_of_the_table() {
    assert_eq!(plan(&database(), OLDEST, (0, 0, "", 10)), "SEARCH runs USING PRIMARY KEY ((started_at,run)>(?,?))");
}

#[test]
fn ended_runs_are_found_by_how_and_when_they_have_ended() {
    let params = (0, "FAILED", 9, 0, "", 10);
    assert_eq!(plan(&database(), ENDED, params), "SEARCH runs USING INDEX runs_ended (status=? AND (ended_at,run)>(?,?) AND ended_at<?)");
    assert_eq!(
        plan(&database(), ENDED_TASKS, params),
        "SEARCH runs USING INDEX runs_ended_tasks (status=? AND (ended_at,run)>(?,?) AND ended_at<?)"
    );
}

/// How many indexes a statement writes.
fn indexes_written(sql: &str) -> usize {
    let db = database();
    let mut statement = db.prepare(&format!("EXPLAIN {sql}")).unwrap();
    let nothing = params_from_iter(vec![""; statement.parameter_count()]);
    let steps = statement.query_map(nothing, |row| row.get::<_, String>("opcode")).unwrap().map(Result::unwrap);
    steps.filter(|step| step == "IdxDelete").count()
}

/// What the indexes of workflow, tenant and plan have stays for life, so a change does not touch
/// them. Two more have only runs that have ended.
#[test]
fn a_change_writes_the_row_and_three_indexes() {
    assert_eq!(indexes_written(CHANGE), 3 + 2);
}

#[test]
fn a_change_of_a_task_writes_one_index_more() {
    assert_eq!(indexes_written(CHANGE_TASK), 4 + 2);
}

#[test]
fn a_list_of_everything_is_a_piece_of_the_table() {
    assert_eq!(list_plan(&RunFilter::default()), format!("SEARCH runs USING PRIMARY KEY ({PLACE})"));
}

#[test]
fn each_filter_has_its_index_which_is_in_order() {
    let by = |index, set: fn(&mut RunFilter)| {
        assert_eq!(list_plan(&filter(set)), format!("SEARCH runs USING INDEX runs_{index} ({index}=? AND {PLACE})"));
    };
    by("workflow", |filter| filter.workflow = WorkflowName::new("bill").ok());
    by("tenant", |filter| filter.tenant = Some("acme".into()));
    by("wait", |filter| filter.wait = Some("TIMER".into()));
    by("status", |filter| filter.status = Some(Status::Failed));
}

/// Most runs are completed, so there is no shorter way to them than all runs.
#[test]
fn every_status_but_completed_has_an_index() {
    for status in Status::ALL {
        let plan = list_plan(&filter(|filter| filter.status = Some(status)));
        let index = match status {
            Status::Completed => "PRIMARY KEY (",
            Status::Running => "INDEX runs_recover (",
            _ => "INDEX runs_status (status=? AND ",
        };
        assert_eq!(plan, format!("SEARCH runs USING {index}{PLACE})"), "{status:?}");
    }
}

/// Whatever else is asked for beside it.
#[test]
fn no_list_is_sorted_or_read_as_a_whole() {
    for asked in 0..16 {
        let filter = filter(|filter| {
            filter.status = (asked & 1 > 0).then_some(Status::Waiting);
            filter.workflow = WorkflowName::new("bill").ok().filter(|_| asked & 2 > 0);
            filter.tenant = (asked & 4 > 0).then(|| "acme".into());
            filter.wait = (asked & 8 > 0).then(|| "TIMER".into());
        });
        let plan = list_plan(&filter);
        assert!(plan.starts_with("SEARCH runs USING ") && plan.ends_with(&format!("{PLACE})")), "{filter:?}: {plan}");
    }
}

fn new_row(number: usize, note: &str) -> RunRow {
    RunRow {
        shard: 0,
        run: RunId::new(format!("run-{number}")).unwrap(),
        workflow: WorkflowName::new("checkout").unwrap(),
        tenant: None,
        status: Status::Running,
        wait: None,
        text: Some(note.to_string()),
        recover: Some(Recover::Host),
        started_at: Timestamp::from_micros(number as i64),
        ended_at: None,
        task: None,
    }
}

/// Run 3 is there before, run 5 is in the commit twice, and run 17 stands behind the rows of one
/// statement.
#[test]
fn last_row_of_new_run_counts() {
    let db = database();
    let mut rows: Vec<_> = (0..MANY + 4).map(|number| new_row(number, "first")).collect();
    rows.insert(6, new_row(5, "second"));
    let begun: BTreeSet<_> = rows.iter().map(|row| &row.run).collect();
    put(&db, &[new_row(3, "before"), new_row(17, "before")], &begun).unwrap();
    put(&db, &rows, &begun).unwrap();
    for number in 0..MANY + 4 {
        let found = get(&db, &new_row(number, "").run).unwrap();
        assert_eq!(found, Some(new_row(number, if number == 5 { "second" } else { "first" })));
    }
}
