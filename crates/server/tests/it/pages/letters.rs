//! The page of dead letters: what is on it, and all that match tried again.

use super::site::Site;
use steadfast_kernel::{Direction, Failure, MessageKind, Payload};
use steadfast_runtime::MessageLetter;

#[tokio::test]
async fn letters_are_narrowed_and_all_that_match_are_tried_again() {
    let site = Site::new().await;
    site.run("team/poison", "mail", "FAILED").await;
    for request in ["r-1", "bad-<2>"] {
        let message = MessageLetter {
            route: "mail/send".into(),
            direction: Direction::Sent,
            kind: MessageKind::Tell,
            peer: "peer-1".into(),
            request: request.into(),
            tenant: None,
            attempts: 1,
            failure: Failure::transient("the peer is away"),
            payload: Payload::bytes("17"),
        };
        site.engine.post_message(message).await.unwrap();
    }
    let all = site.page("/letters").await;
    all.has("Yes, try 3 dead letters again");
    all.has("steadfast letter redrive --all --reason '…'");
    let messages = site.page("/letters?kind=message&code=UNAVAILABLE").await;
    messages.has("bad-&lt;2&gt;");
    messages.has("href=\"/letters?route=mail%2Fsend\"");
    messages.has("Yes, try 2 dead letters again");
    messages.has("steadfast letter redrive --kind 'message' --code 'UNAVAILABLE' --reason '…'");
    messages.has_not("team/poison.1");
    site.page("/letters?route=nowhere").await.has("No such dead letters");
    assert_eq!(site.page("/letters?kind=mesage").await.status, 400);
    let form = [("verb", "redrive"), ("kind", "message"), ("addedBefore", "2999-01-01T00:00:00Z"), ("reason", "the peer is back")];
    assert_eq!(site.form("/letters", &form).await.status, 400, "nobody has agreed to it");
    let done = site.form("/letters", &[&form[..], &[("sure", "yes")]].concat()).await;
    assert_eq!(done.status, 200, "{}", done.text);
    for says in ["1 dead letter tried again", "1 dead letter could not be", "the peer is still away"] {
        assert!(done.text.contains(says), "{says}: {}", done.text);
    }
    let left = site.page("/letters?kind=message").await;
    left.has("Yes, try 1 dead letter again");
}
