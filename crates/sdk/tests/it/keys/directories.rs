//! Directories: the keys below one end with it, before its own end is told.
//!
//! Subject: `crates/kernel/src/key/end.rs`.

use super::{Told, config, down_for, pass, put, seen_next, told_by};
use crate::support::engine;
use steadfast::memory::Memory;
use steadfast::{Callbacks, Change, Config, Engine, HOUR, KeyName, Role, SECOND, Watch, Watched};
use tokio::sync::watch;

async fn directory(engine: &Engine, key: &str, ttl: std::time::Duration) {
    engine.put(key, &key).ttl(ttl).directory().await.unwrap();
}

/// What became of keys until there were so many ends, and until that key's end was told.
async fn seen(watch: &mut Watch, count: usize, told: Option<&str>) -> Vec<String> {
    let (mut seen, mut ends, mut is_told) = (Vec::new(), 0, told.is_none());
    while ends < count || !is_told {
        let Watched { key, change, .. } = seen_next(watch).await;
        let with = |with: Option<KeyName>| with.map(|with| format!(" with {with}")).unwrap_or_default();
        match change {
            Change::Expired { with: directory, .. } => seen.push(format!("{key} expired{}", with(directory))),
            Change::Deleted { with: directory, .. } => seen.push(format!("{key} deleted{}", with(directory))),
            Change::Told { .. } if told == Some(key.as_str()) => {
                seen.push(format!("{key} told"));
                is_told = true;
                continue;
            }
            _ => continue,
        }
        ends += 1;
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn the_keys_below_a_directory_expire_with_it_before_its_own_end_is_told() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    directory(&engine, "job", SECOND).await;
    for key in ["job/a", "job/b", "job/sub/c", "jobs"] {
        put(&engine, key, HOUR).await;
    }
    let mut watch = engine.watch("").await.unwrap();
    pass(SECOND).await;
    let mut lines = told.lines();
    lines.sort();
    assert_eq!(lines, ["job a1", "job/a a1", "job/b a1", "job/sub/c a1"], "each is told once");
    let mut seen = seen(&mut watch, 4, Some("job")).await;
    assert_eq!((seen.remove(0).as_str(), seen.pop().unwrap().as_str()), ("job expired", "job told"));
    seen.sort();
    assert_eq!(seen, ["job/a expired with job", "job/b expired with job", "job/sub/c expired with job"]);
    assert!(engine.get("jobs").await.unwrap().is_some(), "it only begins so");
}

#[tokio::test(start_paused = true)]
async fn the_keys_below_a_directory_that_is_deleted_are_deleted_and_nobody_is_called() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    directory(&engine, "job", HOUR).await;
    put(&engine, "job/a", HOUR).await;
    let mut watch = engine.watch("").await.unwrap();
    engine.delete("job").await.unwrap();
    assert_eq!(engine.get("job/a").await.unwrap(), None, "at once, whether or not that is on record");
    assert_eq!(seen(&mut watch, 2, None).await, ["job deleted", "job/a deleted with job"]);
    pass(2 * HOUR).await;
    assert_eq!(told.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_put_after_the_directory_has_ended_stays() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.answering(down_for(2))).start().await.unwrap();
    directory(&engine, "job", SECOND).await;
    put(&engine, "job/a", HOUR).await;
    pass(SECOND).await;
    put(&engine, "job/a", HOUR).await;
    put(&engine, "job/b", HOUR).await;
    pass(60 * SECOND).await;
    let items = engine.keys("job").await.unwrap().items;
    assert_eq!(items.iter().map(|held| held.key.as_str()).collect::<Vec<_>>(), ["job/a", "job/b"]);
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn reads_do_not_show_what_is_below_a_directory_past_its_time() {
    let (_roles, follower) = watch::channel(Role::Follower);
    let engine = engine(&Memory::new()).config(config()).leadership(follower).start().await.unwrap();
    directory(&engine, "job", SECOND).await;
    put(&engine, "job/a", HOUR).await;
    assert!(engine.get("job/a").await.unwrap().is_some());
    pass(SECOND).await;
    assert_eq!(engine.get("job/a").await.unwrap(), None);
    assert_eq!(engine.keys("").await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn a_directory_of_directories_ends_with_all_below_it_before_its_own_end_is_told() {
    let told = Told::new();
    let engine = told_by(&Memory::new(), told.handler()).start().await.unwrap();
    directory(&engine, "a", SECOND).await;
    directory(&engine, "a/b", HOUR).await;
    put(&engine, "a/b/c", HOUR).await;
    let mut watch = engine.watch("").await.unwrap();
    pass(SECOND).await;
    let mut lines = told.lines();
    lines.sort();
    assert_eq!(lines, ["a a1", "a/b a1", "a/b/c a1"], "each is told once");
    let seen = seen(&mut watch, 3, Some("a")).await;
    assert_eq!((seen[0].as_str(), seen[3].as_str()), ("a expired", "a told"));
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn what_ended_with_a_directory_is_not_shown_when_the_directory_is_put_again() {
    let (_roles, follower) = watch::channel(Role::Follower);
    let engine = engine(&Memory::new()).config(config()).leadership(follower).start().await.unwrap();
    directory(&engine, "job", SECOND).await;
    put(&engine, "job/a", HOUR).await;
    pass(SECOND).await;
    directory(&engine, "job", HOUR).await;
    assert_eq!(engine.get("job/a").await.unwrap(), None);
}

/// Whoever is told of a directory does not answer; those who are told of the keys below do not wait for that.
#[tokio::test(start_paused = true)]
async fn the_keys_below_do_not_wait_for_who_is_told_of_the_directory() {
    let (told, store) = (Told::new(), Memory::new());
    let callbacks = Callbacks { in_flight_max: 1, ..config().callbacks };
    let mut builder = engine(&store).config(Config { callbacks, ..config() });
    builder = builder.on_expire("d", |_| std::future::pending());
    for number in 0..5 {
        builder = builder.on_expire(&format!("d{number}/"), told.handler());
    }
    let engine = builder.start().await.unwrap();
    for number in 0..5 {
        directory(&engine, &format!("d{number}"), SECOND).await;
        put(&engine, &format!("d{number}/k"), HOUR).await;
    }
    pass(SECOND).await;
    assert_eq!(told.len(), 5, "{:?}", told.lines());
    let restarted = engine.callbacks("", None, 10).await.unwrap().items;
    assert_eq!(restarted.iter().map(|row| row.target.as_str()).collect::<Vec<_>>(), ["keys below, then handler"; 5]);
}

/// The directory's time is over, and nobody has got to the keys below it yet.
#[tokio::test(start_paused = true)]
async fn what_is_asked_of_a_key_whose_directory_has_ended_finds_it_gone_and_its_end_is_told() {
    let (told, store) = (Told::new(), Memory::new());
    let (roles, role) = watch::channel(Role::Leader { term: 1 });
    let engine = engine(&store)
        .config(config())
        .leadership(role)
        .on_expire("d/", told.handler())
        .start()
        .await
        .unwrap();
    directory(&engine, "d", SECOND).await;
    for name in ["d/put", "d/renewed", "d/deleted", "d/taken", "d/owned"] {
        engine.put(name, &1).ttl(HOUR).owner("ada").await.unwrap();
    }
    roles.send_replace(Role::Follower);
    pass(2 * SECOND).await;
    let again = engine.put("d/put", &2).ttl(HOUR).await.unwrap().revision;
    assert_eq!(engine.renew("d/renewed", HOUR).owner("ada").await.unwrap_err().code(), "SF0117");
    assert_eq!(engine.delete("d/deleted").owner("ada").await.unwrap_err().code(), "SF0117");
    engine.put("d/taken", &2).ttl(HOUR).if_absent().await.unwrap();
    engine.put("d/owned", &2).ttl(HOUR).owner("bob").await.unwrap();
    roles.send_replace(Role::Leader { term: 2 });
    pass(SECOND).await;
    let mut ended: Vec<_> = told
        .all()
        .iter()
        .map(|(_, expired)| (expired.key.to_string(), expired.value::<u32>().unwrap()))
        .collect();
    ended.sort();
    let expected = ["d/deleted", "d/owned", "d/put", "d/renewed", "d/taken"].map(|name| (name.to_string(), 1));
    assert_eq!(ended, expected, "each that was there, with the value that it had, once");
    let left: Vec<_> = engine.keys("d/").await.unwrap().items.into_iter().map(|held| held.key.to_string()).collect();
    assert_eq!(left, ["d/owned", "d/put", "d/taken"]);
    assert_eq!(engine.get("d/put").await.unwrap().unwrap().revision, again);
}
