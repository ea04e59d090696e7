//! Who asks for everything that can be asked for, of any run, at any moment, and sometimes twice.

use super::entities::life;
use super::ledger::Ledger;
use super::plan::Plan;
use crate::torture::script::Chance;
use std::time::Duration;
use steadfast::{Engine, Entry, Error, Event, Preview, Resolution, Retry, Run, RunId, Status, StepId, Wait};
use steadfast_kernel::EntityId;

/// What was asked for under an id, and may be asked for again; it outlives the processes of a case.
#[derive(Default)]
pub(super) struct Operator {
    orders: Vec<Order>,
    count: u32,
}

#[derive(Clone, Debug)]
struct Order {
    run: RunId,
    verb: Verb,
    tag: String,
    /// The tag is the id of the command too.
    named: bool,
}

#[derive(Clone, Debug)]
enum Verb {
    Pause,
    Resume,
    Cancel,
    Terminate,
    Retry { from: From, outputs: Vec<String> },
    Say,
    Answer,
    Redrive(String),
    Drop(String),
    Look,
}

#[derive(Clone, Debug)]
enum From {
    Failed,
    Step(String),
    Start,
    Input(Plan),
}

impl Operator {
    /// Asks for so many things, one after the other.
    pub(super) async fn operate(&mut self, chance: &mut Chance, ledger: &Ledger, engine: &Engine, times: u64, every: u64) {
        for _ in 0..times {
            tokio::time::sleep(Duration::from_millis(chance.below(every))).await;
            let Some(order) = self.next(chance, ledger) else { continue };
            let patience = if order.named { chance.below(4) } else { 0 };
            carry_out(ledger, engine, &order, patience).await;
            if order.named {
                self.orders.push(order);
            }
        }
    }

    fn next(&mut self, chance: &mut Chance, ledger: &Ledger) -> Option<Order> {
        if !self.orders.is_empty() && chance.below(5) == 0 {
            return Some(self.orders[chance.below(self.orders.len() as u64) as usize].clone());
        }
        let (runs, open) = (ledger.runs(), ledger.open_runs());
        let runs = if open.is_empty() || chance.below(4) == 0 { runs } else { open };
        let run = runs.get(chance.below(runs.len().max(1) as u64) as usize)?.clone();
        self.count += 1;
        let verb = Verb::draw(chance, ledger, &run);
        let named = verb.can_have_an_id() && chance.below(2) == 0;
        Some(Order { verb, run, tag: format!("order-{}", self.count), named })
    }
}

impl Verb {
    /// Mostly what can be asked of a run that stands there, and now and then anything.
    fn draw(chance: &mut Chance, ledger: &Ledger, run: &RunId) -> Self {
        let status = life(&ledger.store(), &EntityId::Run(run.clone())).run().map(steadfast_kernel::Run::status);
        let of_a_letter = |chance: &mut Chance| match (letter(chance, ledger), chance.below(3)) {
            (Some(letter), 0) => Verb::Drop(letter),
            (Some(letter), _) => Verb::Redrive(letter),
            (None, _) => Verb::Look,
        };
        match (status, chance.below(12)) {
            (_, 0) => Verb::Look,
            (_, 1) => [Verb::Pause, Verb::Resume, Verb::Cancel, Verb::Terminate, Verb::Say][chance.below(5) as usize].clone(),
            (Some(Status::Paused), 2..=8) => Verb::Resume,
            (Some(Status::Paused), 9) | (Some(Status::Interrupted), 2) => Verb::Terminate,
            (Some(Status::Paused), 10..) | (Some(Status::Interrupted), 3) => Verb::Cancel,
            (Some(Status::Completed | Status::Failed | Status::Cancelled), 2..=4) => of_a_letter(chance),
            (Some(Status::Completed | Status::Failed | Status::Cancelled | Status::Interrupted), _) => Verb::retry(chance, ledger, run),
            (_, 2..=5) => Verb::Pause,
            (_, 6) => Verb::Cancel,
            (_, 7) => Verb::Terminate,
            (_, 8) => Verb::Say,
            (_, 9) => Verb::Answer,
            _ => Verb::retry(chance, ledger, run),
        }
    }

