//! Workers that are killed again and again in the middle of steps, and the server with them: every run completes, nothing on record is executed again, and no step is
//! in two places at once.
//!
//! Subject: `crates/runtime/src/shard/lost.rs`.

use crate::{Repeat, kills, machine, setting};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use steadfast::Status;
use steadfast_crash_test::log::{self, Line};
use steadfast_crash_test::workers::{HEARTBEAT, STEPS, TAKES, over};
use steadfast_kernel::Record;
use steadfast_store::{RunFilter, Store};
use steadfast_store_embedded::Embedded;

const RUNS: u32 = 60;
const WORKERS: usize = 3;

/// How long anything may take that has to come.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The processes, and where they leave what they do.
struct Depot {
    folder: PathBuf,
    port: u16,
    /// The number of the last process.
    last: u32,
    server: Child,
    workers: Vec<(u32, Child)>,
    done: mpsc::Receiver<()>,
}

impl Depot {
    fn open(folder: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (server, done) = serve(folder, port, 1);
        let mut depot = Depot { folder: folder.into(), port, last: 1, server, workers: Vec::new(), done };
        for number in 0..WORKERS {
            let worker = depot.hire(number);
            depot.workers.push(worker);
        }
        depot
    }

    fn hire(&mut self, number: usize) -> (u32, Child) {
        self.last += 1;
        let command = start(&self.folder, self.last, &format!("worker:{}:w{number}", self.port)).spawn();
        (self.last, command.expect("a worker can be started"))
    }

    fn kill_worker(&mut self, number: usize) {
        end(&mut self.workers[number].1);
        self.workers[number] = self.hire(number);
    }

    fn kill_server(&mut self) {
        end(&mut self.server);
        self.last += 1;
        (self.server, self.done) = serve(&self.folder, self.port, self.last);
    }

    fn lines(&self) -> Vec<Line> {
        log::read(&std::fs::read_to_string(self.folder.join("log")).unwrap_or_default())
    }

    /// Waits until that process has begun a step. False if all is done before that.
    fn until_busy(&self, process: u32) -> bool {
        let looks = PATIENCE.as_millis() / LOOK_EVERY.as_millis();
        for _ in 0..looks {
            if self.lines().iter().any(|line| line.process == process) {
                return true;
            }
            match self.done.recv_timeout(LOOK_EVERY) {
                Ok(()) => return false,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => panic!("the server has ended"),
            }
        }
        panic!("process {process} is never given anything");
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        end(&mut self.server);
        self.workers.iter_mut().for_each(|(_, worker)| end(worker));
    }
}

fn start(folder: &Path, process: u32, role: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast-crash-test"));
    command
        .arg(folder.join("data"))
        .arg(folder.join("log"))
        .args([&process.to_string(), role])
        .stdout(Stdio::null());
    command
}

fn serve(folder: &Path, port: u16, process: u32) -> (Child, mpsc::Receiver<()>) {
    let mut command = start(folder, process, &format!("depot:{port}:{RUNS}"));
    let mut server = command.stdout(Stdio::piped()).spawn().expect("the server can be started");
    let (lines, (said, done)) = (BufReader::new(server.stdout.take().unwrap()).lines(), mpsc::channel());
    std::thread::spawn(move || {
        for _ in lines.map_while(Result::ok).filter(|line| line == "done") {
            let _nobody_waits = said.send(());
        }
    });
    (server, done)
}

fn end(child: &mut Child) {
    let _it_has_ended = child.kill(); // SIGKILL
    child.wait().unwrap();
}

#[test]
fn workers_that_are_killed_again_and_again_lose_nothing_and_do_nothing_beside_each_other() {
    let _machine = machine();
    let seed = setting("CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let wanted = setting("CRASH_KILLS").map_or(12, |kills| kills.min(50));
    let repeat = Repeat(format!("CRASH_SEED={seed} CRASH_KILLS={wanted}"));
    println!("{}", repeat.0);
    let mut chance = kills(seed);
    let mut below = |bound: u64| chance.next_u64() % bound;
    let folder = tempfile::tempdir().unwrap();
    let mut depot = Depot::open(folder.path());
    let mut killed = 0;
    while killed < wanted {
        let number = below(WORKERS as u64) as usize;
        if !depot.until_busy(depot.workers[number].0) {
            break;
        }
        std::thread::park_timeout(Duration::from_micros(below(TAKES.as_micros() as u64)));
        match below(6) {
            0 => depot.kill_server(),
            _ => depot.kill_worker(number),
        }
        killed += 1;
    }
    let is_done = killed < wanted || depot.done.recv_timeout(PATIENCE).is_ok();
    assert!(is_done, "left alone, the runs do not come to their end");
    let lines = depot.lines();
    drop(depot);

    let repeated = check(folder.path(), &lines);
    println!("{killed} kills; {repeated} of {} attempts were made again", lines.len() / 2);
    assert!(repeated > 0, "nobody was killed in the middle of a step");
}

/// How many attempts were made again.
#[tokio::main(flavor = "current_thread")]
async fn check(folder: &Path, lines: &[Line]) -> usize {
    let store = Embedded::open(folder.join("data")).expect("what a kill left behind can be opened");
    let runs = store.runs(&RunFilter::default(), None, 1000).await.unwrap();
    assert_eq!(runs.len(), RUNS as usize);
    let mut attempts: BTreeMap<(&str, &str), Vec<&Line>> = BTreeMap::new();
    for line in lines {
        attempts.entry((&line.run, &line.step)).or_default().push(line);
    }
    let mut repeated = 0;
    for row in runs {
        assert_eq!(row.status, Status::Completed, "{}", row.run);
        let journal = store.journal(&(&row.run).into(), 0, 1000).await.unwrap();
        for name in STEPS {
            let subject = Some(format!("{name}#1"));
            let is_success = |record: &&Record| record.kind == "STEP_COMPLETED" && record.subject == subject;
            let recorded: Vec<_> = journal.iter().filter(is_success).collect();
            let [recorded] = recorded[..] else { panic!("{name} of {} is on record {} times", row.run, recorded.len()) };
            let ended = over(name);
            let (begun, ended) = (&attempts[&(row.run.as_str(), name)], &attempts[&(row.run.as_str(), ended.as_str())]);
            repeated += begun.len() - 1;
            for line in begun {
                assert!(line.at <= recorded.at, "{line:?} was begun though it is on record since {}", recorded.at);
            }
            one_at_a_time(begun, ended);
        }
    }
    repeated
}

/// No attempt is over in one process after another one has begun it, unless the first was kept from the processor for so long that it could not know that its time was over.
fn one_at_a_time(begun: &[&Line], ended: &[&Line]) {
    for (first, second) in begun.iter().zip(begun.iter().skip(1)) {
        let late = ended
            .iter()
            .find(|line| line.process == first.process && line.at > second.at && first.process != second.process);
        let took = late.map(|line| line.at.saturating_since(first.at)).unwrap_or_default();
        let stalled = took > TAKES + HEARTBEAT / 3;
        assert!(late.is_none() || stalled, "{first:?} was not over when this began: {second:?}");
    }
}
