//! Checks lists of runs: filtered, newest first, in pages without gaps or repeats.

use super::Harness;
use super::fixture::{Writer, ended, row, rows, run, time, workflow};
use steadfast_kernel::Status;
use steadfast_store::{RunCursor, RunFilter, RunPage, RunRow, Store};

/// The ids of the runs that the filter lets through.
async fn ids(store: &impl Store, filter: &RunFilter) -> Vec<String> {
    let rows = store.runs(filter, None, usize::MAX).await.unwrap();
    rows.iter().map(|row| row.run.to_string()).collect()
}

/// A store with these rows.
async fn filled<H: Harness>(harness: &H, with: impl IntoIterator<Item = RunRow>) -> H::Store {
    let store = harness.open().await;
    Writer::claim(&store, 0).await.write(rows(with)).await;
    store
}

fn at(id: &str, started_at: i64) -> RunRow {
    RunRow { started_at: time(started_at), ..row(id) }
}

/// Rows with every mix of fields that filters ask for, few of them at a time of their own.
fn mixed() -> Vec<RunRow> {
    let mut all = vec![];
    for status in Status::ALL {
        for (name, tenant) in [("bill", None), ("bill", Some("acme")), ("ship", Some("Acme")), ("bill/2", Some("umbrella"))] {
            for (wait, text) in [(None, None), (Some("TIMER"), Some("half of it")), (Some("SIGNAL"), Some("ALL of it"))] {
                let number = all.len();
                all.push(RunRow {
                    shard: u32::try_from(number % 3).unwrap(),
                    workflow: workflow(name),
                    tenant: tenant.map(Into::into),
                    status,
                    wait: wait.map(Into::into),
                    text: text.map(Into::into),
                    started_at: time(100 + (number as i64 * 7) % 20),
                    ..row(&format!("r{}", (number * 37) % 108))
                });
            }
        }
    }
    all
}

/// Filters that ask for every mix of things, those of `mixed` among them.
fn filters() -> impl Iterator<Item = RunFilter> {
    (0..64).map(|asked: u32| RunFilter {
        status: (asked & 1 > 0).then_some(Status::ALL[asked as usize % 9]),
        workflow: (asked & 2 > 0).then(|| workflow("bill")),
        tenant: (asked & 4 > 0).then(|| "acme".into()),
        wait: (asked & 8 > 0).then(|| "TIMER".into()),
        since: (asked & 16 > 0).then(|| time(104)),
        until: (asked & 32 > 0).then(|| time(115)),
    })
}

/// What the list has to be.
fn expected(filter: &RunFilter) -> Vec<RunRow> {
    let mut rows: Vec<_> = mixed().into_iter().filter(|row| filter.lets_through(row)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(RunCursor::from(row)));
    rows
}

/// By the time of their beginning and then by the bytes of their ids, both backwards, over all shards.
pub async fn runs_come_newest_first(harness: &impl Harness) {
    let other_shard = RunRow { shard: 7, ..at("c", 6) };
    let store =
        filled(harness, [at("a", 5), at("B", 5), at("b", 5), at("a/1", 5), at("a-1", 5), at("z", 4), at("0", 900), other_shard]).await;
    assert_eq!(ids(&store, &RunFilter::default()).await, ["0", "c", "b", "a/1", "a-1", "a", "B", "z"]);
}

/// Every filter with every other gives what [`RunFilter::lets_through`] lets through.
pub async fn filters_apply_alone_and_together(harness: &impl Harness) {
    let store = filled(harness, mixed()).await;
    for filter in filters() {
        assert_eq!(store.runs(&filter, None, usize::MAX).await.unwrap(), expected(&filter), "{filter:?}");
    }
}

