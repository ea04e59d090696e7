//! Compares the routes between instances with their snapshot.

use super::{INSTANCES, SHARDS, SHARDS_LONG, SHARDS_WAIT};
use steadfast_test_snapshots::assert_snapshot;
use steadfast_test_snapshots::bytes::Page;

#[test]
fn shard_routes_match_snapshot() {
    let mut page = Page::default();
    page.value("short request", SHARDS);
    page.value("request that waits", SHARDS_WAIT);
    page.value("long request", SHARDS_LONG);
    page.value("list of instances", INSTANCES);
    assert_snapshot("bytes/shard-routes.txt", page.text());
}
