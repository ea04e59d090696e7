//! The README shows code that is compiled and run: the middle of the checkout example.

use std::path::Path;

#[test]
fn the_readme_shows_the_example_word_for_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = std::fs::read_to_string(root.join("examples/checkout/main.rs")).unwrap();
    let (_, after) = example.split_once("// README: begin\n").unwrap();
    let (shown, _) = after.split_once("// README: end").unwrap();
    let shown = shown.replace("    show(&run).await?;\n", "");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.contains(&format!("```rust\n{shown}```")), "put this into the README:\n```rust\n{shown}```");
}
