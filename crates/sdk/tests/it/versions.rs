//! Planned changes of code: runs that are under way stay on the version they have.
//!
//! Subject: `crates/runtime/src/host/replay.rs`.

use crate::support::{call, calls, engine, until};
use steadfast::memory::Memory;
use steadfast::{Ctx, Failure, HOUR, Status, workflow};

mod before {
    use super::*;
    #[workflow]
    pub(super) async fn ship(ctx: Ctx, _input: ()) -> Result<String, Failure> {
        ctx.step("pack", || async { Ok::<_, Failure>(()) }).await?;
        ctx.sleep(HOUR).await?;
        ctx.step("send", || async { Ok::<_, Failure>("sent".to_string()) }).await
    }
}

mod after {
    use super::*;
    /// Goods are insured now, before they are packed and before they are sent.
    #[workflow]
    pub(super) async fn ship(ctx: Ctx, _input: ()) -> Result<String, Failure> {
        let early = ctx.version("insure-early", 1..=2) >= 2;
        if early {
            ctx.step("insure", || {
                call(&ctx, "early");
                async { Ok::<_, Failure>(()) }
            })
            .await?;
        }
        ctx.step("pack", || async { Ok::<_, Failure>(()) }).await?;
        ctx.sleep(HOUR).await?;
        let late = ctx.version("insure-late", 1..=2) >= 2;
        if late {
            ctx.step("insure", || {
                call(&ctx, "late");
                async { Ok::<_, Failure>(()) }
            })
            .await?;
        }
        let sent = ctx.step("send", || async { Ok::<_, Failure>("sent".to_string()) }).await?;
        Ok(format!("{sent}, insured early: {early}, late: {late}"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_under_way_takes_only_changes_that_lie_ahead_of_it() {
    let store = Memory::new();
    let old = engine(&store).register(before::ship).start().await.unwrap();
    let run = old.start("ship", &()).id("upgraded").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    old.shutdown().await;

    let store = store.reopen();
    let new = engine(&store).register(after::ship).start().await.unwrap();
    let run = new.run("upgraded").unwrap();
    let expected = "sent, insured early: false, late: true";
    assert_eq!(run.result::<String>().await.unwrap(), expected);
    assert_eq!((calls("upgraded", "early"), calls("upgraded", "late")), (0, 1));
    assert_eq!(run.replay().await.unwrap().mismatch, None, "what was decided is on record");

    let fresh = new.start("ship", &()).id("fresh").await.unwrap();
    assert_eq!(fresh.result::<String>().await.unwrap(), "sent, insured early: true, late: true");
    assert_eq!(fresh.replay().await.unwrap().mismatch, None);
}

#[tokio::test(start_paused = true)]
async fn replay_tells_where_other_code_would_part_without_carrying_anything_out() {
    let store = Memory::new();
    let old = engine(&store).register(before::ship).start().await.unwrap();
    old.start("ship", &()).id("compared").await.unwrap().result::<String>().await.unwrap();
    old.shutdown().await;
    let new = engine(&store.reopen()).register(unplanned::ship).start().await.unwrap();
    let replayed = new.replay("compared").await.unwrap();
    assert_eq!(replayed.events, 6);
    let steadfast::Wait::Mismatch { at, expected, found } = replayed.mismatch.unwrap() else { panic!("a mismatch") };
    assert_eq!((at, &*expected), (2, "STEP_COMPLETED pack#1"));
    assert!(found.contains("weigh#1"), "{found}");
    assert_eq!(calls("compared", "weigh"), 0);
    assert_eq!(new.commits(), 0);
}

mod unplanned {
    use super::*;
    #[workflow]
    pub(super) async fn ship(ctx: Ctx, _input: ()) -> Result<String, Failure> {
        ctx.step("weigh", || {
            call(&ctx, "weigh");
            async { Ok::<_, Failure>(()) }
        })
        .await?;
        Ok(String::new())
    }
}

mod without_the_first {
    use super::*;
    /// Runs from before the goods were insured are thought to be over.
    #[workflow]
    pub(super) async fn ship(ctx: Ctx, _input: ()) -> Result<String, Failure> {
        let version = ctx.version("insure-early", 2..=3);
        ctx.step("pack", || async { Ok::<_, Failure>(()) }).await?;
        ctx.sleep(HOUR).await?;
        ctx.step("send", || async { Ok::<_, Failure>("sent".to_string()) }).await?;
        Ok(format!("version {version}"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_on_a_version_that_the_code_no_longer_knows_waits() {
    let store = Memory::new();
    let old = engine(&store).register(before::ship).start().await.unwrap();
    let run = old.start("ship", &()).id("too-old").await.unwrap();
    until("it sleeps", async || run.view().await.unwrap().status == Status::Waiting).await;
    old.shutdown().await;
    let store = store.reopen();
    let new = engine(&store).register(without_the_first::ship).start().await.unwrap();
    let replayed = new.run("too-old").unwrap().replay().await.unwrap();
    let steadfast::Wait::Mismatch { at, expected, found } = replayed.mismatch.unwrap() else { panic!("a mismatch") };
    assert_eq!((at, &*expected), (1, "version 1 of version:insure-early#1"));
    assert_eq!(found, "the code only knows the versions 2 to 3");
    let fresh = new.start("ship", &()).id("young-enough").await.unwrap();
    assert_eq!(fresh.result::<String>().await.unwrap(), "version 3");
}
