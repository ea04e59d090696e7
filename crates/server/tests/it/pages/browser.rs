//! A real Chromium, driven by its DevTools protocol: a page is opened, looked at and clicked on, and all that it complains about is kept.
//! It knows nothing of what serves the page; the tests of the binary include this file as well.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message;

/// Long enough for anything that is to happen on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

const CHROMIUM: &str = "/usr/bin/chromium";

const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
    "--remote-debugging-port=0",
    "about:blank",
];

type Answer = oneshot::Sender<Result<Value, String>>;

/// What is said to the browser, and who waits for its answer.
struct Said {
    message: Value,
    answer: Answer,
}

/// One page of a browser of its own. Both end when it is dropped.
pub(super) struct Page {
    say: mpsc::UnboundedSender<Said>,
    session: Option<String>,
    complaints: Arc<Mutex<Vec<String>>>,
    _browser: Child,
    _profile: TempDir,
}

impl Page {
    /// Starts a browser and opens an empty page.
    pub(super) async fn new() -> Self {
        let profile = TempDir::new().unwrap();
        let mut browser = Command::new(CHROMIUM)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{CHROMIUM} does not start ({error}); install it: apt-get install chromium"));
        let address = address(&mut browser).await;
        let (socket, _) = tokio_tungstenite::connect_async(&address).await.unwrap();
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let (say, said) = mpsc::unbounded_channel();
        tokio::spawn(talk(socket, said, Arc::clone(&complaints)));
        let mut page = Page { say, session: None, complaints, _browser: browser, _profile: profile };
        let target = page.ask("Target.createTarget", json!({"url": "about:blank"})).await;
        let attached = page.ask("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true})).await;
        page.session = attached["sessionId"].as_str().map(str::to_string);
        for domain in ["Page", "Runtime", "Log"] {
            page.ask(&format!("{domain}.enable"), json!({})).await;
        }
        page
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        self.try_ask(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    async fn try_ask(&self, method: &str, params: Value) -> Result<Value, String> {
        let mut message = json!({"method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let (answer, answered) = oneshot::channel();
        self.say.send(Said { message, answer }).map_err(|_| "the browser has gone")?;
        let answered = tokio::time::timeout(PATIENCE, answered).await.map_err(|_| "no answer")?;
        answered.map_err(|_| "the browser has gone")?
    }

    /// Opens an address.
    pub(super) async fn open(&self, url: &str) {
        self.ask("Page.navigate", json!({"url": url})).await;
        self.until("document.readyState === 'complete'").await;
    }

    /// Makes the window that wide.
    pub(super) async fn resize(&self, width: u32) {
        self.ask("Emulation.setDeviceMetricsOverride", json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": true}))
            .await;
    }

    /// What an expression comes to.
    pub(super) async fn value(&self, expression: &str) -> Value {
        self.try_value(expression).await.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    async fn try_value(&self, expression: &str) -> Result<Value, String> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true});
        let result = self.try_ask("Runtime.evaluate", params).await?;
        match result.get("exceptionDetails") {
            None => Ok(result["result"]["value"].clone()),
            Some(thrown) => Err(thrown.to_string()),
        }
    }

    /// Waits in the page until a condition holds, over navigations if need be.
    pub(super) async fn until(&self, condition: &str) {
        let promise = format!("new Promise((done) => {{ const look = () => ({condition}) ? done(true) : setTimeout(look, 25); look(); }})");
        let look = async { while self.try_value(&promise).await.is_err() {} };
        if tokio::time::timeout(PATIENCE, look).await.is_err() {
            let seen = self.value("document.title + '\\n' + document.body.innerText").await;
            panic!("never: {condition}\non the page: {seen}\ncomplaints: {:?}", self.complaints());
        }
    }

    /// Waits for an element, and clicks on it.
    pub(super) async fn click(&self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?})")).await;
        self.value(&format!("document.querySelector({selector:?}).click()")).await;
    }

    /// Waits until the page has complained about something that often.
    pub(super) async fn complained(&self, about: &str, times: usize) {
        let heard = || self.complaints().iter().filter(|text| text.contains(about)).count() >= times;
        let look = async {
            while !heard() {
                self.value("new Promise((done) => setTimeout(done, 25))").await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, look).await.is_ok();
        assert!(in_time, "no {times} complaints about {about}, but {:?}", self.complaints());
    }

    /// All that the page has complained about: errors, warnings, and what the content security policy has refused.
    pub(super) fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap().clone()
    }
}

/// Where the browser listens; it says so once it does.
async fn address(browser: &mut Child) -> String {
    let mut lines = BufReader::new(browser.stderr.take().unwrap()).lines();
    let mut seen = String::new();
    let found = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(address) = line.strip_prefix("DevTools listening on ") {
                return Some(address.to_string());
            }
            seen.push_str(&line);
            seen.push('\n');
        }
        None
    };
    let found = tokio::time::timeout(PATIENCE, found).await.ok().flatten();
    let found = found.unwrap_or_else(|| panic!("{CHROMIUM} does not listen; is it whole? apt-get install chromium\n{seen}"));
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} }); // a full pipe would stop it
    found
}

async fn talk(
    socket: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
    mut said: mpsc::UnboundedReceiver<Said>,
    complaints: Arc<Mutex<Vec<String>>>,
) {
    let (mut to, mut from) = socket.split();
    let (mut waiting, mut last) = (BTreeMap::<u64, Answer>::new(), 0);
    loop {
        tokio::select! {
            biased;
            heard = from.next() => {
                let Some(Ok(Message::Text(text))) = heard else { return };
                let heard: Value = serde_json::from_str(&text).unwrap();
                match heard["id"].as_u64().and_then(|id| waiting.remove(&id)) {
                    Some(answer) => drop(answer.send(answered(&heard))),
                    None => complaints.lock().unwrap().extend(complaint(&heard)),
                }
            }
            next = said.recv() => {
                let Some(Said { mut message, answer }) = next else { return };
                last += 1;
                message["id"] = json!(last);
                waiting.insert(last, answer);
                if to.send(Message::text(message.to_string())).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn answered(heard: &Value) -> Result<Value, String> {
    match heard.get("error") {
        None => Ok(heard["result"].clone()),
        Some(error) => Err(error.to_string()),
    }
}

fn complaint(heard: &Value) -> Option<String> {
    let params = &heard["params"];
    match heard["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
        "Runtime.consoleAPICalled" if ["error", "warning", "assert"].contains(&params["type"].as_str()?) => {
            Some(params["args"].to_string())
        }
        "Log.entryAdded" if ["error", "warning"].contains(&params["entry"]["level"].as_str()?) => {
            Some(format!("{}: {}", params["entry"]["source"], params["entry"]["text"]))
        }
        _ => None,
    }
}
