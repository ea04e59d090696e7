//! Dead letters of messages, for tests.

use super::poison;
use steadfast_kernel::{Command, Direction, DropLetter, FailLetter, Failure, Letter, LetterAbout, MessageKind, Origin, Payload};
use steadfast_kernel::{RedriveLetter, RouteName, Seq};

pub(crate) fn mail() -> RouteName {
    RouteName::new("mail/send.v2").unwrap()
}

pub(crate) fn about(direction: Direction, kind: MessageKind, request: &str) -> LetterAbout {
    LetterAbout::Message { route: mail(), direction, kind, peer: "peer-1".into(), request: request.into() }
}

/// A tell that came from `peer-1` and failed at its first attempt.
pub(crate) fn letter_of(request: &str) -> Letter {
    let about = about(Direction::Received, MessageKind::Tell, request);
    Letter { about, attempt: 1, tenant: None, failure: poison(), payload: Payload::bytes("17") }
}

pub(crate) fn add(request: &str) -> Command {
    Command::AddLetter(Box::new(letter_of(request)))
}

pub(crate) fn fail(letter: Seq, failure: Failure) -> Command {
    Command::FailLetter(FailLetter { letter, failure })
}

pub(crate) fn redriven(letter: Seq, origin: Origin) -> Command {
    Command::RedriveLetter(RedriveLetter { letter, origin })
}

pub(crate) fn dropped(letter: Seq, origin: Origin) -> Command {
    Command::DropLetter(DropLetter { letter, origin })
}
