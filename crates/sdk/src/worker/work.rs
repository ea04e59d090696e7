//! What a worker does as long as it is there: it visits the server, or each of its instances, and follows what becomes of them.
//!
//! An instance that is new gets a visit. One that is gone from the list is not come to again when its line has ended; if the line stands for all that, it is drained once the instance was
//! missing from several answers in a row, because an answer may be older than the instance. One that does not want this worker for good ends all of it: whoever runs it has to know, and would not
//! if the others hid that.

use super::instances::{self, Instances};
use super::visit::{Arrived, Hosting, News, Over, Visit, Whom};
use super::wire::Shown;
use crate::messages::{Peer, Stream};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use steadfast_kernel::{Class, Failure};
use steadfast_runtime::host::Parted;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};

/// How often it is asked which instances there are.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// How soon that is after a line began to stand, or has ended: others do so at the same time.
const ASK_SOON: Duration = Duration::from_secs(1);

/// An instance that was missing from so many answers in a row is gone, though its line stands.
const MISSED_MAX: u32 = 3;

/// A visit of an instance.
struct Visited {
    let_go: watch::Sender<bool>,
    /// Its line stands.
    stands: bool,
    /// How many answers in a row it was missing from.
    missed: u32,
}

/// What was heard of the instances.
enum Heard {
    Among(Instances),
    /// Nobody stands in line, and the address that was given is that of a server without instances.
    Alone,
    Nothing,
}

pub(super) struct Work {
    hosting: Arc<Hosting>,
    /// The addresses of the server that it was given.
    given: Vec<Peer>,
    /// To whom the token is shown.
    shown: Shown,
    visits: JoinSet<(Option<Peer>, Over)>,
    /// The instances that are visited; none while it visits the server as a whole.
    instances: BTreeMap<Peer, Visited>,
    /// Ends the visit of the server as a whole.
    alone: Option<watch::Sender<bool>>,
    /// Whether lines stand.
    news: mpsc::UnboundedReceiver<News>,
    tell: mpsc::UnboundedSender<News>,
    asking: Option<BoxFuture<'static, Heard>>,
    /// When it is asked again.
    due: BoxFuture<'static, ()>,
    is_soon: bool,
    /// How it has ended, as far as it has.
    parted: Option<Parted>,
}

impl Work {
    /// Comes to the server for the first time.
    ///
    /// # Errors
    /// If it does not want this worker. That it cannot be reached is none: it is tried again.
    pub(super) async fn begin(hosting: Hosting, given: Vec<Peer>, shown: Shown) -> Result<Self, Failure> {
        let (due, (tell, news)) = (hosting.worker.clock.sleep(ASK_EVERY), mpsc::unbounded_channel());
        let mut work = Work {
            hosting: Arc::new(hosting),
            given,
            shown,
            visits: JoinSet::new(),
            instances: BTreeMap::new(),
            alone: None,
            news,
            tell,
            asking: None,
            due,
            is_soon: false,
            parted: None,
        };
        match work.hosting.arrive(&work.given).await {
            Err(failure) if failure.class != Class::Transient => return Err(failure),
            Ok(Arrived::Among(instances)) => {
                work.shown.set(&work.given, instances.keys());
                let first = work.first_of(&instances).await?;
                work.go_to(instances, first);
            }
            arrived => work.go_alone(Some(arrived)),
        }
        Ok(work)
    }

    /// A line to whichever instance can be reached, if one can.
    async fn first_of(&self, instances: &Instances) -> Result<Option<(Peer, Stream)>, Failure> {
        for address in instances.keys() {
            match self.hosting.stream(address).await {
                Ok(stream) => return Ok(Some((address.clone(), stream))),
                Err(failure) if failure.class != Class::Transient => return Err(failure),
                Err(failure) => tracing::warn!(server = %address, %failure, "the instance cannot be reached"),
            }
        }
        Ok(None)
    }

