use crate::served::Served;
use crate::steadfast::until;

#[test]
fn dead_letters_are_listed_shown_redriven_and_dropped() {
    let served = Served::new();
    served.call(&["letter", "list"]).ends_with(0).says(&["no dead letters"]);
    served
        .call(&["run", "start", "poison", "--id", "p", "--input", r#"{"order":17}"#, "--wait"])
        .ends_with(1);
    let one = |number: u32| {
        until("there is one letter", || {
            let json = served.call(&["letter", "list", "--json"]).ends_with(0).json();
            let items = json["items"].as_array().unwrap();
            (items.len() == 1 && items[0]["id"] == format!("poison.{number}").as_str()).then_some(())
        });
    };
    one(1);
    served
        .call(&["letter", "list"])
        .ends_with(0)
        .prints(&["poison.1", "p  ", "read", "the body cannot be read"]);
    served
        .call(&["letter", "show", "poison.1"])
        .ends_with(0)
        .prints(&["poison.1  step read of p", "DECODE_FAILURE", r#"{"order":17}"#]);
    served
        .call(&["letter", "redrive", "poison.1", "--reason", "mended"])
        .ends_with(0)
        .says(&["poison.1 is redriven"]);
    // It fails again as it did, and is a letter again.
    let number = until("there is another letter", || {
        let json = served.call(&["letter", "list", "--json"]).json();
        let id = json["items"][0]["id"].as_str()?.to_owned();
        (id != "poison.1").then_some(id)
    });
    assert_eq!(served.call(&["letter", "drop", &number, "--reason", "void", "--json"]).ends_with(0).json(), serde_json::Value::Null);
    served.call(&["letter", "list"]).says(&["no dead letters"]);
    served.call(&["letter", "show", "poison.1"]).ends_with(1).says(&["SF0115"]);
    served.call(&["letter", "drop", "nonsense"]).ends_with(2);
}
