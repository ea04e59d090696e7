//! What a journal folds into, as text: a line per fact, so that the text stays as it is when the state is put together in another way. A field that is new does not
//! compile here until somebody has said whether it is a fact of its own.

mod plans;

use std::fmt::{Debug, Display};
use steadfast_kernel::key::{Callback, Failed, Held, Key};
use steadfast_kernel::letter::LetterBox;
use steadfast_kernel::limit::Limit;
use steadfast_kernel::route::{Kept, RouteBox};
use steadfast_kernel::run::{Ended, Open, Phase, script};
use steadfast_kernel::{
    Entity, EntityId, Entry, Envelope, Failure, Letter, LetterAbout, Message, Payload, Run, RunOptions, StartChild, Timer, machine,
};

/// What a journal comes to.
pub(super) fn state(id: &EntityId, journal: &[Entry]) -> Entity {
    let fold = |state, entry| Some(machine::advance(id, state, entry).unwrap().0);
    journal.iter().fold(None, fold).unwrap()
}

/// The state, with what the journal has said to others.
pub(super) fn folded(id: &EntityId, journal: &[Entry]) -> String {
    let (mut state, mut said): (Option<Entity>, Vec<Envelope>) = (None, Vec::new());
    for entry in journal {
        let (next, says) = machine::advance(id, state, entry).unwrap();
        said.extend(says);
        state = Some(next);
    }
    let mut facts = Facts(vec![format!("entity {id}")]);
    match state.unwrap() {
        Entity::Run(run) => facts.run(&run, journal),
        Entity::Limit(limit) => facts.limit(&limit),
        Entity::Letters(letters) => facts.letters(&letters),
        Entity::Key(key) => facts.key(&key),
        Entity::Plan(plan) => facts.plan(&plan),
        Entity::Lock(lock) => facts.lock(&lock),
        Entity::Route(letters) => facts.route(&letters),
    }
    for Envelope { from: _, seq, to, message } in said {
        facts.say("said", format_args!("{seq} to {to}: {}", words(&message)));
    }
    facts.0.join("\n") + "\n"
}

struct Facts(Vec<String>);

impl Facts {
    fn say(&mut self, what: &str, fact: impl Display) {
        self.0.push(format!("{what} {fact}"));
    }

    /// What may be there or not, or several times.
    fn each<T: Debug>(&mut self, what: &str, facts: impl IntoIterator<Item = T>) {
        facts.into_iter().for_each(|fact| self.say(what, format_args!("{fact:?}")));
    }

