//! Workers that are lost: whatever was recorded stands, whatever was not is done again elsewhere, and nothing is recorded twice.

use super::link::{Link, Mode};
use super::programs::{calls, dropped, let_go};
use super::world::{HEARTBEAT, World, until};
use std::collections::BTreeSet;
use std::time::Duration;
use steadfast_kernel::{Entry, Event, Origin, Payload, Refusal, RunId, Status};
use steadfast_runtime::{Error, Gone, Parted};

/// Sees a run to its end, and answers what a person is asked.
async fn see_through(world: &World, run: &RunId) {
    for _ in 0..2000 {
        let view = world.view(run).await;
        if view.ended.is_some() {
            return;
        }
        let reasons: Vec<_> = view.waits.iter().map(|wait| wait.reason()).collect();
        if reasons.contains(&"IN_DOUBT") {
            let answer = Payload::json("{\"completed\": 1}");
            world.engine.signal(run, "in-doubt:charge#1", answer, Origin::default()).await.unwrap();
        } else if reasons.contains(&"SIGNAL") {
            match world.engine.signal(run, "go", Payload::json("1"), Origin::default()).await {
                Ok(_) | Err(Error::Refused(Refusal::Ended { .. })) => {} // an earlier one may have reached it now
                Err(error) => panic!("{error}"),
            }
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    panic!("{run} has not ended: {:?}", world.view(run).await);
}

/// Every step is on record once, and sequences have no gap.
fn check(journal: &[Entry], what: &str) {
    let mut done = BTreeSet::new();
    for (index, entry) in journal.iter().enumerate() {
        assert_eq!(entry.seq, index as u64 + 1, "{what}");
        if let Event::StepCompleted { step, .. } | Event::UndoCompleted { step, .. } | Event::ChildTaken { child: step } = &entry.event
            && entry.event.kind() != "STEP_SKIPPED"
        {
            assert!(done.insert((entry.event.kind(), step.clone())), "{what}: {step} twice");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_may_be_cut_after_any_message() {
    for workflow in ["ten", "everything", "undoes"] {
        let mut cut = 0;
        loop {
            let id = format!("cut-{workflow}-{cut}");
            let_go(&id, "hold", 1000);
            let world = World::new().await;
            let first = Link::until(&world.engine, &world.worker("w1"), cut);
            let second = world.worker("w2");
            let run = match world.try_start(workflow, &id).await {
                Ok(run) => run,
                Err(_) => {
                    let _hello = Link::until(&world.engine, &second, 1); // the workflow has to be known
                    until("it is known", async || world.try_start(workflow, &id).await.is_ok()).await;
                    RunId::new(&id).unwrap()
                }
            };
            let (engine, gone) = (world.engine.clone(), first.gone);
            let second = tokio::spawn(async move {
                let gone = gone.await.unwrap();
                assert_eq!(gone, Gone::Ended);
                Link::new(&engine, &second)
            });
            see_through(&world, &run).await;
            let whole = !second.is_finished();
            let journal = world.journal(&run).await;
            check(&journal, &id);
            let ended = world.view(&run).await.status;
            assert_eq!(ended, if workflow == "undoes" { Status::Failed } else { Status::Completed }, "{id}");
            if workflow == "undoes" {
                let undone = journal.iter().filter(|entry| matches!(entry.event, Event::UndoCompleted { .. })).count();
                assert_eq!(undone, 2, "{id}");
            }
            if whole {
                break;
            }
            cut += 1;
        }
        println!("{workflow}: cut after each of {cut} messages");
        assert!(cut > 15, "{workflow} takes more messages than that");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_in_the_middle_of_a_step_loses_it_to_another() {
    let world = World::new().await;
    let first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("holds", "dies").await;
    until("it holds", async || calls("dies", "hold") == 1).await;
    let _second = Link::new(&world.engine, &world.worker("w2"));
    until("both are there", async || world.engine.workers().len() == 2).await;
    first.set(Mode::Cut);
    assert_eq!(first.gone.await.unwrap(), Gone::Ended);
    assert_eq!(first.parted.await.unwrap(), Parted::Ended);
    assert_eq!(dropped("dies", "hold"), 1, "the attempt of the first is no more");
    tokio::time::sleep(HEARTBEAT).await; // which the server cannot know before
    until("the second has it", async || calls("dies", "hold") == 2).await;
    assert_eq!(world.sessions(), [("w2".to_string(), 1)]);
    let_go("dies", "hold", 1);
    world.engine.ended(&run).await.unwrap();
    assert_eq!(world.kinds(&run).await, ["RUN_STARTED", "STEP_COMPLETED hold#1", "STEP_COMPLETED after#1", "RUN_COMPLETED"]);
    assert_eq!(calls("dies", "after"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_nobody_hears_lets_go_before_its_runs_are_given_away() {
    for mode in [Mode::Lose, Mode::LoseUp] {
        let id = format!("half-{mode:?}");
        let world = World::new().await;
        let first = Link::new(&world.engine, &world.worker("w1"));
        until("it is there", async || world.engine.workers().len() == 1).await;
        let run = world.start("holds", &id).await;
        until("it holds", async || calls(&id, "hold") == 1).await;
        let second = Link::new(&world.engine, &world.worker("w2"));
        let began = tokio::time::Instant::now();
        first.set(mode);
        assert_eq!(first.parted.await.unwrap(), Parted::Silent);
        let let_go_after = began.elapsed();
        assert_eq!((dropped(&id, "hold"), calls(&id, "hold")), (1, 1), "nobody else has begun it");
        let Gone::Silent(_) = first.gone.await.unwrap() else { panic!("it was heard") };
        assert!(let_go_after < began.elapsed() && began.elapsed() <= HEARTBEAT + Duration::from_secs(1), "{let_go_after:?}");
        until("the second has it", async || calls(&id, "hold") == 2).await;
        let_go(&id, "hold", 1);
        world.engine.ended(&run).await.unwrap();
        assert_eq!(world.kinds(&run).await.len(), 4);
        drop(second);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_has_not_seen_the_end_of_its_line_lets_go_before_its_runs_are_given_away() {
    let world = World::new().await;
    let first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("holds", "unseen").await;
    until("it holds", async || calls("unseen", "hold") == 1).await;
    let _second = Link::new(&world.engine, &world.worker("w2"));
    until("both are there", async || world.engine.workers().len() == 2).await;
    tokio::time::sleep(HEARTBEAT / 2).await;
    let cut_at = tokio::time::Instant::now();
    first.set(Mode::CutUp);
    assert_eq!(first.gone.await.unwrap(), Gone::Ended);
    assert!(cut_at.elapsed() < HEARTBEAT / 10, "the server sees it at once");
    assert_eq!(first.parted.await.unwrap(), Parted::Silent);
    assert_eq!((calls("unseen", "hold"), dropped("unseen", "hold")), (1, 1), "nobody else has begun it");
    tokio::time::sleep(HEARTBEAT.saturating_sub(cut_at.elapsed())).await;
    until("the second has it", async || calls("unseen", "hold") == 2).await;
    let_go("unseen", "hold", 1);
    world.engine.ended(&run).await.unwrap();
    assert_eq!(world.kinds(&run).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_comes_again_has_its_runs_at_once() {
    let world = World::new().await;
    let worker = world.worker("w1");
    for (life, mode) in [Mode::Cut, Mode::Lose].into_iter().enumerate() {
        let id = format!("same-{mode:?}");
        let older = Link::new(&world.engine, &worker);
        until("it is there", async || world.engine.workers().len() == 1).await;
        let run = world.start("holds", &id).await;
        until("it holds", async || calls(&id, "hold") == 1).await;
        older.set(mode);
        older.parted.await.unwrap(); // it has let go of everything, and the server has heard of that only if the line was cut
        assert_eq!(older.gone.is_finished(), life == 0);
        let newer = Link::new(&world.engine, &worker);
        until("it has it again", async || calls(&id, "hold") == 2).await;
        let_go(&id, "hold", 1);
        world.engine.ended(&run).await.unwrap();
        assert_eq!(world.kinds(&run).await.len(), 4);
        newer.set(Mode::Cut);
        newer.gone.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn another_process_of_the_same_name_waits_until_the_older_one_has_let_go() {
    let world = World::new().await;
    let older = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("holds", "again").await;
    until("it holds", async || calls("again", "hold") == 1).await;
    older.set(Mode::Lose); // nobody has noticed yet
    let newer = Link::new(&world.engine, &world.worker("w1"));
    assert_eq!(older.gone.await.unwrap(), Gone::Replaced);
    let other = world.start("ten", "again-other").await;
    world.engine.ended(&other).await.unwrap(); // it is there
    assert_eq!(older.parted.await.unwrap(), Parted::Silent);
    assert_eq!((calls("again", "hold"), dropped("again", "hold")), (1, 1), "nobody else has begun it");
    tokio::time::sleep(HEARTBEAT).await;
    until("the newer one has it", async || calls("again", "hold") == 2).await;
    assert_eq!(world.sessions(), [("w1".to_string(), 1)]);
    let_go("again", "hold", 1);
    world.engine.ended(&run).await.unwrap();
    assert_eq!(world.kinds(&run).await, ["RUN_STARTED", "STEP_COMPLETED hold#1", "STEP_COMPLETED after#1", "RUN_COMPLETED"]);
    assert_eq!(calls("again", "after"), 1);
    drop(newer);
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_worker_says_late_is_dropped() {
    let world = World::new().await;
    let mut older = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("holds", "late").await;
    until("it holds", async || calls("late", "hold") == 1).await;
    older.set(Mode::LoseUp);
    let_go("late", "hold", 1); // its outcome does not arrive
    tokio::time::sleep(HEARTBEAT / 4).await;
    let _newer = Link::new(&world.engine, &world.worker("w1"));
    assert_eq!((&mut older.gone).await.unwrap(), Gone::Replaced);
    older.set(Mode::Pass); // too late
    tokio::time::sleep(HEARTBEAT).await;
    until("it is done again", async || calls("late", "hold") == 2).await;
    assert!(world.kinds(&run).await.len() == 1, "nothing of the older line counts");
    let_go("late", "hold", 1);
    world.engine.ended(&run).await.unwrap();
    assert_eq!(world.kinds(&run).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_stops_does_not_wait_for_a_worker_that_is_gone() {
    let world = World::new().await;
    let link = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    world.start("holds", "stops").await;
    until("it holds", async || calls("stops", "hold") == 1).await;
    link.set(Mode::Cut);
    link.gone.await.unwrap();
    let began = tokio::time::Instant::now();
    world.engine.clone().shutdown().await;
    assert!(began.elapsed() < HEARTBEAT / 2, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_step_that_may_not_be_repeated_is_in_doubt_when_its_worker_is_lost() {
    let world = World::new().await;
    let first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("once", "doubt").await;
    until("it holds", async || calls("doubt", "pay") == 1).await;
    first.set(Mode::Cut);
    let _second = Link::new(&world.engine, &world.worker("w2"));
    tokio::time::sleep(HEARTBEAT).await;
    until("it is in doubt", async || world.waits(&run).await == ["IN_DOUBT"]).await;
    assert_eq!(calls("doubt", "pay"), 1, "nobody has repeated it");
    let answer = Payload::json("{\"completed\": 7}");
    world.engine.signal(&run, "in-doubt:pay#1", answer, Origin::default()).await.unwrap();
    assert_eq!(world.engine.ended(&run).await.unwrap().outcome, Ok(Payload::json("7")));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_go_on_by_itself_is_interrupted_when_its_worker_is_lost() {
    let world = World::new().await;
    let first = Link::new(&world.engine, &world.worker("w1"));
    until("it is there", async || world.engine.workers().len() == 1).await;
    let run = world.start("manual", "manual").await;
    until("it holds", async || calls("manual", "hold") == 1).await;
    first.set(Mode::Cut);
    let _second = Link::new(&world.engine, &world.worker("w2"));
    tokio::time::sleep(HEARTBEAT).await;
    until("it is interrupted", async || world.view(&run).await.status == Status::Interrupted).await;
    assert_eq!(calls("manual", "hold"), 1);
    world.engine.retry(&run, steadfast_kernel::RetryRun::default()).await.unwrap();
    let_go("manual", "hold", 1);
    world.engine.ended(&run).await.unwrap();
    assert_eq!(world.view(&run).await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_lost_again_and_again_does_not_stop_a_run() {
    let world = World::new().await;
    for life in 1..=20 {
        let link = Link::new(&world.engine, &world.worker("w1"));
        if life == 1 {
            until("it is there", async || world.engine.workers().len() == 1).await;
            world.start("holds", "flaps").await;
        }
        until("it holds", async || calls("flaps", "hold") == life).await;
        link.set(Mode::Cut);
        link.gone.await.unwrap();
        tokio::time::sleep(HEARTBEAT).await;
    }
    let run = RunId::new("flaps").unwrap();
    until("it waits", async || world.waits(&run).await == ["NO_WORKER"]).await;
    let_go("flaps", "hold", 1);
    let _link = Link::new(&world.engine, &world.worker("w1"));
    world.engine.ended(&run).await.unwrap();
    assert_eq!(world.view(&run).await.status, Status::Completed);
}