    fn retry(chance: &mut Chance, ledger: &Ledger, run: &RunId) -> Self {
        let steps: Vec<String> = life(&ledger.store(), &EntityId::Run(run.clone()))
            .entries
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } | Event::RetryScheduled { step, .. } => Some(step),
                Event::ChildStarted { child, .. } => Some(child),
                _ => None,
            })
            .map(ToString::to_string)
            .collect();
        let any = |chance: &mut Chance| steps.get(chance.below(steps.len().max(1) as u64) as usize).cloned();
        let from = match chance.below(8) {
            0..=2 => From::Failed,
            3..=5 => any(chance).map_or(From::Start, From::Step),
            6 => From::Start,
            _ => From::Input(Plan::draw(chance, run.as_str().matches('/').count())),
        };
        let outputs = (0..chance.below(6).saturating_sub(3))
            .filter_map(|_| any(chance))
            .filter(|step| step.contains('s'))
            .collect();
        Verb::Retry { from, outputs }
    }

    fn can_have_an_id(&self) -> bool {
        !matches!(self, Verb::Redrive(_) | Verb::Drop(_) | Verb::Answer | Verb::Look)
    }

    /// It is not acknowledged without being on record.
    fn leaves_a_trace(&self) -> bool {
        matches!(self, Verb::Terminate | Verb::Retry { .. } | Verb::Redrive(_))
    }
}

fn letter(chance: &mut Chance, ledger: &Ledger) -> Option<String> {
    let rows = super::facts::letters(&ledger.store());
    rows.get(chance.below(rows.len().max(1) as u64) as usize).map(|row| row.letter.to_string())
}

async fn carry_out(ledger: &Ledger, engine: &Engine, order: &Order, patience: u64) {
    let is_kept_book_of = !matches!(order.verb, Verb::Say | Verb::Answer | Verb::Look | Verb::Drop(_));
    for _ in 0..=patience {
        if is_kept_book_of {
            let redriven = if let Verb::Redrive(letter) = &order.verb { run_of(ledger, letter) } else { None };
            ledger.sends(&order.tag, redriven.as_ref().unwrap_or(&order.run).as_str(), order.verb.leaves_a_trace());
        }
        match ask(ledger, engine, order).await {
            Ok(()) if is_kept_book_of => return ledger.acknowledged(&order.tag),
            Ok(()) => return,
            Err(error) => match error.retry_after() {
                Some(time) => tokio::time::sleep(time).await,
                None => return not_done(ledger, order, &error, is_kept_book_of),
            },
        }
    }
}

fn run_of(ledger: &Ledger, letter: &str) -> Option<RunId> {
    let rows = super::facts::letters(&ledger.store());
    rows.into_iter()
        .find(|row| row.letter.to_string() == letter)
        .and_then(|row| row.about.run().cloned())
}

fn not_done(ledger: &Ledger, order: &Order, error: &Error, is_kept_book_of: bool) {
    let refusals = ["SF0104", "SF0105", "SF0113", "SF0114", "SF0115", "SF0109", "SF0112", "SF0111"];
    if refusals.contains(&error.code()) {
        if is_kept_book_of {
            ledger.refused(&order.tag);
        }
    } else if error.code() != "SF0202" && !ledger.store().is_dead() {
        ledger.is_wrong(format!("{order:?}: {error:?}"));
    }
}