    fn run(&mut self, run: &Run, journal: &[Entry]) {
        let Run {
            id: _,
            workflow,
            input,
            given,
            seed,
            options,
            epoch,
            retried,
            seq,
            sent,
            heard,
            commands,
            started_at,
            deadline,
            retry_context,
            generations,
            supplied,
            letters,
            slots,
            details,
            note,
            past: _, // is what the script is
            task: _, // told by itself
            phase,
        } = run;
        self.say("status", format_args!("{:?}", run.status()));
        self.each("waits for", run.waits());
        for Timer { entity, name, due, revision } in run.timers() {
            self.say("timer", format_args!("Timer {{ run: {entity:?}, name: {name:?}, due: {due:?}, revision: {revision} }}"));
        }
        self.each("a restart has to", run.recover());
        self.say("workflow", workflow);
        self.say("input", text(input));
        self.say("given", text(given));
        self.say("seed", seed.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        self.say("options", words_of(options));
        self.task(run);
        self.say("started at", started_at);
        self.say("place", format_args!("{seq} in life {epoch}"));
        self.each("this life began at", retried);
        self.each("deadline", deadline);
        self.each("last retry", retry_context);
        self.each("note", note);
        self.each("carried out", commands);
        self.each("heard", heard);
        self.say("messages sent", sent);
        self.say("slots", format_args!("{slots:?}"));
        self.say("generations", format_args!("{generations:?}"));
        self.each("letter about", letters);
        supplied
            .iter()
            .for_each(|(step, output)| self.say("supplied", format_args!("{step}: {}", text(output))));
        details
            .iter()
            .for_each(|(step, details)| self.say("details", format_args!("{step}: {}", text(details))));
        self.say("script", format_args!("{:?}", script(journal.to_vec()).iter().map(|entry| entry.seq).collect::<Vec<_>>()));
        match phase {
            Phase::Open(open) => self.open(open),
            Phase::Ended(Ended { at, outcome, cancelled }, open) => {
                self.say("ended", format_args!("at {at}, cancelled {cancelled}, with {}", with(outcome)));
                self.open(open);
            }
        }
    }

    fn open(&mut self, open: &Open) {
        let Open {
            in_flight,
            held,
            steps,
            begun,
            sleeps,
            awaits,
            signals,
            signal_ids,
            children,
            undoable,
            cancel_requested,
            paused,
            interrupted,
            stage,
        } = open;
        self.say("in flight", in_flight);
        self.each("held back", Some(held).filter(|held| **held > 0));
        self.say("stage", format_args!("{stage:?}"));
        self.say("is to end", cancel_requested);
        self.each("paused", paused);
        self.each("interrupted", interrupted);
        self.each("step", steps);
        self.each("begun", begun);
        self.each("undoable", undoable);
        self.each("sleep", sleeps);
        self.each("wait", awaits);
        self.each("signal", signals);
        self.each("signal id", signal_ids);
        self.each("child", children);
    }

    fn limit(&mut self, limit: &Limit) {
        let Limit { key: _, seq, sent, slots, members, line } = limit;
        self.say("place", seq);
        self.say("messages sent", sent);
        self.say("slots", slots);
        self.each("member", members);
        self.each("in line", line);
    }

    fn letters(&mut self, letters: &LetterBox) {
        let LetterBox { workflow: _, seq, letters, heard, commands } = letters;
        self.say("place", seq);
        self.each("letter", letters);
        self.each("heard", heard);
        self.each("carried out", commands);
    }

    fn route(&mut self, letters: &RouteBox) {
        let RouteBox { route: _, seq, bytes: _, letters, messages, commands } = letters;
        self.say("place", seq);
        for (letter, Kept { message, attempts, bytes: _ }) in letters {
            self.say("letter", format_args!("{letter} after {attempts} attempts: {message}"));
        }
        self.each("message", messages);
        self.each("carried out", commands);
    }

    fn key(&mut self, key: &Key) {
        let Key { name: _, seq, revision, held, callbacks, letters, base, commands } = key;
        self.say("place", seq);
        self.say("may begin at", base);
        self.say("last revision", revision);
        if let Some(held) = held {
            let Held { revision, value, ttl, expires_at, owner, directory, on_expire, put_at } = held;
            self.say("revision", revision);
            self.say("value", text(value));
            self.say("lives", format_args!("{ttl:?} until {expires_at}, put at {put_at}"));
            self.say("is a directory", directory);
            self.each("owner", owner);
            self.each("is told", on_expire);
        }
        callbacks.values().for_each(|callback| self.callback("to be told", callback));
        letters.iter().for_each(|(letter, callback)| self.callback(&format!("letter {letter}"), callback));
        self.each("carried out", commands);
    }

    fn callback(&mut self, what: &str, callback: &Callback) {
        let Callback { revision, value, owner, ended_at, target, below, attempt, failed } = callback;
        self.say(what, format_args!("{revision} of {owner:?} ended at {ended_at} with {}", text(value)));
        self.say(what, format_args!("{revision} is told to {target:?}, and to those below {below:?}"));
        self.say(what, format_args!("{revision} has attempt {attempt} to come"));
        if let Some(Failed { failure, due_at, seq, of }) = failed {
            self.say(what, format_args!("{revision} failed by {seq}, is due at {due_at} for one of {of}: {failure:?}"));
        }
    }
}

/// What makes a run a task is told by itself.
fn words_of(options: &RunOptions) -> String {
    let RunOptions { tenant, recovery, limits, parent, definition, task: _ } = options;
    let rest = format!("limits: {limits:?}, parent: {parent:?}, definition: {definition:?}");
    format!("RunOptions {{ tenant: {tenant:?}, recovery: {recovery:?}, {rest} }}")
}

/// A letter says what it is about in the words that it always had.
fn words(message: &Message) -> String {
    match message {
        Message::PostLetter(Letter { about: LetterAbout::Step { run, step }, attempt, tenant, failure, payload }) => {
            let rest = format!("attempt: {attempt}, tenant: {tenant:?}, failure: {failure:?}, payload: {payload:?}");
            format!("PostLetter(Letter {{ run: {run:?}, step: {step:?}, {rest} }})")
        }
        Message::StartChild(StartChild { workflow, input, seed, deadline, options }) if options.task.is_none() => {
            let rest = format!("seed: {seed:?}, deadline: {deadline:?}, options: {}", words_of(options));
            format!("StartChild(StartChild {{ workflow: {workflow:?}, input: {input:?}, {rest} }})")
        }
        other => format!("{other:?}"),
    }
}

fn text(payload: &Payload) -> String {
    String::from_utf8(payload.bytes.to_vec()).unwrap()
}

fn with(outcome: &Result<Payload, Failure>) -> String {
    match outcome {
        Ok(output) => text(output),
        Err(failure) => format!("{failure:?}"),
    }
}
