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

#[test]
fn all_letters_that_fit_are_redriven_together() {
    let served = Served::new();
    for id in ["a", "b", "c"] {
        served.call(&["run", "start", "poison", "--id", id, "--input", "1", "--wait"]).ends_with(1);
    }
    let count = |args: &[&str]| {
        let json = served.call(&[&["letter", "list", "--json"], args].concat()).ends_with(0).json();
        json["items"].as_array().unwrap().len()
    };
    until("there are three letters", || (count(&[]) == 3).then_some(()));
    assert_eq!((count(&["--workflow", "poison"]), count(&["--kind", "step", "--code", "DECODE_FAILURE"])), (3, 3));
    assert_eq!((count(&["--kind", "message"]), count(&["--kind", "callback"]), count(&["--class", "transient"])), (0, 0, 0));
    served.call(&["letter", "list", "--route", "mail"]).ends_with(0).says(&["no such dead letters"]);
    served
        .call(&["letter", "list", "--code", "DECODE_FAILUR"])
        .ends_with(2)
        .says(&["did you mean DECODE_FAILURE?"]);

    served
        .call(&["letter", "redrive", "--workflow", "poison", "--dry-run"])
        .ends_with(0)
        .says(&["3 dead letters would be tried again"]);
    served
        .call(&["letter", "redrive", "--workflow", "poison", "--dry-run", "--limit", "2"])
        .ends_with(0)
        .says(&["2 dead letters would be tried again"]);
    served.call(&["letter", "redrive", "--all"]).ends_with(2).says(&["3 dead letters", "--yes"]);
    let counted = served.call(&["letter", "redrive", "--all", "--dry-run", "--json"]).ends_with(0).json();
    assert_eq!((&counted["matching"], &counted["redriven"]), (&serde_json::json!(3), &serde_json::json!(0)));
    served
        .call(&["letter", "redrive", "--kind", "step", "--rate", "1000", "--limit", "2", "--yes", "--reason", "mended"])
        .ends_with(0)
        .says(&["2 of 2 tried again, 0 of them refused", "2 dead letters redriven, 0 still there"]);
    // They fail again as they did, and are letters again.
    until("there are three letters again", || (count(&[]) == 3).then_some(()));
    let sum = served.call(&["letter", "redrive", "--all", "--yes", "--json"]).ends_with(0).json();
    assert_eq!(
        (&sum["redriven"], &sum["refused"], &sum["more"]),
        (&serde_json::json!(3), &serde_json::json!(0), &serde_json::json!(false))
    );
    served.call(&["letter", "redrive", "--route", "mail"]).ends_with(0).says(&["no such dead letters"]);

    served.call(&["letter", "redrive"]).ends_with(2).says(&["name a letter, or say which are meant"]);
    served.call(&["letter", "redrive", "poison.1", "--all"]).ends_with(2).says(&["not both"]);
    served.call(&["letter", "redrive", "--workflow", "a", "--route", "b"]).ends_with(2);
}
