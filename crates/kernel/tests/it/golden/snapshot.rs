//! Compares the saved states of golden journals with their snapshot.

use super::{entries, state, text};
use steadfast_kernel::snapshot::FOLD;
use steadfast_kernel::{Entity, Snapshot};
use steadfast_test_snapshots::bytes::Page;
use steadfast_test_snapshots::{assert_snapshot, labels};

labels!(Machines of Entity {
    Entity::Run(_) => "run",
    Entity::Limit(_) => "limit",
    Entity::Letters(_) => "dead letters of a workflow",
    Entity::Key(_) => "key",
    Entity::Plan(_) => "plan",
    Entity::Lock(_) => "lock",
    Entity::Route(_) => "dead letters of a route",
});

/// Journals that together have an entity of every kind in many states.
const STORIES: [&str; 10] = [
    "another-life",
    "by-hand-commons",
    "by-hand-keys",
    "by-hand-plans",
    "by-hand-routes",
    "letters",
    "line",
    "order",
    "paused",
    "undo-fails",
];

#[test]
fn saved_states_match_snapshot() {
    let mut page = Page::default();
    page.value("fold", FOLD);
    for (id, records) in STORIES.into_iter().flat_map(text::load) {
        let state = state::state(&id, &entries(&records));
        let label = Machines::of(&state);
        page.cover(label);
        page.form(&format!("{label} {id}"));
        let Snapshot { entity: _, seq, fold: _, state } = Snapshot::of(&id, &state).unwrap();
        page.value("seq", seq);
        page.json(&state);
    }
    page.assert_covers(Machines::ALL);
    assert_snapshot("bytes/saved-states.txt", page.text());
}
