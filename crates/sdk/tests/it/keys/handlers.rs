//! Who is told: handlers that fail, hang, panic or are slow, handlers that come later, addresses, and runs.
//!
//! Subject: `crates/runtime/src/callbacks/handlers.rs`.
//! Subject: `crates/runtime/src/callbacks/courier.rs`.

use super::{Told, config, down_for, pass, put, seen_next, told_by};
use crate::support::engine;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::memory::Memory;
use steadfast::{Call, Caller, Change, Ctx, Engine, Expired, Failure, HOUR, MINUTE, SECOND, Target, workflow};

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_what_the_key_held() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    let stamp = engine.put("session:42", &("ada", 7)).ttl(SECOND).owner("web-1").await.unwrap();
    pass(SECOND).await;
    let (_, expired) = told.all().remove(0);
    assert_eq!(expired.value::<(String, u32)>().unwrap(), ("ada".to_string(), 7));
    assert_eq!((expired.owner.as_deref(), expired.expired_at, expired.attempt), (Some("web-1"), stamp.expires_at, 1));
    assert_eq!(expired.idempotency_key(), format!("session:42/{}", stamp.revision));
}

#[tokio::test(start_paused = true)]
async fn a_value_of_another_kind_is_a_dead_letter_at_once() {
    let handler = |expired: Expired| async move { expired.value::<u32>().map(drop) };
    let engine = engine(&Memory::new()).on_expire("", handler).start().await.unwrap();
    engine.put("k", &"a secret").ttl(SECOND).await.unwrap();
    pass(SECOND).await;
    let letters = engine.letters(None, 10).await.unwrap().items;
    assert_eq!(letters[0].failure.message, "the value of key k cannot be read as u32", "it is not quoted");
}

#[tokio::test(start_paused = true)]
async fn the_longest_prefix_counts_and_other_keys_are_nobodys() {
    let (all, one) = (Told::new(), Told::new());
    let engine = engine(&Memory::new())
        .on_expire("file:", all.handler())
        .on_expire("file:tmp/", one.handler())
        .start()
        .await
        .unwrap();
    for key in ["file:a", "file:tmp/a", "other"] {
        put(&engine, key, SECOND).await;
    }
    let mut watch = engine.watch("other").await.unwrap();
    pass(SECOND).await;
    assert_eq!((all.lines(), one.lines()), (vec!["file:a a1".to_string()], vec!["file:tmp/a a1".to_string()]));
    assert!(matches!(seen_next(&mut watch).await.change, Change::Expired { .. }), "whoever watches sees it");
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, []);
}

