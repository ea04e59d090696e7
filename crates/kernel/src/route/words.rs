//! What is said of a message: whether it came or went, and what it was.

/// Whether a message came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Direction {
    /// It came from a peer: to redrive it is to handle it again.
    Received,
    /// It was to go to a peer: to redrive it is to send it again.
    Sent,
}

impl Direction {
    /// The stored and public name.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::Received => "received",
            Direction::Sent => "sent",
        }
    }

    /// The direction of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Direction::Received, Direction::Sent].into_iter().find(|direction| direction.as_str() == name)
    }

    /// What stands before the peer: `from` or `to`.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Received => "from",
            Direction::Sent => "to",
        }
    }
}

/// What a message was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum MessageKind {
    /// A request with an answer.
    Call,
    /// A one-way message.
    Tell,
    /// Bytes that nobody could make anything of.
    Frame,
}

impl MessageKind {
    /// The stored and public name.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageKind::Call => "call",
            MessageKind::Tell => "tell",
            MessageKind::Frame => "frame",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [MessageKind::Call, MessageKind::Tell, MessageKind::Frame]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}
