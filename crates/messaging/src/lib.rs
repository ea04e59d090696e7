//! Messages between processes that survive a bad network.
//!
//! ```text
//!   node.call / tell ──► sending (attempts, deadline, budget) ──► peer ──► connection ──► wire ═══► wire ──► receiving ──► inbox ──► handler
//!        stream / sample ─────────────────────────────────────────┘                                                └──► letters
//! ```
//!
//! - A **call** wants an answer, a **tell** wants to be taken. Both are sent again with the same id when the network fails, inside one deadline, and the
//!   receiver runs each once.
//! - A **stream** is pieces in order, both ways, with back-pressure; it ends with its connection. A **sample** is something of which only the newest matters.
//! - Either side of a connection may call the other.
//! - What nobody can read, and what is given up, becomes a **dead letter**.
//!
//! ```
//! use steadfast_messaging::{Failure, Incoming, Node};
//! use std::time::Duration;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Failure> {
//! let bank = Node::bind("127.0.0.1:0").await?;
//! bank.route("transfer", |request: Incoming| async move {
//!     let amount: u64 = request.json()?; // what is no number is a dead letter
//!     Ok(format!("booked {amount}"))
//! });
//!
//! let shop = Node::bind("127.0.0.1:0").await?;
//! let peer = format!("http://{}", bank.addr().unwrap());
//! let receipt = shop.call(peer, "transfer", "7").timeout(Duration::from_secs(30)).await?;
//! assert_eq!(receipt, "booked 7");
//! # Ok(()) }
//! ```
//!
//! The crate knows no store: its inbox is in memory and forgets at a restart. Who keeps dead letters is a port, and so is the wire.

pub mod envelope;
#[doc(hidden)]
pub mod fuzzing;
mod ids;
pub mod inbox;
mod letters;
mod limits;
mod names;
mod newest;
mod node;
mod places;
mod posting;
mod receiving;
mod sending;
mod streams;
mod time;
pub mod wire;

pub use ids::request_id;
pub use letters::{Direction, Letter, LetterKind, Letters, MemoryLetters};
pub use limits::Limits;
pub use node::{Builder, Connected, Node, NodeCounts, Peer, Totals, WeakNode};
pub use receiving::{Caller, Incoming, Route};
pub use sending::{Call, Sending, TIMEOUT, Tell};
pub use steadfast_kernel::{Class, Code, Failure, Policy};
pub use streams::{Opening, Stream, StreamReceiver, StreamSender};
