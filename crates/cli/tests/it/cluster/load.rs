//! People who start runs, send signals and put keys, at whichever server there is; what was answered with success is remembered.

use super::http::{ask, is_done};
use super::meanwhile;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How many people there are: some of them wait for a server that is stopped, or for the end of a lease.
const PEOPLE: usize = 8;

/// A person rests for so long between two things.
const REST: Duration = Duration::from_millis(150);

/// So often something is asked for that was not answered with success.
const TRIES: usize = 200;

/// Steps that write down when they began, with waits between them.
pub(super) const WALK: &str = r#"
workflow: walk
steps:
  - { name: one, run: { command: [sh, -c, "exec date \"+$0 $1 $2 %s%N\" >> ../steps.log", "{{ run.id }}", one, "{{ vars.me }}"] } }
  - { name: rest, wait: 700ms }
  - { name: two, run: { command: [sh, -c, "exec date \"+$0 $1 $2 %s%N\" >> ../steps.log", "{{ run.id }}", two, "{{ vars.me }}"] } }
  - { name: nap, wait: 300ms }
  - { name: three, run: { command: [sh, -c, "exec date \"+$0 $1 $2 %s%N\" >> ../steps.log", "{{ run.id }}", three, "{{ vars.me }}"] } }
"#;

/// The same with a question in the middle.
pub(super) const CLIMB: &str = r#"
workflow: climb
steps:
  - { name: one, run: { command: [sh, -c, "exec date \"+$0 $1 $2 %s%N\" >> ../steps.log", "{{ run.id }}", one, "{{ vars.me }}"] } }
  - { name: ok, approve: { roles: [operator] } }
  - { name: rest, wait: 300ms }
  - { name: two, run: { command: [sh, -c, "exec date \"+$0 $1 $2 %s%N\" >> ../steps.log", "{{ run.id }}", two, "{{ vars.me }}"] } }
"#;

/// A step that fails at first, and is tried again while its server is stopped.
pub(super) const STUMBLE: &str = r#"
workflow: stumble
steps:
  - name: one
    run: { command: [sh, -c, "date \"+$0 $1 $2 %s%N\" >> ../steps.log; [ $3 -gt 1 ]", "{{ run.id }}", one, "{{ vars.me }}", "{{ attempt }}"] }
    retry: { max_attempts: 9, backoff: constant, base: 1500ms, jitter: none }
"#;

/// What was answered with success.
#[derive(Default)]
pub(super) struct Acknowledged {
    pub(super) runs: BTreeSet<String>,
    pub(super) signals: BTreeSet<String>,
    pub(super) keys: BTreeSet<String>,
    /// Answers that were no success, and questions without an answer.
    pub(super) failures: usize,
}

#[derive(Default)]
struct Shared {
    /// Where servers are, or were.
    servers: Mutex<Vec<String>>,
    acknowledged: Mutex<Acknowledged>,
    ends: AtomicBool,
}

pub(super) struct Load {
    shared: Arc<Shared>,
    people: Vec<JoinHandle<()>>,
}

impl Load {
    pub(super) fn begin(servers: Vec<String>) -> Self {
        let shared = Arc::new(Shared { servers: Mutex::new(servers), ..Shared::default() });
        let people = (0..PEOPLE).map(|person| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.live(person))
        });
        Load { people: people.collect(), shared }
    }

    /// A server has that address from now on.
    pub(super) fn moved(&self, number: usize, url: &str) {
        self.shared.servers.lock().unwrap()[number] = url.into();
    }

    /// Begins nothing more, and waits until everything that was begun is acknowledged.
    pub(super) fn end(self) -> Acknowledged {
        self.shared.ends.store(true, Ordering::SeqCst);
        self.people.into_iter().for_each(|person| person.join().unwrap());
        std::mem::take(&mut *self.shared.acknowledged.lock().unwrap())
    }
}

impl Shared {
    fn live(&self, person: usize) {
        for number in 0.. {
            if self.ends.load(Ordering::SeqCst) {
                return;
            }
            let (id, first) = (format!("p{person}-{number}"), person + number);
            let climbs = number % 4 == 3;
            let run = json!({ "workflow": if climbs { "climb" } else { "walk" }, "id": id, "input": { "number": number } });
            self.insist("POST", "/v1/runs", &run, first);
            self.acknowledged.lock().unwrap().runs.insert(id.clone());
            if climbs {
                let signal = json!({ "payload": { "approved": true, "number": number }, "signalId": format!("{id}-ok") });
                self.insist("POST", &format!("/v1/runs/{id}/signals/ok"), &signal, first + 1);
                self.acknowledged.lock().unwrap().signals.insert(id.clone());
            }
            if number % 3 == 1 {
                let put = json!({ "value": { "by": id }, "ttlMs": 3_600_000 });
                self.insist("PUT", &format!("/v1/keys/{id}"), &put, first + 2);
                self.acknowledged.lock().unwrap().keys.insert(id);
            }
            meanwhile(REST);
        }
    }

    /// Asks one server after the other until one says that it is done.
    fn insist(&self, method: &str, path: &str, body: &serde_json::Value, first: usize) {
        for number in first..first + TRIES {
            let server = {
                let servers = self.servers.lock().unwrap();
                servers[number % servers.len()].clone()
            };
            let answer = ask(&server, method, path, body);
            if is_done(&answer) {
                return;
            }
            if let Ok((status @ 400..=428, problem)) = &answer {
                panic!("{method} {path} is refused with {status}: {problem}");
            }
            self.acknowledged.lock().unwrap().failures += 1;
            meanwhile(REST);
        }
        panic!("{method} {path} is never done");
    }
}
