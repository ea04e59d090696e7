//! Several instances that share one store: each works on some of its shards, and any of them can be asked for anything.
//!
//! An instance says where the others reach it, and needs a way to them: a [`Carrier`], which with the feature `messages` is a [`Line`] over a node. What is asked of it
//! the others' way is answered by [`answer`], or by [`Engine::answer_instance`] if the carrier is your own.

use crate::{Engine, EngineBuilder, Error};
use bytes::Bytes;
pub use steadfast_runtime::{Carrier, Cluster, ClusterView, Question};
pub use steadfast_store::{Instance, Lease, Leases, Member};

impl EngineBuilder {
    /// Shares the shards of the store with other instances. The engine begins with those that nobody has, and gives some of them away when others come.
    pub fn cluster(mut self, cluster: Cluster) -> Self {
        self.inner.cluster = Some(cluster);
        self
    }
}

impl Engine {
    /// The instances that share the store, and who has which shard; nothing if it is not shared.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn cluster(&self) -> Result<Option<ClusterView>, Error> {
        Ok(self.inner.cluster().await?)
    }

    /// Asks an instance to give away all its shards and take no more, or takes that back. False if there is no such instance.
    ///
    /// # Errors
    /// If the store is not shared, or cannot be used.
    pub async fn drain_instance(&self, id: &str, draining: bool) -> Result<bool, Error> {
        Ok(self.inner.drain_instance(id, draining).await?)
    }

    /// Has a node answer what other instances ask: see [`answer`].
    #[cfg(feature = "messages")]
    pub fn answer_instances(&self, node: &crate::messages::Node) {
        answer(node, &self.inner);
    }

    /// Answers what another instance asks by a [`Carrier`], which says whether it may have delivered it before.
    pub async fn answer_instance(&self, asked: &[u8], again: bool) -> Bytes {
        self.inner.answer(asked, again).await
    }
}

#[cfg(feature = "messages")]
pub use line::{INSTANCES, Line, answer, answer_if};

#[cfg(feature = "messages")]
mod line {
    use crate::messages::{Caller, Incoming, Node, Route, Stream};
    use bytes::{Bytes, BytesMut};
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use serde_json::json;
    use std::sync::Arc;
    use std::time::Duration;
    use steadfast_kernel::{Code, Failure, Policy};
    use steadfast_runtime::{Carrier, Engine, Question, WeakEngine};
    use steadfast_store::Member;

    /// The route by which instances ask each other.
    const SHARDS: &str = "steadfast.shards";

    /// The same for what waits for something: nothing else waits behind it.
    const SHARDS_WAIT: &str = "steadfast.shards.wait";

    /// How many questions are answered side by side.
    const SIDE_BY_SIDE: usize = 16_384;

    /// The same for what is long, by streams.
    const SHARDS_LONG: &str = "steadfast.shards.long";

    /// What is longer than that goes by a stream, or what is longer than a message may be if that is less.
    const LONG: usize = 64 << 10;

    /// How much of it goes at once, with the same exception.
    const PIECE: usize = 32 << 10;

    /// Nothing is longer: a payload that has as many bytes as it may have, and all of them as numbers.
    const LONGEST: usize = 256 << 20;

    /// The route that tells which instances there are, for workers: JSON, `{"instances": [{"id": …, "address": …}]}`.
    pub const INSTANCES: &str = "steadfast.instances";

    /// An instance that does not answer is asked once more after this; then it is looked who has the shard.
    const AGAIN_AFTER: Duration = Duration::from_millis(100);

    /// The way to other instances over a node.
    #[derive(Clone, Debug)]
    pub struct Line(Node);

    impl Line {
        /// Over that node, whose wire shows the others what they ask for.
        pub fn new(node: Node) -> Self {
            Line(node)
        }
    }