/// Whatever the size of a page and the filter, the pages together are the list, though many runs began at the same time.
pub async fn pages_meet_without_gaps_or_repeats(harness: &impl Harness) {
    let store = filled(harness, mixed()).await;
    for (limit, filter) in [1, 2, 3, 7, 50].into_iter().cycle().zip(filters().step_by(3)) {
        let mut found: Vec<RunRow> = vec![];
        loop {
            let page = store.runs(&filter, found.last().map(RunCursor::from).as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            found.extend(page.iter().cloned());
            assert!(found.len() <= expected(&filter).len(), "pages repeat");
            if page.len() < limit {
                break;
            }
        }
        assert_eq!(found, expected(&filter), "pages of {limit}, {filter:?}");
    }
}

/// The place that a page begins after need not be one of a run that is in the list.
pub async fn a_page_begins_after_any_place(harness: &impl Harness) {
    let store = filled(harness, [at("a", 5), at("b", 5), at("c", 5), at("d", 6)]).await;
    let after = async |id: &str, started_at| {
        let after = RunCursor { started_at: time(started_at), run: run(id) };
        let rows = store
            .runs(&RunFilter { until: Some(time(6)), ..RunFilter::default() }, Some(&after), 9)
            .await
            .unwrap();
        rows.iter().map(|row| row.run.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(after("bb", 5).await, ["b", "a"]);
    assert_eq!(after("a", 5).await, [""; 0]);
    assert_eq!(after("d", 6).await, ["c", "b", "a"]);
    assert_eq!(after("a", 7).await, ["c", "b", "a"]);
    assert_eq!(after("z", 4).await, [""; 0]);
}

/// Whoever reads page by page meets every run that is there all the time, once; those that begin meanwhile are on pages before.
pub async fn pages_hold_while_runs_begin(harness: &impl Harness) {
    let store = filled(harness, (1..=6).map(|n| at(&format!("r{n}"), 10 * n))).await;
    let first = store.runs(&RunFilter::default(), None, 3).await.unwrap();
    let mut writer = Writer::claim(&store, 0).await;
    writer.write(rows([at("new", 100), RunRow { status: Status::Paused, ..at("r4", 40) }])).await;
    let rest = store.runs(&RunFilter::default(), first.last().map(RunCursor::from).as_ref(), 9).await.unwrap();
    let ids: Vec<_> = first.iter().chain(&rest).map(|row| row.run.to_string()).collect();
    assert_eq!(ids, ["r6", "r5", "r4", "r3", "r2", "r1"]);
}

/// The first moment counts, the last does not.
pub async fn times_have_a_beginning_and_an_end(harness: &impl Harness) {
    let store = filled(harness, [at("a", 0), at("b", 5), at("c", 6), at("d", 7)]).await;
    let between = async |since: Option<i64>, until: Option<i64>| {
        ids(&store, &RunFilter { since: since.map(time), until: until.map(time), ..RunFilter::default() }).await
    };
    assert_eq!(between(Some(5), Some(7)).await, ["c", "b"]);
    assert_eq!(between(Some(7), None).await, ["d"]);
    assert_eq!(between(None, Some(5)).await, ["a"]);
    assert_eq!(between(Some(0), None).await, ["d", "c", "b", "a"]);
    assert_eq!(between(None, Some(0)).await, [""; 0]);
    assert_eq!(between(Some(6), Some(6)).await, [""; 0]);
    assert_eq!(between(Some(7), Some(5)).await, [""; 0]);
}

/// A name that begins like another, or has other capitals, is another.
pub async fn names_are_compared_as_a_whole(harness: &impl Harness) {
    let with = |id: &str, name: &str| RunRow { workflow: workflow(name), tenant: Some(name.into()), wait: Some(name.into()), ..row(id) };
    let store = filled(harness, [with("a", "bill"), with("b", "Bill"), with("c", "bill-2"), with("d", "bil"), row("e")]).await;
    let none = RunFilter::default();
    assert_eq!(ids(&store, &RunFilter { workflow: Some(workflow("bill")), ..none.clone() }).await, ["a"]);
    assert_eq!(ids(&store, &RunFilter { tenant: Some("bill".into()), ..none.clone() }).await, ["a"]);
    assert_eq!(ids(&store, &RunFilter { wait: Some("bill".into()), ..none.clone() }).await, ["a"]);
    assert_eq!(ids(&store, &RunFilter { tenant: Some(String::new()), ..none.clone() }).await, [""; 0]);
    assert_eq!(ids(&store, &RunFilter { wait: Some("il".into()), ..none }).await, [""; 0]);
}

/// The ids of the runs that have that text.
async fn with_text(store: &impl Store, text: &str) -> Vec<String> {
    let page = store.search(&RunFilter::default(), text, None, 99, 99).await.unwrap();
    assert_eq!(page.next, None);
    page.rows.iter().map(|row| row.run.to_string()).collect()
}

/// Pages that end because they are full, or because enough was looked at, are together what is there, whatever else is asked for.
pub async fn a_search_goes_on_where_it_stopped_looking(harness: &impl Harness) {
    let store = filled(harness, mixed()).await;
    for (number, filter) in filters().enumerate() {
        let (limit, examined_max) = ([1, 2, 5, 50][number % 4], [1, 2, 3, 10, 1000][number % 5]);
        let (mut left, mut after) = (expected(&filter), None);
        loop {
            let page = store.search(&filter, "F IT", after.as_ref(), limit, examined_max).await.unwrap();
            let should = RunPage::search(left.iter().cloned().map(Ok::<_, ()>), "F IT", limit, examined_max).unwrap();
            assert_eq!(page, should, "{limit} of {examined_max} after {after:?}, {filter:?}");
            let Some(next) = page.next else { break };
            left.retain(|row| RunCursor::from(row) < next);
            after = Some(next);
        }
    }
}

/// So whoever reads a page knows whether there is another one to be asked for.
pub async fn a_search_says_how_far_it_has_come(harness: &impl Harness) {
    let said = |n: i64| RunRow { text: (n % 3 == 0).then(|| "fizz".into()), ..at(&format!("r{n}"), n) };
    let store = filled(harness, (1..=9).map(said)).await;
    let search = async |text: &str, after: Option<&RunCursor>, limit, examined_max| {
        let page = store.search(&RunFilter::default(), text, after, limit, examined_max).await.unwrap();
        let ids: Vec<_> = page.rows.iter().map(|row| row.run.to_string()).collect();
        (ids.join(" "), page.next.map(|next| next.run.to_string()))
    };
    let next = |id: &str| Some(id.to_owned());
    assert_eq!(search("fizz", None, 9, 4).await, ("r9 r6".into(), next("r6")), "the last that it looked at is one of them");
    assert_eq!(search("fizz", None, 9, 5).await, ("r9 r6".into(), next("r5")));
    assert_eq!(search("fizz", None, 1, 9).await, ("r9".into(), next("r9")), "the page is full, and there is another");
    assert_eq!(search("fizz", None, 3, 10).await, ("r9 r6 r3".into(), None), "the page is full, and there is no other");
    assert_eq!(search("buzz", None, 3, 4).await, (String::new(), next("r6")), "nothing so far is not nothing");
    let after = RunCursor { started_at: time(6), run: run("r6") };
    assert_eq!(search("buzz", Some(&after), 3, 4).await, (String::new(), next("r2")));
    assert_eq!(search("buzz", Some(&after), 3, 6).await, (String::new(), None));
}

/// In the id, the workflow, the tenant or what is said of the run, and nowhere else.
pub async fn text_is_found_where_people_look(harness: &impl Harness) {
    let by_id = row("has-needle-inside");
    let by_workflow = RunRow { workflow: workflow("team/needle"), ..row("b") };
    let by_tenant = RunRow { tenant: Some("needle & sons".into()), ..row("c") };
    let by_text = RunRow { text: Some("lost a needle".into()), ..row("d") };
    let by_wait = RunRow { wait: Some("needle".into()), ..row("e") };
    let store = filled(harness, [by_id, by_workflow, by_tenant, by_text, by_wait, row("f")]).await;
    assert_eq!(with_text(&store, "needle").await, ["has-needle-inside", "d", "c", "b"]);
    assert_eq!(with_text(&store, "needles").await, [""; 0]);
    assert_eq!(with_text(&store, "orders/").await, ["has-needle-inside", "f", "e", "d", "c"]);
    assert_eq!(with_text(&store, "").await.len(), 6, "everything has nothing in it");
}

/// As far as letters are ASCII.
pub async fn text_is_found_in_either_case(harness: &impl Harness) {
    let said = |id: &str, text: &str| RunRow { text: Some(text.into()), ..row(id) };
    let store =
        filled(harness, [said("a", "Card DECLINED"), said("b", "card declined"), said("c", "T\u{dc}R"), said("d", "t\u{fc}r")]).await;
    for text in ["card declined", "CARD", "ClineD", "d d"] {
        assert_eq!(with_text(&store, text).await, ["b", "a"], "{text}");
    }
    assert_eq!(with_text(&store, "t\u{fc}R").await, ["d"]);
    assert_eq!(with_text(&store, "T\u{dc}").await, ["c"]);
}

/// No character stands for another one.
pub async fn text_is_taken_as_it_is(harness: &impl Harness) {
    let strange = ["100%", "a_b", "a\\b", "it's", "\"so\"", "[x]", "what?", "a*b", "one\ntwo", "nul\0end", "\u{1f980}", "--", "aXb", "100"];
    let said = |(place, text): (usize, &&str)| RunRow { text: Some((*text).into()), workflow: workflow("w"), ..row(&format!("r{place}")) };
    let store = filled(harness, strange.iter().enumerate().map(said)).await;
    for (place, text) in strange.iter().enumerate().take(13) {
        assert_eq!(with_text(&store, text).await, [format!("r{place}")], "{text:?}");
    }
    for text in ["%%", "0%0", "a%b", "__", "\\\\", "\\%", "n?l", "end\0", "\0\0", "' OR 1 --"] {
        assert_eq!(with_text(&store, text).await, [""; 0], "{text:?}");
    }
    assert_eq!(with_text(&store, "\0e").await, ["r9"]);
    assert_eq!(with_text(&store, "end").await, ["r9"], "behind a zero byte");
    assert_eq!(with_text(&store, &"x".repeat(100_000)).await, [""; 0]);
}

/// A run that changes leaves one list for another.
pub async fn lists_follow_the_rows(harness: &impl Harness) {
    let store = harness.open().await;
    let mut writer = Writer::claim(&store, 0).await;
    let waiting = RunRow { status: Status::Waiting, wait: Some("TIMER".into()), text: Some("half".into()), recover: None, ..row("a") };
    let failed = RunRow { text: Some("declined".into()), ..ended("a", Status::Failed) };
    let states = [row("a"), waiting, row("a"), failed, ended("a", Status::Completed), row("a")];
    for state in states {
        writer.write(rows([state.clone()])).await;
        for status in Status::ALL {
            let found = store.runs(&RunFilter { status: Some(status), ..RunFilter::default() }, None, 9).await.unwrap();
            assert_eq!(found.first(), (status == state.status).then_some(&state), "{status:?}");
        }
        let by_wait = ids(&store, &RunFilter { wait: Some("TIMER".into()), ..RunFilter::default() }).await;
        assert_eq!(by_wait.len(), usize::from(state.wait.is_some()));
        assert_eq!(with_text(&store, "half").await.len(), usize::from(state.wait.is_some()));
    }
}

/// In a store with nothing in it, and when nothing is asked for.
pub async fn there_may_be_nothing(harness: &impl Harness) {
    let store = harness.open().await;
    let after = RunCursor { started_at: time(5), run: run("a") };
    for filter in filters() {
        assert_eq!(store.runs(&filter, None, 9).await.unwrap(), []);
        assert_eq!(store.runs(&filter, Some(&after), 9).await.unwrap(), []);
    }
    Writer::claim(&store, 0).await.write(rows([row("a")])).await;
    assert_eq!(store.runs(&RunFilter::default(), None, 0).await.unwrap(), []);
}
