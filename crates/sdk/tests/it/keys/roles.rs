//! Only a leader has keys expire and tells of it; what it did not get to, the next leader does.
//!
//! Subject: `crates/runtime/src/shard/keys.rs`.

use super::{Told, config, down_for, pass, put};
use crate::support::engine;
use std::future::Ready;
use steadfast::memory::Memory;
use steadfast::{Engine, Expired, Failure, HOUR, Role, SECOND};
use tokio::sync::watch;

const LEADER: Role = Role::Leader { term: 1 };

async fn led(
    store: &Memory,
    role: Role,
    handler: impl Fn(Expired) -> Ready<Result<(), Failure>> + Send + Sync + 'static,
) -> (Engine, watch::Sender<Role>) {
    let (roles, role) = watch::channel(role);
    let engine = engine(store).config(config()).leadership(role).on_expire("", handler);
    (engine.start().await.unwrap(), roles)
}

#[tokio::test(start_paused = true)]
async fn nothing_expires_on_a_follower_and_nothing_is_lost_when_it_leads_again() {
    let told = Told::new();
    let (engine, roles) = led(&Memory::new(), Role::Follower, told.handler()).await;
    for number in 0..120 {
        put(&engine, &format!("k{number}"), SECOND).await;
    }
    pass(HOUR).await;
    assert_eq!(told.len(), 0);
    assert_eq!(engine.get("k0").await.unwrap(), None, "reads do not depend on it");
    roles.send_replace(LEADER);
    pass(SECOND).await;
    assert_eq!(told.len(), 120);
}

#[tokio::test(start_paused = true)]
async fn a_callback_in_backoff_waits_for_a_leader() {
    let told = Told::new();
    let (engine, roles) = led(&Memory::new(), LEADER, told.answering(down_for(1))).await;
    put(&engine, "k", SECOND).await;
    pass(SECOND).await;
    assert_eq!(told.lines(), ["k a1"]);
    roles.send_replace(Role::Follower);
    pass(HOUR).await;
    assert_eq!(told.lines(), ["k a1"], "nothing fires on a follower");
    roles.send_replace(Role::Leader { term: 2 });
    pass(SECOND).await;
    assert_eq!(told.lines(), ["k a1", "k a2"]);
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, []);
}

/// More than a lane takes at once wait for their turn when the role is lost.
#[tokio::test(start_paused = true)]
async fn callbacks_that_waited_for_their_turn_are_told_by_the_next_leader() {
    let told = Told::new();
    let store = Memory::new();
    let (roles, role) = watch::channel(LEADER);
    let slow = {
        let told = told.clone();
        move |expired: Expired| {
            let told = told.clone();
            async move {
                tokio::time::sleep(SECOND).await;
                told.note(expired);
                Ok(())
            }
        }
    };
    let engine = engine(&store).config(config()).leadership(role).on_expire("", slow).start().await.unwrap();
    for number in 0..200 {
        put(&engine, &format!("k{number:03}"), SECOND).await;
    }
    pass(SECOND + SECOND / 2).await;
    roles.send_replace(Role::Follower);
    pass(HOUR).await;
    assert_eq!(told.len(), 64, "those in flight end, and no other begins");
    roles.send_replace(Role::Leader { term: 2 });
    pass(HOUR).await;
    let mut lines = told.lines();
    lines.sort();
    lines.dedup();
    assert_eq!((lines.len(), told.len()), (200, 200));
}

#[tokio::test(start_paused = true)]
async fn roles_that_change_again_and_again_lose_nothing() {
    let told = Told::new();
    let (engine, roles) = led(&Memory::new(), LEADER, told.answering(down_for(2))).await;
    for number in 0..100_u32 {
        put(&engine, &format!("k{number}"), SECOND + number * SECOND / 50).await;
    }
    for term in 2..200 {
        roles.send_replace(if term % 2 == 0 { Role::Follower } else { Role::Leader { term } });
        pass(SECOND / 20).await;
    }
    pass(HOUR).await;
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items, []);
    assert_eq!(told.len(), 300, "each was told three times, and settled with the third");
}

/// A put writes that the time of what was there is over. That is no reason for a follower to tell anybody.
#[tokio::test(start_paused = true)]
async fn an_end_that_a_put_brings_to_light_on_a_follower_is_told_by_the_leader() {
    let told = Told::new();
    let (engine, roles) = led(&Memory::new(), LEADER, told.answering(down_for(1))).await;
    put(&engine, "k", SECOND).await;
    roles.send_replace(Role::Follower);
    pass(2 * SECOND).await;
    put(&engine, "k", HOUR).await;
    pass(2 * SECOND).await;
    assert_eq!(told.len(), 0);
    assert_eq!(engine.callbacks("", None, 10).await.unwrap().items.len(), 1, "it is on record");
    roles.send_replace(Role::Leader { term: 2 });
    pass(2 * SECOND).await;
    assert_eq!(told.lines(), ["k a1", "k a2"]);
}
