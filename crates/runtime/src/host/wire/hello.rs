//! What a worker says before anything else: who it is and what it brings.

use super::bodies::{HelloBody, OfferBody, VersionsBody};
use super::{Broken, VERSION, VERSION_MIN};
use crate::host::Registry;
use bytes::Bytes;
use prost::Message;
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_kernel::{Recovery, WorkflowName};

/// The longest name of a worker, in bytes.
const NAME_MAX: usize = 128;

/// The most workflows that one worker brings.
const OFFERS_MAX: usize = 10_000;

/// The most versions of definitions that one worker brings, of all workflows.
const VERSIONS_MAX: usize = 100_000;

/// The longest name of a version, in bytes.
const VERSION_BYTES_MAX: usize = 128;

/// Heartbeats that make sense: below, a busy machine is taken for a dead one; above, nobody hears of a dead one.
const HEARTBEATS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);

/// Who a worker is and what it brings. It travels with the opening of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The version of the protocol that it speaks.
    pub version: u32,
    /// What it is called. One that comes with the name of another takes its place.
    pub name: String,
    /// Which process it is. One that comes again says by the same number that nothing is left of what it hosted over its lines before; 0 says nothing.
    pub process: u64,
    /// The workflows that it has the code of.
    pub offers: Vec<Offer>,
    /// How many runs it hosts at once.
    pub sessions_max: u32,
    /// How long it may be silent before it is taken for gone. It says something three times as often, and lets go of its runs before that by itself.
    pub heartbeat: Duration,
}

/// A workflow that a worker has the code of, and what goes for its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub workflow: WorkflowName,
    /// Whether its runs go on by themselves after their process died.
    pub recovery: Recovery,
    /// How many of its runs may be under way at once.
    pub slots: Option<u32>,
    /// The versions of its definition that it has, by hash; nothing if its code takes every run.
    pub versions: Option<BTreeSet<String>>,
}

impl Offer {
    /// A workflow with nothing special about it.
    pub fn new(workflow: WorkflowName) -> Self {
        Offer { workflow, recovery: Recovery::Automatic, slots: None, versions: None }
    }

    /// Whether a run that began with that version of a definition can go on there.
    pub(crate) fn knows(&self, definition: Option<&str>) -> bool {
        match (&self.versions, definition) {
            (None, _) => true,
            (Some(versions), Some(definition)) => versions.contains(definition),
            (Some(_), None) => false,
        }
    }
}

impl Hello {
    /// What a worker with that code brings. Plans stay where they are made: see [`Worker`](crate::host::Worker).
    pub(crate) fn offers(registry: &Registry) -> Vec<Offer> {
        let names = registry.names().into_iter();
        let registered = names.filter_map(|name| registry.get(&name).map(|registered| (name, registered)));
        registered
            .filter(|(_, registered)| !registered.is_plan)
            .map(|(workflow, registered)| {
                let versions = registered.code.versions();
                Offer { workflow, recovery: registered.recovery, slots: registered.slots, versions }
            })
            .collect()
    }

    /// The encoded form, with the version of the protocol.
    pub fn encode(&self) -> Bytes {
        let offer = |offer: &Offer| OfferBody {
            workflow: offer.workflow.to_string(),
            manual: offer.recovery == Recovery::Manual,
            slots: offer.slots,
            versions: offer.versions.as_ref().map(|versions| VersionsBody { hashes: versions.iter().cloned().collect() }),
        };
        let body = HelloBody {
            version: self.version,
            name: self.name.clone(),
            process: self.process,
            offers: self.offers.iter().map(offer).collect(),
            sessions_max: self.sessions_max,
            heartbeat_us: u64::try_from(self.heartbeat.as_micros()).unwrap_or(u64::MAX),
        };
        body.encode_to_vec().into()
    }

    /// Reads the encoded form.
    ///
    /// # Errors
    /// Says what is wrong: bytes that are no hello, a version of the protocol that is not spoken here, or what [`check`](Self::check) finds.
    pub fn decode(bytes: &[u8]) -> Result<Self, Broken> {
        let body = HelloBody::decode(bytes).map_err(|error| Broken(format!("the hello cannot be read: {error}")))?;
        if !(VERSION_MIN..=VERSION).contains(&body.version) {
            let why = "use a worker and a server that speak the same one";
            return Err(Broken(format!("the worker speaks version {} of the protocol, the server {VERSION}; {why}", body.version)));
        }
        let offer = |offer: OfferBody| {
            Ok(Offer {
                workflow: WorkflowName::new(&offer.workflow).map_err(|error| Broken(error.to_string()))?,
                recovery: if offer.manual { Recovery::Manual } else { Recovery::Automatic },
                slots: offer.slots,
                versions: offer.versions.map(|versions| versions.hashes.into_iter().collect()),
            })
        };
        let hello = Hello {
            version: body.version,
            name: body.name,
            process: body.process,
            offers: body.offers.into_iter().map(offer).collect::<Result<_, _>>()?,
            sessions_max: body.sessions_max,
            heartbeat: Duration::from_micros(body.heartbeat_us),
        };
        hello.check()?;
        Ok(hello)
    }

    fn versions(&self) -> impl Iterator<Item = &String> {
        self.offers.iter().filter_map(|offer| offer.versions.as_ref()).flatten()
    }

    /// Checks that it can be.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), Broken> {
        let name_fits = (1..=NAME_MAX).contains(&self.name.len()) && self.name.chars().all(|c| !c.is_control());
        let wrong = match () {
            () if !name_fits => format!("the name of a worker has 1 to {NAME_MAX} bytes and no control characters"),
            () if self.offers.is_empty() => "a worker without workflows has nothing to do; register one".into(),
            () if self.offers.len() > OFFERS_MAX => format!("a worker brings at most {OFFERS_MAX} workflows, not {}", self.offers.len()),
            () if self.versions().count() > VERSIONS_MAX => {
                format!("a worker brings at most {VERSIONS_MAX} versions of definitions, not {}", self.versions().count())
            }
            () if self.versions().any(|version| version.len() > VERSION_BYTES_MAX) => {
                format!("the name of a version of a definition has at most {VERSION_BYTES_MAX} bytes")
            }
            () if self.sessions_max == 0 => "sessions_max is 0, which lets nothing through; it must be at least 1".into(),
            () if !HEARTBEATS.contains(&self.heartbeat) => {
                format!("the heartbeat of a worker is {:?} to {:?}, not {:?}", HEARTBEATS.start(), HEARTBEATS.end(), self.heartbeat)
            }
            () if self.offers.iter().any(|offer| offer.slots == Some(0)) => "a limit of 0 slots lets nothing through".into(),
            () => return Ok(()),
        };
        Err(Broken(wrong))
    }
}