async fn ask(ledger: &Ledger, engine: &Engine, order: &Order) -> Result<(), Error> {
    let run = engine.run(order.run.as_str())?;
    let act = |act: steadfast::Act| {
        let act = act.by("ada").why(&order.tag);
        if order.named { act.id(&order.tag) } else { act }
    };
    match &order.verb {
        Verb::Pause => act(run.pause()).await,
        Verb::Resume => act(run.resume()).await,
        Verb::Cancel => act(run.cancel()).await,
        Verb::Terminate => act(run.terminate()).await,
        Verb::Retry { from, outputs } => {
            let has_ended = !ledger.open_runs().contains(&order.run); // else it may move after the preview
            let preview = retry(&run, order, from, outputs).preview().await;
            let retry = retry(&run, order, from, outputs);
            let done = if order.named { retry.id(&order.tag).await } else { retry.await };
            if let (Ok(preview), Ok(()), true) = (preview, &done, has_ended) {
                foretold(ledger, order, &preview);
            }
            done
        }
        Verb::Say => run.signal("word", &7).id(&order.tag).await.map(drop),
        Verb::Answer => answer(ledger, &run, order.tag.bytes().map(u64::from).sum()).await,
        Verb::Redrive(letter) => engine.redrive(letter).why(&order.tag).await,
        Verb::Drop(letter) => engine.drop_letter(letter).why(&order.tag).await,
        Verb::Look => {
            let _may_be_refused = run.retry().preview().await;
            run.why().await?;
            let replayed = run.replay().await?;
            if let Some(mismatch) = replayed.mismatch {
                ledger.is_wrong(format!("{}: {mismatch:?}", order.run));
            }
            Ok(())
        }
    }
}

/// What a retry does to a run that has ended is what its preview says.
fn foretold(ledger: &Ledger, order: &Order, preview: &Preview) {
    let life = life(&ledger.store(), &EntityId::Run(order.run.clone()));
    let is_it = |entry: &Entry| matches!(&entry.event, Event::RunRetried(retried) if retried.origin.why.as_ref() == Some(&order.tag));
    let ([.., before, entry], Some(run)) = (&life.entries[..], life.run()) else { return };
    if !is_it(entry) || !before.event.is_end() {
        return; // it moves, or was asked for before
    }
    let Some(open) = run.open().filter(|_| entry.epoch == preview.epoch) else { return };
    let has_begun_again = |step: &StepId| !open.steps.contains_key(step);
    let keys: Vec<_> = preview.repeated_keys.iter().chain(&preview.new_keys).collect();
    let as_said = preview
        .runs_again
        .iter()
        .all(|step| has_begun_again(step) && keys.contains(&&run.generations.key(&run.id, step)))
        && preview.kept.iter().all(|step| open.steps.contains_key(step))
        && preview.supplied.iter().all(|step| run.supplied.contains_key(step))
        && run.is_ready() != preview.slots.is_empty();
    if !as_said {
        ledger.is_wrong(format!("{preview:?} was said, and this is what came: {run:?}"));
    }
}

fn retry(run: &Run, order: &Order, from: &From, outputs: &[String]) -> Retry {
    let retry = run.retry().by("ada").why(&order.tag);
    let retry = match from {
        From::Failed => retry,
        From::Step(step) => retry.from_step(step),
        From::Start => retry.from_start(),
        From::Input(plan) => retry.input(plan),
    };
    outputs.iter().fold(retry, |retry, step| retry.output(step, &5))
}

/// Sees to whatever the run waits for a person to see to.
pub(super) async fn answer(ledger: &Ledger, run: &Run, how: u64) -> Result<(), Error> {
    for wait in run.view().await?.waits {
        match wait {
            Wait::InDoubt { step, .. } => {
                let resolution = match (ledger.has_happened(run.id(), &step), how % 2) {
                    (true, _) => Resolution::Completed(5.into()),
                    (false, 0) => Resolution::Repeat,
                    (false, _) => Resolution::Failed("it did not happen".into()),
                };
                run.resolve(step.as_str(), resolution).await?;
            }
            Wait::Signal { name, .. } if name.starts_with("undo:") => {
                let resolution = if how.is_multiple_of(2) { Resolution::RetryUndo } else { Resolution::SkipUndo };
                run.resolve(name.trim_start_matches("undo:"), resolution).await?;
            }
            Wait::Signal { until: None, name } => drop(run.signal(&name, &3).await?),
            _ => {}
        }
    }
    Ok(())
}
