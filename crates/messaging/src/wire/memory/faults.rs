//! What may go wrong on a network in memory, by direction, and what did.

use std::ops::RangeInclusive;
use std::time::Duration;

/// What happens to packets that travel in one direction. The default is nothing.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Faults {
    /// How likely a packet is lost, from 0 to 1.
    pub drop: f64,
    /// How likely a packet arrives twice, from 0 to 1.
    pub duplicate: f64,
    /// How likely a packet is held back by up to 20 ms, so that later ones overtake it, from 0 to 1.
    pub reorder: f64,
    /// How long packets are on their way. Without `reorder` they still arrive in order. A connection takes that long, too.
    pub delay: Option<RangeInclusive<Duration>>,
    /// How many bytes pass in a second; as many as there are if nothing is said.
    pub rate: Option<u32>,
    /// Half-open: all that travels in this direction vanishes, the end of the link included, and nobody is told. Connections neither succeed nor fail.
    pub swallow: bool,
    /// Connections that are asked for in this direction are refused. Links that are there stay.
    pub refuse: bool,
    /// Links are cut when they have lived for so long, counted from when this was set if they were there before.
    pub cut_after: Option<RangeInclusive<Duration>>,
}

/// What has happened on a network in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Links that were made.
    pub links: u64,
    /// Links that were cut by a fault or by [`cut`](super::Memory::cut).
    pub cut: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Packets that were sent.
    pub packets: u64,
    /// Packets that arrived, twice those that did so twice.
    pub delivered: u64,
    /// Packets that were lost by chance.
    pub dropped: u64,
    /// Packets that were sent a second time by chance.
    pub duplicated: u64,
    /// Packets that were held back by chance.
    pub reordered: u64,
    /// Packets that vanished in a half-open link.
    pub swallowed: u64,
}

/// Which faults hold where: the last rule that fits.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    /// From and to; nothing stands for everybody.
    way: Option<(String, String)>,
    faults: Faults,
}

impl Rules {
    pub(super) fn set(&mut self, from: &str, to: &str, faults: Faults) {
        let way = Some((from.to_owned(), to.to_owned()));
        self.0.retain(|rule| rule.way != way);
        self.0.push(Rule { way, faults });
    }

    pub(super) fn set_everywhere(&mut self, faults: Faults) {
        self.0 = vec![Rule { way: None, faults }];
    }

    pub(super) fn of(&self, from: &str, to: &str) -> Faults {
        let fits = |rule: &&Rule| rule.way.as_ref().is_none_or(|way| way.0 == from && way.1 == to);
        self.0.iter().rev().find(fits).map(|rule| rule.faults.clone()).unwrap_or_default()
    }
}
