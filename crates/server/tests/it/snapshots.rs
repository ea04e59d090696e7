//! Compares the interfaces of the server with their committed snapshots.

use steadfast_test_snapshots::assert_file;

#[test]
fn openapi_document_matches_code() {
    assert_file("docs/openapi.json", &steadfast_server::openapi());
}