    impl Carrier for Line {
        fn carry(&self, to: &Member, question: Question) -> BoxFuture<'static, Result<Bytes, Failure>> {
            let Question { bytes: asked, within, waits, once } = question;
            if asked.len() > at_most(LONG, &self.0) {
                return long(self.0.clone(), to.address.clone(), asked, within).boxed();
            }
            let policy = if once { Policy::once() } else { Policy::constant(AGAIN_AFTER).max_attempts(2) };
            let call = self
                .0
                .call(to.address.as_str(), if waits { SHARDS_WAIT } else { SHARDS }, asked)
                .timeout(within)
                .policy(policy);
            call.into_future().boxed()
        }
    }

    /// That many bytes, or as many as the node lets a message have; the others have the same limit, and none is less than a byte.
    fn at_most(bytes: usize, node: &Node) -> usize {
        bytes.min(node.limits().payload_bytes_max).max(1)
    }

    /// Asks by a stream what is too long for a message.
    async fn long(node: Node, address: String, asked: Bytes, within: Duration) -> Result<Bytes, Failure> {
        let answer = async {
            let mut stream = node.stream(address.as_str(), SHARDS_LONG, Bytes::new()).await?;
            let piece = at_most(PIECE, &node);
            for from in (0..asked.len()).step_by(piece) {
                stream.send(asked.slice(from..asked.len().min(from + piece))).await?;
            }
            stream.finish();
            stream.next().await?.ok_or_else(|| Failure::transient("the instance has said nothing"))
        };
        tokio::time::timeout(within, answer)
            .await
            .unwrap_or_else(|_| Err(Failure::transient(format!("the instance has not answered within {within:?}"))))
    }

    /// Answers what has come by a stream.
    async fn answer_long(mut stream: Stream, engine: Result<Engine, Failure>) -> Result<(), Failure> {
        let (engine, mut asked) = (engine?, BytesMut::new());
        while let Some(piece) = stream.next().await? {
            asked.extend_from_slice(&piece);
            if asked.len() > LONGEST {
                return Err(Failure::new(Code::ResourceExhausted, format!("what is asked has more than {LONGEST} bytes")));
            }
        }
        let answer = engine.answer(&asked, false).await; // a stream is never repeated
        stream.send(answer).await
    }

    /// Has the engine answer at a node what other instances ask. The node does not keep the engine alive.
    pub fn answer(node: &Node, engine: &Engine) {
        answer_if(node, engine, |_| Ok(()));
    }

    /// The same, if that lets them: an instance may ask for anything.
    pub fn answer_if(node: &Node, engine: &Engine, allow: impl Fn(&Caller) -> Result<(), Failure> + Send + Sync + 'static) {
        let (engine, allow) = (WeakEngine::of(engine), Arc::new(allow));
        for route in [SHARDS, SHARDS_WAIT] {
            let (weak, may) = (engine.clone(), Arc::clone(&allow));
            let handler = move |incoming: Incoming| {
                let answered = may(&incoming.caller).and_then(|()| running(&weak));
                async move { Ok::<_, Failure>(answered?.answer(&incoming.payload, incoming.attempt > 1).await) }
            };
            node.route_by(route, Route::new(handler).side_by_side(SIDE_BY_SIDE));
        }
        let (weak, may) = (engine.clone(), Arc::clone(&allow));
        node.route_streams(SHARDS_LONG, move |stream: Stream, incoming| {
            let answered = may(&incoming.caller).and_then(|()| running(&weak));
            answer_long(stream, answered)
        });
        node.route(INSTANCES, move |incoming: Incoming| {
            let answered = allow(&incoming.caller).and_then(|()| running(&engine));
            async move {
                let instances = answered?.instances();
                let instances: Vec<_> = instances.iter().map(|member| json!({ "id": member.id, "address": member.address })).collect();
                Ok::<_, Failure>(Bytes::from(json!({ "instances": instances }).to_string()))
            }
        });
    }

    fn running(engine: &WeakEngine) -> Result<Engine, Failure> {
        engine.upgrade().ok_or_else(|| Failure::transient("the engine has stopped here"))
    }

    #[cfg(test)]
    mod snapshot;
}