/// A handler that takes that long, and notes what it was told when it is done.
fn slowly(told: &Told, time: Duration) -> impl Fn(Expired) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync + 'static {
    let told = told.clone();
    move |expired| {
        let told = told.clone();
        async move {
            tokio::time::sleep(time).await;
            told.note(expired);
            Ok(())
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_has_as_long_as_an_attempt_may_take() {
    let told = Told::new();
    let engine = engine(&Memory::new())
        .config(config())
        .on_expire("", slowly(&told, 9 * SECOND))
        .start()
        .await
        .unwrap();
    put(&engine, "k", SECOND).await;
    pass(MINUTE).await;
    assert_eq!(told.lines(), ["k a1"]);
}

#[tokio::test(start_paused = true)]
async fn an_end_waits_for_its_handler_when_a_restart_comes_without_it() {
    let (told, store) = (Told::new(), Memory::new());
    let first = told_by(&store, told.handler()).start().await.unwrap();
    put(&first, "k", SECOND).await;
    first.shutdown().await;

    let store = store.reopen();
    let second = engine(&store).config(config()).start().await.unwrap();
    pass(HOUR).await;
    let waiting = second.callbacks("", None, 10).await.unwrap().items;
    assert_eq!((waiting.len(), waiting[0].attempt, waiting[0].target.as_str()), (1, 1, "handler"));
    second.on_expire("", told.handler()).unwrap();
    pass(SECOND).await;
    assert_eq!(told.lines(), ["k a1"]);
    assert_eq!(second.callbacks("", None, 10).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn keys_that_were_put_before_there_was_a_handler_are_told_to_it() {
    let told = Told::new();
    let engine = engine(&Memory::new()).config(config()).start().await.unwrap();
    put(&engine, "k", SECOND).await;
    engine.on_expire("", told.handler()).unwrap();
    pass(SECOND).await;
    assert_eq!(told.lines(), ["k a1"]);
}

#[tokio::test(start_paused = true)]
async fn a_prefix_that_no_key_has_is_refused() {
    let engine = engine(&Memory::new()).start().await.unwrap();
    assert_eq!(engine.on_expire("not a key", |_| async { Ok(()) }).unwrap_err().code(), "SF0101");
    let wrong = Engine::in_memory().on_expire("not a key", |_| async { Ok(()) }).start().await;
    assert_eq!(wrong.err().unwrap().code(), "SF0101");
}

#[workflow]
async fn clean_up(ctx: Ctx, file: String) -> Result<String, Failure> {
    ctx.step("remove", || async { Ok::<_, Failure>(()) }).await?;
    Ok(file)
}

#[tokio::test(start_paused = true)]
async fn a_key_that_starts_a_run_starts_one_for_each_of_its_expiries() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).register(clean_up).start().await.unwrap();
    let mut revisions = Vec::new();
    for _ in 0..2 {
        let stamp = engine.put("tmp/a", &1).ttl(SECOND).start("clean_up", &"a.txt").await.unwrap();
        revisions.push(stamp.revision);
        pass(2 * SECOND).await;
    }
    for revision in revisions {
        let run = engine.run(&format!("expired/tmp/a/{revision}")).unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "a.txt");
    }
    assert_eq!(engine.list().await.unwrap().items.len(), 2);
    assert_eq!(told.len(), 0, "the key says who is told, so the handler is not");
}

#[tokio::test(start_paused = true)]
async fn a_key_cannot_start_what_is_not_registered() {
    let engine = engine(&Memory::new()).register(clean_up).start().await.unwrap();
    let unknown = engine.put("k", &1).ttl(SECOND).start("unknown", &1).await.unwrap_err();
    assert_eq!(unknown.code(), "SF0102");
    let wrong = engine.put("k", &1).ttl(SECOND).start("not a name", &1).await.unwrap_err();
    assert_eq!(wrong.code(), "SF0101");
    assert_eq!(engine.get("k").await.unwrap(), None);
}

/// Answers at every address but those of `sick`, where nobody ever does.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Vec<String>>>);

impl Caller for Fake {
    fn check(&self, url: &str) -> Result<(), String> {
        if url.starts_with("https://") { Ok(()) } else { Err("it does not begin with https://".into()) }
    }

    fn target(&self, url: &str) -> String {
        url.split('/').nth(2).unwrap_or_default().into()
    }

    fn call(&self, url: &str, call: Call) -> BoxFuture<'static, Result<(), Failure>> {
        match self.target(url).as_str() {
            "sick" => std::future::pending().boxed(),
            _ => {
                self.0.lock().unwrap().push(format!("{} a{}", call.idempotency_key(), call.attempt));
                std::future::ready(Ok(())).boxed()
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_is_called_and_one_that_does_not_answer_delays_no_other() {
    let fake = Fake::default();
    let engine = engine(&Memory::new()).config(config()).caller(fake.clone()).start().await.unwrap();
    let refused = engine.put("k", &1).ttl(SECOND).call("http://well/k").await.unwrap_err();
    assert_eq!(refused.code(), "SF0121");
    for number in 0..100 {
        engine.put(&format!("sick{number}"), &1).ttl(SECOND).call("https://sick/k").await.unwrap();
    }
    let stamp = engine.put("well", &1).ttl(SECOND).call("https://well/k?token=secret").await.unwrap();
    assert_eq!(engine.get("well").await.unwrap().unwrap().on_expire, Some(Target::Url("https://well/k?token=secret".into())));
    pass(SECOND).await;
    assert_eq!(*fake.0.lock().unwrap(), [format!("well/{} a1", stamp.revision)]);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_cannot_call_addresses_refuses_them() {
    let engine = engine(&Memory::new()).start().await.unwrap();
    assert_eq!(engine.put("k", &1).ttl(SECOND).call("https://well/k").await.unwrap_err().code(), "SF0121");
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_its_handler_when_a_restart_comes_without_it() {
    let (told, store) = (Told::new(), Memory::new());
    let first = told_by(&store, told.answering(down_for(1))).start().await.unwrap();
    put(&first, "k", SECOND).await;
    pass(SECOND).await;
    first.shutdown().await;
    let second = engine(&store.reopen()).config(config()).start().await.unwrap();
    pass(HOUR).await;
    assert_eq!(second.callbacks("", None, 10).await.unwrap().items[0].attempt, 2, "no attempt is made where nobody can be told");
    second.on_expire("", told.handler()).unwrap();
    pass(SECOND).await;
    assert_eq!(told.lines(), ["k a1", "k a2"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_at_work_may_finish_when_the_engine_stops() {
    let (told, store) = (Told::new(), Memory::new());
    let first = engine(&store).config(config()).on_expire("", slowly(&told, 3 * SECOND)).start().await.unwrap();
    put(&first, "k", SECOND).await;
    pass(SECOND + SECOND / 2).await;
    first.shutdown().await;
    assert_eq!(told.lines(), ["k a1"]);
    let second = told_by(&store.reopen(), told.handler()).start().await.unwrap();
    pass(HOUR).await;
    assert_eq!(told.lines(), ["k a1"], "that it was told is on record");
    assert_eq!(second.callbacks("", None, 10).await.unwrap().items, []);
}

/// So many that they do not all wait with what they have to tell.
#[tokio::test(start_paused = true)]
async fn of_very_many_that_wait_for_a_slow_handler_each_is_told_once_with_its_value() {
    const KEYS: usize = 3000;
    let told = Told::new();
    let engine = engine(&Memory::new())
        .config(config())
        .on_expire("", slowly(&told, SECOND / 10))
        .start()
        .await
        .unwrap();
    for number in 0..KEYS {
        put(&engine, &format!("k{number}"), SECOND).await;
    }
    pass(MINUTE).await;
    let mut told = told.all();
    assert!(
        told.iter()
            .all(|(_, expired)| expired.value::<String>().unwrap() == expired.key.as_str() && expired.attempt == 1)
    );
    told.sort_by_key(|(_, expired)| expired.revision);
    told.dedup_by_key(|(_, expired)| expired.revision);
    assert_eq!(told.len(), KEYS);
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_put_the_key_again() {
    let told = Told::new();
    let engine = engine(&Memory::new()).config(config()).start().await.unwrap();
    let again = {
        let (engine, told) = (engine.clone(), told.clone());
        move |expired: Expired| {
            let (engine, told) = (engine.clone(), told.clone());
            async move {
                told.note(expired.clone());
                if told.len() < 10 {
                    engine.put(expired.key.as_str(), &expired.value::<String>()?).ttl(SECOND).if_absent().await?;
                }
                Ok(())
            }
        }
    };
    engine.on_expire("", again).unwrap();
    put(&engine, "k", SECOND).await;
    pass(MINUTE).await;
    assert_eq!(told.len(), 10);
    assert_eq!(engine.get("k").await.unwrap(), None);
    engine.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_code_is_missing_is_started_when_it_is_there() {
    let store = Memory::new();
    let first = engine(&store).config(config()).register(clean_up).start().await.unwrap();
    let revision = first.put("k", &1).ttl(SECOND).start("clean_up", &"a.txt").await.unwrap().revision;
    first.shutdown().await;
    let store = store.reopen();
    let without = engine(&store).config(config()).start().await.unwrap();
    pass(5 * SECOND).await;
    let failure = without.callbacks("", None, 10).await.unwrap().items.remove(0).failure.unwrap();
    assert!(failure.message.starts_with("no workflow \"clean_up\" is registered here"), "{failure}");
    without.shutdown().await;
    let with = engine(&store.reopen()).config(config()).register(clean_up).start().await.unwrap();
    let run = with.run(&format!("expired/k/{revision}")).unwrap();
    pass(MINUTE).await;
    assert_eq!(run.result::<String>().await.unwrap(), "a.txt");
}
