//! Dead letters of messages: one of every kind and direction, one that came again, and what people did about them.

use super::{Journal, journal};
use crate::support::routes::{about, letter_of};
use crate::support::{ada, ada_with, entry, poison, timeout};
use steadfast_kernel::{Direction, Entry, Event, Letter, MessageKind, Origin, Payload};

pub(super) fn journals() -> Vec<Journal> {
    vec![journal("route:mail/send.v2", of_people())]
}

fn of_people() -> Vec<Entry> {
    let added = |direction, kind, request: &str| {
        let payload = Payload::bytes(format!("not JSON: {request}"));
        Event::LetterAdded(Box::new(Letter { about: about(direction, kind, request), payload, ..letter_of(request) }))
    };
    let json = Letter { payload: Payload::json("{\"to\":\"ada\"}"), tenant: Some("acme".into()), failure: timeout(), ..letter_of("r-3") };
    vec![
        entry(1, 0, added(Direction::Received, MessageKind::Call, "r-1")),
        entry(2, 10, added(Direction::Received, MessageKind::Frame, "r-2")),
        entry(3, 20, Event::LetterAdded(Box::new(json))),
        entry(4, 30, Event::LetterFailed { letter: 2, attempt: 4, failure: poison() }),
        entry(5, 40, Event::LetterRedriven { letter: 1, origin: ada_with("c-1") }),
        entry(6, 50, Event::LetterDropped { letter: 3, origin: Origin { command: Some("c-2".into()), ..ada() } }),
        entry(7, 60, added(Direction::Sent, MessageKind::Call, "r-4")),
        entry(8, 70, added(Direction::Sent, MessageKind::Tell, "r-5")),
        entry(9, 80, added(Direction::Sent, MessageKind::Frame, "r-6")),
        entry(10, 90, Event::LetterRedriven { letter: 7, origin: Origin::default() }),
        entry(11, 95, added(Direction::Received, MessageKind::Call, "r-1")),
    ]
}