    /// Works until it is to drain, or is not wanted.
    pub(super) async fn run(mut self) -> Parted {
        loop {
            let may_ask = self.alone.is_none() && self.asking.is_none() && !self.is_ending();
            tokio::select! {
                biased;
                ended = self.visits.join_next() => match ended {
                    Some(ended) => self.ended(ended),
                    None if self.is_ending() => return self.parted.unwrap_or(Parted::Drained),
                    None => self.go_alone(None), // the last instance was let go of, and is not gone, or others are there by now
                },
                Some((address, stands)) = self.news.recv() => self.stands(&address, stands),
                heard = answer(&mut self.asking) => self.learn(heard),
                () = &mut self.due, if may_ask => self.ask(),
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.hosting.is_draining() || self.parted.is_some()
    }

    /// Visits the server as a whole.
    fn go_alone(&mut self, first: Option<Result<Arrived, Failure>>) {
        let (let_go, is_let_go) = watch::channel(false);
        self.alone = Some(let_go);
        (self.asking, self.due, self.is_soon) = (None, self.hosting.worker.clock.sleep(ASK_EVERY), false); // it is asked on the way
        self.shown.set(&self.given, []);
        let whom = Whom::Server(self.given.clone());
        let visit = Visit { hosting: Arc::clone(&self.hosting), whom, let_go: is_let_go };
        self.visits.spawn(async move { (None, visit.run(first).await) });
    }

    /// Visits these instances, and no others.
    fn go_to(&mut self, instances: Instances, first: Option<(Peer, Stream)>) {
        self.alone = None;
        self.shown.set(&self.given, instances.keys());
        let mut first = first;
        for (address, id) in &instances {
            let first = first.take_if(|(of, _)| of == address);
            match self.instances.get_mut(address) {
                Some(visited) => visited.missed = 0,
                None => self.visit(address, id, first.map(|(_, stream)| Ok(Arrived::Line(stream)))),
            }
        }
        for (address, visited) in self.instances.iter_mut().filter(|(address, _)| !instances.contains_key(address)) {
            visited.missed += 1;
            if (!visited.stands || visited.missed >= MISSED_MAX) && !visited.let_go.send_replace(true) {
                tracing::info!(server = %address, "the instance is gone, and is let go of");
            }
        }
    }

    fn visit(&mut self, address: &Peer, id: &str, first: Option<Result<Arrived, Failure>>) {
        tracing::info!(server = %address, instance = id, "works for an instance of the server");
        let (let_go, is_let_go) = watch::channel(false);
        self.instances.insert(address.clone(), Visited { let_go, stands: false, missed: 0 });
        let (key, whom) = (Some(address.clone()), Whom::Instance(address.clone(), self.tell.clone()));
        let visit = Visit { hosting: Arc::clone(&self.hosting), whom, let_go: is_let_go };
        self.visits.spawn(async move { (key, visit.run(first).await) });
    }

    /// A line stands now, or has ended. That may mean that others have come or gone.
    fn stands(&mut self, address: &Peer, stands: bool) {
        if let Some(visited) = self.instances.get_mut(address) {
            visited.stands = stands;
        }
        if !std::mem::replace(&mut self.is_soon, true) {
            self.due = self.hosting.worker.clock.sleep(ASK_SOON);
        }
    }

    /// Asks those whose lines stand, one after the other; if there are none, whoever may know.
    fn ask(&mut self) {
        let stand = self.instances.iter().filter(|(_, visited)| visited.stands).map(|(address, _)| address.clone());
        let (mut asked, mut given): (Vec<_>, Vec<Peer>) = (stand.collect(), Vec::new());
        if asked.is_empty() {
            asked.extend(self.instances.keys().cloned());
            given.clone_from(&self.given);
        }
        let hosting = Arc::clone(&self.hosting);
        self.is_soon = false;
        self.asking = Some(async move { hear(&hosting, &given, &asked).await }.boxed());
    }

    fn learn(&mut self, heard: Heard) {
        self.asking = None;
        if !self.is_soon {
            self.due = self.hosting.worker.clock.sleep(ASK_EVERY);
        }
        match heard {
            _ if self.is_ending() => {}
            Heard::Among(instances) => self.go_to(instances, None),
            Heard::Alone => {
                for visited in self.instances.values() {
                    visited.let_go.send_replace(true);
                }
                self.go_alone(None);
            }
            Heard::Nothing => {}
        }
    }

    /// A visit is over.
    fn ended(&mut self, ended: Result<(Option<Peer>, Over), JoinError>) {
        let (address, over) = match ended {
            Ok(ended) => ended,
            Err(_) => return self.end(Parted::Ended), // it has panicked
        };
        let visited = address.as_ref().and_then(|address| self.instances.remove(address));
        match over {
            Over::Among(instances) if !self.is_ending() => self.go_to(instances, None),
            Over::Among(_) => {}
            Over::Parted(parted) if self.is_ending() => self.end(parted),
            Over::Parted(_) if visited.is_some_and(|visited| *visited.let_go.borrow()) => {}
            Over::Parted(parted) => {
                if let Some(address) = address {
                    tracing::error!(server = %address, why = %parted, "an instance does not take this worker, which leaves all of them");
                }
                self.end(parted);
            }
        }
    }

    /// It ends that way, unless there was a reason before that says more. Whoever is visited still is left.
    fn end(&mut self, parted: Parted) {
        if self.parted.as_ref().is_none_or(|before| *before == Parted::Drained) {
            self.parted = Some(parted);
        }
        for let_go in self.instances.values().map(|visited| &visited.let_go).chain(&self.alone) {
            let_go.send_replace(true);
        }
    }
}

/// What the first says that knows something. Those whose address was given come first.
async fn hear(hosting: &Hosting, given: &[Peer], others: &[Peer]) -> Heard {
    let mut heard = Heard::Nothing;
    for (index, server) in given.iter().chain(others).enumerate() {
        match instances::ask(&hosting.node, server).await {
            Ok(instances) if !instances.is_empty() => return Heard::Among(instances),
            Ok(_) if index < given.len() => heard = Heard::Alone,
            Ok(_) => {}
            Err(failure) => tracing::debug!(%server, %failure, "the instance does not say which others there are"),
        }
    }
    heard
}

/// What is heard, if somebody is asked.
async fn answer(asking: &mut Option<BoxFuture<'static, Heard>>) -> Heard {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}
