//! Compares the route of workers with its snapshot.

use super::line::ROUTE;
use steadfast_test_snapshots::assert_snapshot;
use steadfast_test_snapshots::bytes::Page;

#[test]
fn worker_routes_match_snapshot() {
    let mut page = Page::default();
    page.value("stream of a worker", ROUTE);
    assert_snapshot("bytes/worker-routes.txt", page.text());
}
