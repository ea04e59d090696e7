use crate::steadfast::steadfast;

const BROKEN: &str =
    "workflow: greet\nsteps:\n  - name: say\n    set: \"Hello, {{ inptu.name }}\"\n  - name: ship\n    aftr: [say]\n    set: 1\n";

#[test]
fn every_mistake_is_told_with_place_line_and_help() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("greet.yaml"), BROKEN).unwrap();
    let called = steadfast(dir.path(), &["check", "greet.yaml"]).ends_with(1).says(&["problems were found"]);
    called.prints(&[
        "greet.yaml:4:10: `inptu` is not known\n  4 |     set: \"Hello, {{ inptu.name }}\"\n    |          ^\n    = help: did you mean `input`?\n",
        "greet.yaml:6:5: ",
        "  6 |     aftr: [say]\n    |     ^\n",
    ]);
}

#[test]
fn a_folder_is_checked_as_a_whole_and_programs_get_json() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad.yml"), BROKEN).unwrap();
    std::fs::write(dir.path().join("good.yaml"), "workflow: good\nsteps:\n  - { name: one, set: 1 }\n").unwrap();
    std::fs::write(dir.path().join("notes.txt"), "nothing").unwrap();
    let json = steadfast(dir.path(), &["check", ".", "--json"]).ends_with(1).json();
    assert_eq!(json["files"], 2);
    assert_eq!((&json["items"][0]["line"], &json["items"][0]["column"]), (&4.into(), &10.into()), "{json}");
    std::fs::remove_file(dir.path().join("bad.yml")).unwrap();
    steadfast(dir.path(), &["check", "."]).ends_with(0).says(&["1 file is good"]);
    assert_eq!(steadfast(dir.path(), &["check", ".", "--json"]).ends_with(0).json()["items"], serde_json::json!([]));
}

#[test]
fn what_cannot_be_read_is_wrong_use() {
    let dir = tempfile::tempdir().unwrap();
    steadfast(dir.path(), &["check", "nowhere.yaml"]).ends_with(2).says(&["cannot read nowhere.yaml"]);
    steadfast(dir.path(), &["check", "."]).ends_with(2).says(&["no .yaml or .yml files"]);
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_the_others() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.yaml"), b"workflow: a\nsteps: [] # \xc3\xbc \xff\n").unwrap();
    std::fs::write(dir.path().join("b.yaml"), BROKEN).unwrap();
    let called = steadfast(dir.path(), &["check", "."]).ends_with(1);
    called.prints(&["a.yaml:2:15: the file is not text in UTF-8", "b.yaml:4:10: `inptu` is not known"]);
    let json = steadfast(dir.path(), &["check", "a.yaml", "b.yaml", "--json"]).ends_with(1).json();
    assert_eq!((&json["files"], &json["items"][0]["line"]), (&2.into(), &2.into()), "{json}");
}

#[test]
fn a_start_of_a_workflow_that_is_not_in_the_folder_is_noted() {
    let dir = tempfile::tempdir().unwrap();
    let text = "workflow: a\nsteps:\n  - { name: one, start: { workflow: a } }\n  - { name: two, start: { workflow: mial } }\n";
    std::fs::write(dir.path().join("a.yaml"), text).unwrap();
    let called = steadfast(dir.path(), &["check", "."]).ends_with(0);
    let called = called.says(&["step `two` of ./a.yaml starts mial, which no file here defines", "1 file is good"]);
    assert!(!called.err.contains("step `one`"), "{called:?}");
    assert!(!steadfast(dir.path(), &["check", "a.yaml"]).ends_with(0).err.contains("note"), "the others were not looked at");
}
